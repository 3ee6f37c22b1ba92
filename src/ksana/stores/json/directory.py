"""A directory that this process has open: its tables, and the line in which changes wait to be written together.

Stores of one process on the same directory share one of these; another process is refused by the lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from ksana.domain.errors import InvalidArgument, StoreUnavailable
from ksana.stores.asked import Asked
from ksana.stores.json.disk import Places
from ksana.stores.json.draft import Draft, everything
from ksana.stores.json.load import load
from ksana.stores.json.lock import DirectoryLock
from ksana.stores.json.tables import Place, PlacedTable
from ksana.stores.json.tx import Change, Tx

T = TypeVar("T")
Step = Callable[[Tx], T]

# What one ended run takes in the history, attempts aside; close enough to tell whether writing it anew is worth it.
_RUN_LENGTH = 500
_GONE = ("gone_runs", "gone_audit")
_UNFIT = (UnicodeEncodeError, OverflowError, TypeError, RecursionError)


class Directory:
    """The state of a directory, and the only way to change it.

    A group of steps is tried on the tables and taken back; then it is written, beside the event loop; and only when it
    is on the disk do the tables get it for good. So readers see what is durable and nothing else, a disk that fails
    leaves nothing to be undone, and steps that come while a group is being written share the next one.
    """

    def __init__(self, path: Path, now: Callable[[], datetime]) -> None:
        self.path = path
        self.users = 0
        self._now = now
        self._loop = asyncio.get_running_loop()
        path.mkdir(parents=True, exist_ok=True)
        self._lock = DirectoryLock(path)
        try:
            self.tables, self._disk = load(path, now())
        except BaseException:
            self._lock.release()
            raise
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="ksana-json")
        self._waiting: list[Asked[Any]] = []
        self._working: asyncio.Task[None] | None = None

    @property
    def is_abandoned(self) -> bool:
        """Whether the event loop it was opened in is gone, and with it whoever used it."""
        return self._loop.is_closed()

    @property
    def is_here(self) -> bool:
        return self._loop is asyncio.get_running_loop()

    async def change(self, step: Step[T]) -> T:
        """Do a step and have it on the disk."""
        job = Asked(step, self._loop)
        self._waiting.append(job)
        if self._working is None:
            self._working = self._loop.create_task(self._work())
        result: T = await job.future
        return result

    async def _work(self) -> None:
        try:
            # Whoever else is about to ask in this round of the loop comes along.
            await asyncio.sleep(0)
            while self._waiting:
                group = [job for job in self._waiting if not job.future.done()]
                self._waiting = []
                try:
                    await self._commit(group)
                except Exception as error:
                    self._refuse(group, error)
        finally:
            self._working = None

    async def _commit(self, group: list[Asked[Any]]) -> None:
        now = self._now()
        tx, draft = Tx(self.tables), Draft(self.tables, now)
        for job in group:
            _try(tx, draft, job)
        try:
            changes, entries, lines = tx.changes(), draft.entries(), draft.lines()
        finally:
            tx.undo()
        places: Places = {}
        if entries or lines:
            places = await self._beside(self._disk.write, entries, lines, now)
        self._take_over(changes, places)
        for job in group:
            job.settle()
        if any(kind in _GONE for kind, _ in lines):
            await self._compact()

    def _refuse(self, group: list[Asked[Any]], error: Exception) -> None:
        """A group that could not be written. Even a refusal may have been because of a step that now never was."""
        if isinstance(error, OSError):
            error = StoreUnavailable(f"{self.path} cannot be written: {error.strerror or error}")
        for job in group:
            job.error = error
            job.settle()

    def _take_over(self, changes: list[Change], places: Places) -> None:
        for table, key, value in changes:
            table.set(key, value)
        # Of what may be large, only where it is written down stays in memory.
        for (kind, key), place in places.items():
            self._placed_tables[kind].set(key, place)

    @property
    def _placed_tables(self) -> dict[str, PlacedTable[Any]]:
        return {"attempt": self.tables.attempts, "callback": self.tables.callbacks}

    async def _compact(self) -> None:
        """Write the history anew if most of it is about what is gone."""
        tables = self.tables
        ended = sum(len(tables.runs.ended[state]) for state in tables.runs.ended.groups())
        placed_length = sum(table.length for table in self._placed_tables.values())
        kept_length = placed_length + tables.kept.length + tables.audit.length
        if not self._disk.is_worth_rewriting(kept_length + _RUN_LENGTH * ended):
            return
        placed: Places = {
            (kind, key): place for kind, table in self._placed_tables.items() for key, place in table.rows.items()
        }
        lines = everything(tables, self._now()).lines()
        try:
            places = await self._beside(self._disk.rewrite, lines, placed, self._now())
        except OSError:
            # The old one is as good, only longer; there will be another occasion.
            return
        self._take_over([], places)

    async def _beside(self, write: Callable[..., T], *arguments: Any) -> T:
        return await self._loop.run_in_executor(self._writer, write, *arguments)

    def read_history(self, place: Place) -> bytes:
        return self._disk.read(place)

    async def close(self) -> None:
        """Serve who waits, then let go of the files."""
        while self._working is not None:
            await asyncio.wait([self._working])
        self.abandon()

    def abandon(self) -> None:
        """Let go of the files at once."""
        self._writer.shutdown(wait=False)
        self._disk.close()
        self._lock.release()


def _try(tx: Tx, draft: Draft, job: Asked[Any]) -> None:
    """One step of a group: if it fails, only its own changes go."""
    mark = tx.mark
    try:
        job.result = job.step(tx)
    except BaseException as error:
        tx.undo(mark)
        job.error = error
        return
    changes = tx.changes(mark)
    try:
        draft.add(changes)
    except _UNFIT as error:
        tx.undo(mark)
        # Part of it is drafted already; what is drafted over it is what the tables say again.
        draft.add(Change(table, key, table.get(key)) for table, key, _ in changes)
        job.error = InvalidArgument.of("", f"the file cannot hold this value: {error}")
