"""What has ended, one JSON value a line, in a file that is only appended to until it is written anew.

A line counts once `jobs.json` says that the file is that long: what lies behind is from a change that never was. So
the two files change as one, by the rename of `jobs.json`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from ksana.stores.json.files import sync_directory
from ksana.stores.json.tables import Place

_BINARY = getattr(os, "O_BINARY", 0)
_PRIVATE = 0o600
_NAME = re.compile(r"history-([1-9][0-9]{0,8})\.jsonl")


class Pointer(msgspec.Struct, frozen=True):
    """Which file holds the history, and how much of it counts."""

    file: str
    bytes: int


class History:
    """An append-only file of lines."""

    def __init__(self, directory: Path, number: int, length: int = 0) -> None:
        self._directory = directory
        self._number = number
        self.length = length
        self._path = directory / f"history-{number}.jsonl"
        self._writer: BinaryIO | None = None
        self._reader: BinaryIO | None = None

    @classmethod
    def at(cls, directory: Path, pointer: Pointer) -> History | None:
        """The history that a pointer means; None if it is not there, or is shorter than it says."""
        match = _NAME.fullmatch(pointer.file)
        path = directory / pointer.file
        if match is None or not path.is_file() or path.stat().st_size < pointer.bytes:
            return None
        return cls(directory, int(match[1]), pointer.bytes)

    @classmethod
    def fresh(cls, directory: Path) -> History:
        """An empty one, of a number that none there has."""
        numbers = (int(match[1]) for path in directory.iterdir() if (match := _NAME.fullmatch(path.name)))
        return cls(directory, max(numbers, default=0) + 1)

    @property
    def pointer(self) -> Pointer | None:
        return Pointer(self._path.name, self.length) if self.length else None

    def append(self, lines: Sequence[bytes]) -> list[Place]:
        """Write lines behind those that count and have them on the disk; they count once `length` covers them."""
        if self._writer is None:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | _BINARY, _PRIVATE)
            self._writer = os.fdopen(handle, "r+b", buffering=0)
            sync_directory(self._directory)
        self._writer.seek(self.length)
        # Something longer may have been begun here and never counted.
        self._writer.truncate()
        left = memoryview(b"".join(lines))
        while left:
            left = left[self._writer.write(left) :]
        os.fsync(self._writer.fileno())
        places, offset = [], self.length
        for line in lines:
            places.append(Place(offset, len(line)))
            offset += len(line)
        return places

    def read(self, place: Place) -> bytes:
        if self._reader is None:
            self._reader = self._path.open("rb")
        self._reader.seek(place.offset)
        return self._reader.read(place.length)

    def lines(self) -> Iterator[tuple[Place, bytes]]:
        """All lines that count, with their places."""
        if not self.length:
            return
        offset = 0
        with self._path.open("rb") as file:
            for line in file:
                if offset + len(line) > self.length:
                    return
                yield Place(offset, len(line)), line
                offset += len(line)

    def copies(self, places: Iterable[Place]) -> Iterator[bytes]:
        """The lines at these places, one after the other, read beside whoever else reads."""
        with self._path.open("rb") as file:
            for place in places:
                file.seek(place.offset)
                yield file.read(place.length)

    def rewritten(self, lines: Iterable[bytes]) -> tuple[History, list[Place]]:
        """A new file with these lines alone, beside this one, and where each of them stands."""
        new = History.fresh(self._directory)
        places = []
        with os.fdopen(os.open(new._path, os.O_WRONLY | os.O_CREAT | _BINARY, _PRIVATE), "wb") as file:
            for line in lines:
                file.write(line)
                places.append(Place(new.length, len(line)))
                new.length += len(line)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self._directory)
        return new, places

    def forget_older(self, than: History) -> None:
        """Remove files that neither the state nor its previous generation points at."""
        for path in self._directory.iterdir():
            match = _NAME.fullmatch(path.name)
            if match is not None and int(match[1]) < than._number:
                with suppress(OSError):
                    path.unlink()

    def close(self) -> None:
        for file in (self._writer, self._reader):
            if file is not None:
                file.close()
        self._writer = self._reader = None
