"""PostgreSQL through asyncpg. Row locks that skip each other share the work between nodes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, TypeVar

import asyncpg
import msgspec

from ksana.domain.claims import Claim
from ksana.domain.errors import InvalidArgument, StoreUnavailable
from ksana.domain.states import State
from ksana.domain.times import to_micros
from ksana.stores.sql.claiming import claim_by_priority, claim_order
from ksana.stores.sql.compile import Compiled, compile_statement
from ksana.stores.sql.dialects import POSTGRES
from ksana.stores.sql.ending import end
from ksana.stores.sql.handing import hand_over, handed_to
from ksana.stores.sql.rows import Row
from ksana.stores.sql.statements import (
    CLAIM_DUE,
    PASS_ON,
    PASS_ON_BEYOND,
    STAMP_CHAINS,
    Statement,
)
from ksana.stores.sql.tables import ATTEMPTS, DUE_COLUMNS, RUNS, Table
from ksana.stores.sql.tx import Relay, Relayed, Step, Told, UniqueViolation

T = TypeVar("T")

log = logging.getLogger(__name__)

_TYPES = {"int": "bigint", "text": "text", "bytes": "bytea"}
_STATE = RUNS.names.index("state")
_TRIED = [f"a_{name}" for name in ATTEMPTS.names]
_NOTHING_TRIED = (None,) * len(_TRIED)
_DUE = [RUNS.names.index(name) for name in DUE_COLUMNS.names]
_TRIES = 5
_CLOSE_SECONDS = 5
_ACQUIRE_SECONDS = 10
_MIGRATION_LOCK = 0x6B73616E61  # "ksana"

# Numbers of types below it are assigned by hand and never change.
_FIRST_UNFIXED_TYPE = 10_000
# What asyncpg looks at after asking: a statement without a name would have taken the place of the one it prepares.
_NOTHING_ASKED = SimpleNamespace(name="none")
_known_types: dict[frozenset[int], list[Any]] = {}

_SETTINGS = {
    "application_name": "ksana",
    # Prepared statements turn generic after five executions and may then walk the wrong index for every row of a
    # batch; planning each time costs microseconds per batch and keeps the plan honest.
    "plan_cache_mode": "force_custom_plan",
    "jit": "off",
    "synchronous_commit": "on",
    "lock_timeout": "10000",
    "statement_timeout": "60000",
    "idle_in_transaction_session_timeout": "60000",
    "default_transaction_isolation": "read committed",
    "timezone": "UTC",
}

_GONE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.DiskFullError,
    asyncpg.OutOfMemoryError,
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.ReadOnlySQLTransactionError,
)
# Characters it does not know, numbers out of range, names too long for an index: the value is at fault, not the server.
_UNFIT = (asyncpg.DataError, asyncpg.ProgramLimitExceededError, UnicodeEncodeError)
_AGAIN = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


class _Connection(asyncpg.Connection):  # type: ignore[misc]
    """A pooled connection that is not reset between uses: we never change its session, and a reset is a round trip."""

    def get_reset_query(self) -> str:
        return ""

    async def _introspect_types(self, typeoids: Collection[int], timeout: float | None) -> Any:
        # Each new connection asks what an array is before its first one: two round trips, and milliseconds of planning
        # for the server. Types that come with PostgreSQL are the same on every server, so one answer does for all.
        wanted = frozenset(typeoids)
        if max(wanted) >= _FIRST_UNFIXED_TYPE:
            return await super()._introspect_types(typeoids, timeout)
        if wanted not in _known_types:
            _known_types[wanted], _ = asked = await super()._introspect_types(typeoids, timeout)
            return asked
        return _known_types[wanted], _NOTHING_ASKED


class PostgresTx:
    """A transaction on one connection."""

    def __init__(self, connection: Any, texts: dict[Any, Any]) -> None:
        self._connection = connection
        self._texts = texts

    async def rows(self, statement: Statement, /, **values: Any) -> list[Any]:
        text, names = self._compiled(statement)
        found: list[Any] = await self._connection.fetch(text, *[values[name] for name in names])
        return found

    async def run(self, statement: Statement, /, **values: Any) -> int:
        text, names = self._compiled(statement)
        tag = await self._connection.execute(text, *[values[name] for name in names])
        return _count(tag)

    def _compiled(self, statement: Statement) -> tuple[str, tuple[str, ...]]:
        found: tuple[str, tuple[str, ...]] | None = self._texts.get(statement)
        if found is None:
            found = self._texts[statement] = _number(compile_statement(statement, POSTGRES))
        return found

    async def insert(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        try:
            await self._bulk("insert", table, rows)
        except asyncpg.UniqueViolationError as error:
            raise UniqueViolation(str(error)) from error

    async def insert_new(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> int:
        return _count(await self._bulk("insert_new", table, rows))

    async def update(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        try:
            await self._bulk("update", table, rows)
        except asyncpg.UniqueViolationError as error:
            raise UniqueViolation(str(error)) from error

    async def _bulk(self, verb: str, table: Table, rows: Sequence[tuple[Any, ...]]) -> str:
        if not rows:
            return "NOTHING 0"
        # Encoding arrays is what bulk writing costs here, and most columns of a batch say the same in every row:
        # those travel as one value.
        columns = list(zip(*rows, strict=True))
        varies = tuple(column.count(column[0]) != len(rows) for column in columns)
        text = self._bulk_text(verb, table, varies)
        values = [list(column) if varied else column[0] for column, varied in zip(columns, varies, strict=True)]
        tag: str = await self._connection.execute(text, *values)
        return tag

    async def swap(self, change: Statement, /, ids: Sequence[int], epoch: int, **values: Any) -> list[int]:
        return [row[0] for row in await self.rows(change, ids=ids, epoch=epoch, **values)]

    async def claim(self, claim: Claim) -> list[Row]:
        if len(set(claim.queues)) != 1:
            return await claim_by_priority(self, claim)
        rows = await self.rows(
            CLAIM_DUE, queue=claim.queues[0], now=to_micros(claim.now), limit=claim.limit, node_id=claim.node_id
        )
        rows.sort(key=claim_order)
        return rows

    async def hand_over(self, run_ids: Sequence[int], due_at: int, claim: Claim) -> list[Row]:
        return await hand_over(self, run_ids, due_at, claim)

    async def pass_on(self, relay: Relay) -> Relayed | None:
        ended = relay.ended
        [(run_id, told)] = ended.told.items()
        _, artifact, checkpoint = ended.kept or (run_id, None, None)
        rows: list[Row] = await self.rows(
            PASS_ON_BEYOND if relay.passes else PASS_ON,
            parent_id=relay.parent_id,
            known_stamp=relay.known_stamp,
            stamp=relay.stamp,
            run_id=run_id,
            epoch=ended.epoch,
            told=None if told is None else msgspec.json.encode(told).decode(),
            tries=ended.attempt is not None,
            keeps=ended.kept is not None,
            artifact=artifact,
            checkpoint=checkpoint,
            ids=relay.heirs,
            count=len(relay.heirs),
            passes=relay.passes,
            passed=len(relay.passes),
            **dict(zip(_TRIED, ended.attempt or _NOTHING_TRIED, strict=True)),
            **ended.values,
            **handed_to(relay.claim, ended.values["ended_at"]),
        )
        passed: list[Row] = []
        if relay.passes:
            passed = [row for row in rows if row[_STATE] == State.SUCCESS.value]
            rows = [[row[i] for i in _DUE] for row in rows if row[_STATE] != State.SUCCESS.value]
        if len(rows) > 1:
            rows.sort(key=claim_order)
        return Relayed(rows, passed) if rows else None

    async def stamp(self, run_ids: Sequence[int], stamp: int) -> list[Any]:
        return await self.rows(STAMP_CHAINS, ids=run_ids, stamp=stamp)

    async def end(self, told: Told, epoch: int, **values: Any) -> Collection[int]:
        return await end(self, told, epoch, **values)

    def _bulk_text(self, verb: str, table: Table, varies: tuple[bool, ...]) -> str:
        text: str | None = self._texts.get((verb, table, varies))
        if text is None:
            text = self._texts[verb, table, varies] = _BULK[verb](table, varies)
        return text


def _count(tag: str) -> int:
    """The number of rows in a command tag such as `UPDATE 3`; commands without one touched none."""
    number = tag.rpartition(" ")[2]
    return int(number) if number.isdigit() else 0


def _number(compiled: Compiled) -> tuple[str, tuple[str, ...]]:
    """Lists travel as arrays, so the text of a statement never changes and stays prepared."""
    names = tuple(dict.fromkeys(compiled.names))
    text = [compiled.parts[0]]
    for name, is_list, part in zip(compiled.names, compiled.lists, compiled.parts[1:], strict=True):
        place = f"${names.index(name) + 1}"
        text += [f"= ANY({place})" if is_list else place, part]
    return "".join(text), names


def _source(table: Table, varies: tuple[bool, ...]) -> str:
    """A row set with the table's columns: arrays side by side, and the values all rows share."""
    numbered = [
        (f"${i}", name, kind, v) for i, ((name, kind), v) in enumerate(zip(table.columns, varies, strict=True), 1)
    ]
    shown = ", ".join(f"u.{name}" if v else f"{place}::{_TYPES[kind]} AS {name}" for place, name, kind, v in numbered)
    arrays = ", ".join(f"{place}::{_TYPES[kind]}[]" for place, _, kind, v in numbered if v)
    if not arrays:
        return f"(SELECT {shown}) v"
    names = ", ".join(name for _, name, _, v in numbered if v)
    return f"(SELECT {shown} FROM unnest({arrays}) AS u({names})) v"


