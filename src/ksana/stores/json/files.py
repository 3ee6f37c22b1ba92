"""Writing a file so that there is always a whole one: temp file, fsync, rename, fsync of the directory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

_BINARY = getattr(os, "O_BINARY", 0)
_PRIVATE = 0o600


def write_whole(path: Path, text: Sequence[bytes], previous: Path | None = None) -> None:
    """Put `text` in place of the file, and keep what it was as `previous`. Raises OSError, and then nothing changed."""
    temporary = temporary_of(path)
    try:
        write_new(temporary, text)
        if previous is not None:
            _keep(path, previous)
        _rename(temporary, path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def temporary_of(path: Path) -> Path:
    return path.with_name(path.name + ".tmp")


def write_new(path: Path, text: Sequence[bytes]) -> None:
    """Write a file from its beginning and have it on the disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, _PRIVATE)
    try:
        for piece in text:
            left = memoryview(piece)
            while left:
                left = left[os.write(file, left) :]
        os.fsync(file)
    finally:
        os.close(file)


def _keep(path: Path, previous: Path) -> None:
    """Have the file under a second name; the content is not copied where the file system knows links."""
    with suppress(FileNotFoundError):
        previous.unlink()
    try:
        os.link(path, previous)
    except FileNotFoundError:
        # There was none before.
        pass
    except OSError:
        shutil.copyfile(path, previous)


def _rename(temporary: Path, path: Path) -> None:
    try:
        temporary.replace(path)
    except (PermissionError, FileExistsError):
        # Some Windows file systems do not rename over a file. Should it end here, opening finds the temporary one.
        path.unlink()
        temporary.rename(path)


def sync_directory(directory: Path) -> None:
    """Make names durable. Windows has no such call and needs none."""
    if os.name == "nt":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def set_aside(path: Path, aside: Path) -> None:
    """Rename a file out of the way; one that was set aside earlier gets the time of its last change in its name."""
    if aside.exists():
        changed_at = datetime.fromtimestamp(aside.stat().st_mtime, UTC)
        stem = f"{aside.stem}.{changed_at:%Y%m%dT%H%M%S}"
        names = (f"{stem}{f'.{n}' if n else ''}{aside.suffix}" for n in range(1_000_000))
        aside.rename(next(other for name in names if not (other := aside.with_name(name)).exists()))
    path.rename(aside)
