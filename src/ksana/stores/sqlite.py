"""SQLite: one writer thread that commits whatever has gathered while it was busy, and readers that never block it.

Every acknowledged change was flushed to the disk first (`synchronous=FULL`); a group of changes shares one flush.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import sys
import threading
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from ksana.domain.errors import InvalidArgument, KsanaError, StoreUnavailable
from ksana.stores.asked import Asked
from ksana.stores.sql.dialects import SQLITE
from ksana.stores.sql.tx import Step
from ksana.stores.sqlite_tx import SqliteTx

T = TypeVar("T")

_Job = Asked[Step[Any]]

_GROUP = 256
_READERS = 2
# What was written goes from the log to the file once this many rows have changed and nobody has asked for anything for
# this many seconds; whatever happens, the log grows no longer than so many pages.
_SETTLED_FROM = 2000
_IDLE = 0.05
_LONGEST_LOG = 4000
_BUSY = 10.0
_SWITCH = 0.0002
# Halves of characters, integers beyond 64 bits, values beyond a gigabyte: the value is at fault, not the file.
_UNFIT = (UnicodeEncodeError, OverflowError, sqlite3.DataError)
_TROUBLE = (*_UNFIT, sqlite3.Error)


def _finish(step: Awaitable[T]) -> T:
    """Run a coroutine that never suspends."""
    iterator = step.__await__()
    try:
        next(iterator)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("a step on SQLite must not wait for anything")


class SqliteDatabase:
    """A SQLite file, shared by the processes of one host."""

    dialect = SQLITE
    # One turn is committed while the next is being gathered; more would only wait in line.
    parallelism = 2
    changes_at_once = False
    writes_alone = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._local = threading.local()
        self._reader_connections: list[sqlite3.Connection] = []
        self._settled = 0

    async def open(self) -> None:
        # After every statement the writer asks for the interpreter's lock, and a busy loop keeps it for this long: with
        # the default of 5 ms a commit would mostly wait, with this the two work side by side.
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH))
        connection = await asyncio.to_thread(self._connect_writer)
        self._settled = 0
        self._thread = threading.Thread(target=self._write_loop, args=(connection,), name="ksana-sqlite", daemon=True)
        self._thread.start()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="ksana-sqlite-read")

    async def close(self) -> None:
        # From here on nobody gets in line any more; whoever stands there is still served.
        thread, self._thread = self._thread, None
        readers, self._readers = self._readers, None
        if thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(thread.join)
        if readers is not None:
            await asyncio.to_thread(readers.shutdown)
        for connection in self._reader_connections:
            connection.close()
        self._reader_connections.clear()
        self._local = threading.local()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        # 64 MiB of pages: enough for the rows and indexes in use, bounded however large the file grows.
        for pragma in ("foreign_keys=OFF", "temp_store=MEMORY", "cache_size=-65536"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _connect_writer(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Whatever is kept of requests may hold secrets; SQLite gives its other files the mode of this one.
            self._path.touch(mode=0o600)
            connection = self._connect()
            [(mode,)] = connection.execute("PRAGMA journal_mode=WAL").fetchall()
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint={_LONGEST_LOG}")
            health = self._health()
        except (OSError, sqlite3.DatabaseError) as error:
            raise StoreUnavailable(f"{self._path} cannot be opened: {error}") from error
        if mode != "wal":
            raise StoreUnavailable(f"{self._path}: this file system cannot hold a write-ahead log; use a local disk")
        if health != "ok":
            raise StoreUnavailable(f"{self._path} is damaged ({health}); restore it from a backup")
        return connection

    def _health(self) -> str:
        """What is wrong with the file, or "ok". The check reads all of it, so it gets a connection of its own: the
        writer's page cache stays free for what is in use."""
        connection = sqlite3.connect(self._path, timeout=_BUSY, isolation_level=None)
        try:
            [(health,)] = connection.execute("PRAGMA quick_check(1)").fetchall()
        finally:
            connection.close()
        return str(health)

    async def write(self, step: Step[T]) -> T:
        if self._thread is None:
            raise StoreUnavailable(f"{self._path} is not open")
        job: _Job = Asked(step, asyncio.get_running_loop())
        self._queue.put(job)
        result: T = await job.future
        return result

    single = write

    async def exclusive(self, step: Step[T]) -> T:
        # A write transaction excludes every other writer, and SQLite changes its schema inside it.
        return await self.write(step)

    def _write_loop(self, connection: sqlite3.Connection) -> None:
        tx = SqliteTx(connection)
        while group := self._gather(connection):
            self._commit(connection, tx, group)
            for loop in {job.loop for job in group}:
                _deliver(loop, [job for job in group if job.loop is loop])
        connection.close()

    def _gather(self, connection: sqlite3.Connection) -> list[_Job]:
        """The next step and whatever else has come in meanwhile; empty when it is time to stop."""
        group: list[_Job] = []
        job = self._next(connection)
        while job is not None:
            group.append(job)
            # Nobody else takes from it, so what is there stays there.
            if len(group) == _GROUP or self._queue.empty():
                return group
            job = self._queue.get()
        if group:
            self._queue.put(None)
        return group

    def _next(self, connection: sqlite3.Connection) -> _Job | None:
        """The next step. In the midst of work all would wait for a checkpoint, so it is made when there is none."""
        if connection.total_changes - self._settled >= _SETTLED_FROM:
            try:
                return self._queue.get(timeout=_IDLE)
            except queue.Empty:
                self._settled = connection.total_changes
                with suppress(sqlite3.Error):
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        return self._queue.get()

    def _commit(self, connection: sqlite3.Connection, tx: SqliteTx, group: list[_Job]) -> None:
        try:
            # A deferred transaction would fail at its first write, without the patience of the busy timeout.
            connection.execute("BEGIN IMMEDIATE")
            if len(group) == 1:
                # Nobody else's changes to spare: if it fails, all goes.
                group[0].result = _finish(group[0].step(tx))
            else:
                for job in group:
                    _run_in_savepoint(connection, tx, job)
            connection.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            for job in group:
                job.error = _explained(error) if isinstance(error, _TROUBLE) else error

    async def read(self, step: Step[T]) -> T:
        if self._readers is None:
            raise StoreUnavailable(f"{self._path} is not open")
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, step)

    def _read(self, step: Step[T]) -> T:
        tx: SqliteTx | None = getattr(self._local, "tx", None)
        if tx is None:
            connection = self._connect()
            # Only the writer checkpoints: versions before 3.51.3 can lose the log's tail when two do at once.
            connection.execute("PRAGMA wal_autocheckpoint=0")
            connection.execute("PRAGMA query_only=ON")
            self._reader_connections.append(connection)
            self._local.connection = connection
            tx = self._local.tx = SqliteTx(connection)
        connection = self._local.connection
        try:
            connection.execute("BEGIN")
            try:
                return _finish(step(tx))
            finally:
                connection.execute("ROLLBACK")
        except _TROUBLE as error:
            raise _explained(error) from error


def _run_in_savepoint(connection: sqlite3.Connection, tx: SqliteTx, job: _Job) -> None:
    """One step of the group: if it fails, only its own changes go."""
    connection.execute("SAVEPOINT step")
    try:
        job.result = _finish(job.step(tx))
    except BaseException as error:
        # A disk that is full or broken may have ended the transaction: then the whole group fails with this step.
        if not connection.in_transaction:
            raise
        job.error = _explained(error) if isinstance(error, _TROUBLE) else error
        connection.execute("ROLLBACK TO step")
    connection.execute("RELEASE step")


def _explained(error: Exception) -> KsanaError:
    if isinstance(error, _UNFIT):
        return InvalidArgument.of("", f"the database cannot hold this value: {error}")
    return StoreUnavailable(f"SQLite: {error}")


def _deliver(loop: asyncio.AbstractEventLoop, jobs: list[_Job]) -> None:
    def settle() -> None:
        for job in jobs:
            job.settle()

    # A loop that was closed meanwhile has nobody left to tell.
    if not loop.is_closed():
        loop.call_soon_threadsafe(settle)
