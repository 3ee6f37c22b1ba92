"""The JSON store without its files: the same tables and rules, and nothing to wait for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from ksana.stores.json.directory import Directory
from ksana.stores.json.disk import PLACED, Disk, Places
from ksana.stores.json.document import Entries
from ksana.stores.json.draft import Line
from ksana.stores.json.store import JsonStore
from ksana.stores.json.tables import Place

T = TypeVar("T")


class _Memory(Disk):
    """Keeps the history, and of the rest nothing: that is in the tables."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def write(self, entries: Entries, lines: Mapping[Line, bytes], now: datetime) -> Places:
        places: Places = {}
        for line, data in lines.items():
            if line[0] in PLACED:
                places[line] = Place(len(self._kept), len(data))
                self._kept += data
        return places

    def read(self, place: Place) -> bytes:
        return bytes(self._kept[place.offset : place.offset + place.length])

    def is_worth_rewriting(self, live: int) -> bool:
        return False

    def close(self) -> None: ...


class _Unwritten(Directory):
    """A directory that stays empty but for its lock."""

    def keep_in_memory(self) -> None:
        self._disk.close()
        self._disk = _Memory()

    async def _beside(self, write: Callable[..., T], *arguments: Any) -> T:
        return write(*arguments)


class MemoryStore(JsonStore):
    """A store for one program, gone with it."""

    async def open(self) -> None:
        if self._open is None:
            directory = _Unwritten(self._path, self._now)
            directory.keep_in_memory()
            self._open = directory

    async def close(self) -> None:
        directory, self._open = self._open, None
        if directory is not None:
            await directory.close()
