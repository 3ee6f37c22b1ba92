"""Which directories this process has open, so that its stores on the same one share one state."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from ksana.domain.errors import StoreUnavailable
from ksana.stores.json.directory import Directory

_open: dict[Path, Directory] = {}
_changing = threading.Lock()


def enter(path: Path, now: Callable[[], datetime]) -> Directory:
    """The open directory at a path, for one more user."""
    path = path.resolve()
    with _changing:
        directory = _open.get(path)
        if directory is not None and directory.is_abandoned:
            _open.pop(path).abandon()
            directory = None
        if directory is None:
            directory = _opened(path, now)
        elif not directory.is_here:
            raise StoreUnavailable(f"{path} is open in another event loop of this process; use one loop for both")
        directory.users += 1
        return directory


def _opened(path: Path, now: Callable[[], datetime]) -> Directory:
    try:
        directory = _open[path] = Directory(path, now)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened: {error.strerror or error}") from error
    return directory


async def leave(directory: Directory) -> None:
    """One user less; the last one closes it."""
    with _changing:
        directory.users -= 1
        if directory.users:
            return
        # Whoever opens it from here on finds the lock held until the last change is written.
        del _open[directory.path]
    await directory.close()
