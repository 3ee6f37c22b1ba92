"""One process a directory: an exclusive lock that the system takes back when its holder dies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from ksana.domain.errors import StoreUnavailable

LOCK_FILE = "jobs.lock"

# Windows locks bytes, and nobody may read those; this one lies far behind the number that is written in the file.
_FAR_BYTE = 1 << 30


class DirectoryLock:
    """Holds a directory from its making until `release`."""

    def __init__(self, directory: Path) -> None:
        try:
            self._file: BinaryIO = (directory / LOCK_FILE).open("a+b")
        except OSError as error:
            raise StoreUnavailable(f"{directory} cannot be used: {error.strerror or error}") from error
        try:
            _lock(self._file)
        except OSError as error:
            self._file.seek(0)
            holder = self._file.read(20).decode("ascii", "replace").strip()
            self._file.close()
            raise StoreUnavailable(
                f"{directory} is in use by another process{f' (pid {holder})' if holder else ''};"
                " stop that one first, or give this one a directory of its own with --store json:DIR"
            ) from error
        self._file.truncate(0)
        self._file.write(b"%d\n" % os.getpid())
        self._file.flush()

    def release(self) -> None:
        # The file stays: whoever waits for its lock would otherwise hold that of a file nobody else sees.
        self._file.close()


def _lock(file: BinaryIO) -> None:
    try:
        import fcntl
    except ImportError:
        _lock_on_windows(file)
    else:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock_on_windows(file: BinaryIO) -> None:
    import msvcrt

    file.seek(_FAR_BYTE)
    msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
