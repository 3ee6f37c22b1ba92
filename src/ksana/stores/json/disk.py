"""The two files of a store, changed as one: lines are appended first, and count when `jobs.json` is renamed into place.

Used by one thread at a time, beside the event loop; only `read` is called from the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import chain
from pathlib import Path

from ksana.stores.json.document import Document, Entries
from ksana.stores.json.draft import Line
from ksana.stores.json.files import write_whole
from ksana.stores.json.history import History
from ksana.stores.json.tables import Place

JOBS_FILE = "jobs.json"
PREVIOUS_FILE = "jobs.prev.json"

# An attempt with what went over the wire is seldom smaller; anything less is not worth a new file.
_WORTH_IT = 1 << 20

Places = dict[Line, Place]
"""Where things stand that are in the history and nowhere else."""

PLACED = frozenset({"attempt", "callback"})


class Disk:
    """Where the state is written."""

    def __init__(self, directory: Path, document: Document, history: History) -> None:
        self._path = directory / JOBS_FILE
        self._previous = directory / PREVIOUS_FILE
        self._document = document
        self._history = history

    def write(self, entries: Entries, lines: Mapping[Line, bytes], now: datetime) -> Places:
        """Write a group down. It is there as a whole when this returns, and not at all if it raises OSError."""
        before = self._document.apply(entries)
        length = self._history.length
        try:
            places = self._history.append(list(lines.values())) if lines else []
            self._history.length += sum(map(len, lines.values()))
            self._put(now)
        except BaseException:
            self._history.length = length
            self._document.apply(before)
            raise
        return _places(lines, places)

    def _put(self, now: datetime) -> None:
        write_whole(self._path, self._document.chunks(now, self._history.pointer), self._previous)

    def read(self, place: Place) -> bytes:
        return self._history.read(place)

    def is_worth_rewriting(self, live: int) -> bool:
        """Whether more than half of the history, and much in all, is about what is gone."""
        return self._history.length > max(_WORTH_IT, 2 * live)

    def rewrite(self, lines: Mapping[Line, bytes], placed: Places, now: datetime) -> Places:
        """Begin a new history with these lines and those at these places, and nothing else."""
        old = self._history
        self._history, places = old.rewritten(chain(lines.values(), old.copies(placed.values())))
        try:
            self._put(now)
        except BaseException:
            self._history.close()
            self._history = old
            raise
        old.close()
        # The previous generation still points at the old one.
        self._history.forget_older(than=old)
        return _places([*lines, *placed], places)

    def close(self) -> None:
        self._history.close()


def _places(lines: Iterable[Line], places: list[Place]) -> Places:
    return {line: place for line, place in zip(lines, places, strict=True) if line[0] in PLACED}