def _insert(table: Table, varies: tuple[bool, ...]) -> str:
    return f"INSERT INTO {table.name} ({', '.join(table.names)}) SELECT * FROM {_source(table, varies)}"


def _insert_new(table: Table, varies: tuple[bool, ...]) -> str:
    return f"{_insert(table, varies)} ON CONFLICT DO NOTHING"


def _update(table: Table, varies: tuple[bool, ...]) -> str:
    key, *others = table.names
    changes = ", ".join(f"{name} = v.{name}" for name in others)
    return f"UPDATE {table.name} t SET {changes} FROM {_source(table, varies)} WHERE t.{key} = v.{key}"


_BULK = {"insert": _insert, "insert_new": _insert_new, "update": _update}


async def _insist(change: Callable[[], Awaitable[T]]) -> T:
    failed: Exception | None = None
    for _ in range(_TRIES):
        try:
            return await change()
        except _AGAIN as error:
            failed = error
    raise StoreUnavailable(f"PostgreSQL could not make the change in {_TRIES} tries: {failed}") from failed


class PostgresDatabase:
    """A PostgreSQL database, shared by any number of nodes."""

    dialect = POSTGRES
    parallelism = 4
    changes_at_once = True
    writes_alone = False

    def __init__(self, url: str, pool_size: int = 10, pool_idle: int = 2, pool_lifetime: float = 0) -> None:
        self._url = url
        self._pool_size = max(pool_size, self.parallelism + 2)
        self._pool_idle = min(pool_idle, self._pool_size)
        self._lifetime = pool_lifetime
        self._renewed_at = 0.0
        self._pool: Any = None
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._texts: dict[Any, Any] = {}

    async def open(self) -> None:
        try:
            self._pool = await asyncpg.create_pool(
                self._url,
                min_size=self._pool_idle,
                max_size=self._pool_size,
                timeout=10,
                command_timeout=60,
                statement_cache_size=500,
                server_settings=_SETTINGS,
                connection_class=_Connection,
            )
        except (*_GONE, asyncpg.PostgresError) as error:
            raise StoreUnavailable(f"PostgreSQL does not answer: {error or type(error).__name__}") from error
        self._renewed_at = time.monotonic()
        async with self._connection() as connection:
            if await connection.fetchval("SHOW fsync") != "on":
                log.warning("fsync is off: a power loss may take acknowledged changes with it")

    async def close(self) -> None:
        if self._pool is None:
            return
        pool, self._pool = self._pool, None
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                # The driver stumbles over a pool that closes while it connects: first whoever is at work gets done.
                await self._idle.wait()
                await pool.close()
        except TimeoutError:
            pool.terminate()

    async def write(self, step: Step[T]) -> T:
        async def transact() -> T:
            async with self._connection() as connection, connection.transaction():
                return await step(PostgresTx(connection, self._texts))

        return await _insist(transact)

    async def single(self, step: Step[T]) -> T:
        # A statement by itself is a transaction, without the two round trips that begin and end one.
        return await _insist(lambda: self.read(step))

    async def read(self, step: Step[T]) -> T:
        async with self._connection() as connection:
            return await step(PostgresTx(connection, self._texts))

    async def exclusive(self, step: Step[T]) -> T:
        async with self._connection() as connection, connection.transaction():
            # Whoever waits for a migration, or rebuilds a large table, is not in trouble.
            await connection.execute("SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0")
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _MIGRATION_LOCK, timeout=None)
            return await step(PostgresTx(connection, self._texts))

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        if self._pool is None:
            raise StoreUnavailable("PostgreSQL is not open")
        self._busy += 1
        self._idle.clear()
        try:
            await self._renew(self._pool)
            # The driver's own timeout would make a task of every acquisition.
            async with asyncio.timeout(_ACQUIRE_SECONDS) as limit, self._pool.acquire() as connection:
                limit.reschedule(None)
                yield connection
        except _UNFIT as error:
            raise InvalidArgument.of("", f"the database cannot hold this value: {error}") from error
        except _GONE as error:
            raise StoreUnavailable(f"PostgreSQL does not answer: {error or type(error).__name__}") from error
        finally:
            self._busy -= 1
            if self._busy == 0:
                self._idle.set()

    async def _renew(self, pool: Any) -> None:
        """Once in a lifetime, have every connection replaced when it is next used."""
        if self._lifetime and time.monotonic() - self._renewed_at > self._lifetime:
            self._renewed_at = time.monotonic()
            await pool.expire_connections()
