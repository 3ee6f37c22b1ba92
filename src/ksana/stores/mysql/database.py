"""A MySQL or MariaDB database and its connections."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import asyncmy
import asyncmy.errors
from asyncmy.constants import CLIENT

from ksana.domain.errors import InvalidArgument, KsanaError, StoreUnavailable
from ksana.stores.mysql.address import parse_url, tls_context
from ksana.stores.mysql.tx import MysqlTx, error_code
from ksana.stores.sql.compile import Compiled
from ksana.stores.sql.dialects import MARIADB, MYSQL
from ksana.stores.sql.statements import Statement
from ksana.stores.sql.tx import Step

T = TypeVar("T")

log = logging.getLogger(__name__)

_TRIES = 8
_ANSWER_SECONDS = 60
_LOCK_SECONDS = 60
_GONE = (OSError, TimeoutError, asyncio.IncompleteReadError)
_TROUBLE = (*_GONE, asyncmy.errors.MySQLError)
# Lost a deadlock, or waited too long for a lock: nothing was done, and doing it again may work.
_AGAIN = frozenset({1205, 1213})
# Out of range, wrong characters, too long, larger than a packet: the value is at fault, not the server.
_UNFIT = frozenset({1153, 1264, 1300, 1366, 1406})
_SESSION = (
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00',"
    " innodb_lock_wait_timeout = 10",
)
_TAKE_LOCK = Statement("SELECT GET_LOCK(:lock, :seconds)")
_GIVE_LOCK = Statement("SELECT RELEASE_LOCK(:lock)")


class _NotBegunError(Exception):
    """A connection that had been at rest turned out to be dead; nothing was done on it."""


class MysqlDatabase:
    """A MySQL or MariaDB database, shared by any number of nodes."""

    parallelism = 4
    changes_at_once = False
    writes_alone = False

    def __init__(self, url: str, pool_size: int = 10, pool_idle: int = 2, pool_lifetime: float = 0) -> None:
        self.dialect = MYSQL
        self._address = parse_url(url)
        self._resting: deque[tuple[Any, float]] = deque()
        self._slots = asyncio.Semaphore(max(pool_size, self.parallelism + 2))
        # Fewer than the turns under way at once would mean a new connection for every other turn.
        self._most_resting = max(pool_idle, self.parallelism + 2)
        self._lifetime = pool_lifetime
        self._compiled: dict[Statement, Compiled] = {}
        self._is_open = False

    async def open(self) -> None:
        self._is_open = True
        try:
            async with self._connection() as connection:
                version = await _check_server(connection)
        except _TROUBLE as error:
            raise _explained(error) from error
        self.dialect = MARIADB if "mariadb" in version.lower() else MYSQL

    async def close(self) -> None:
        self._is_open = False
        while self._resting:
            connection, _ = self._resting.pop()
            with suppress(Exception):
                await connection.ensure_closed()

    async def write(self, step: Step[T]) -> T:
        failed: Exception | None = None
        for _ in range(_TRIES):
            try:
                return await self._transact(step)
            except _NotBegunError as error:
                # The others at rest are as old; a server that is really gone shows when a new one is asked for.
                self._drop_resting()
                failed = error
            except _TROUBLE as error:
                if error_code(error) not in _AGAIN:
                    raise _explained(error) from error
                failed = error
        raise StoreUnavailable(f"MySQL could not make the change in {_TRIES} tries: {failed}") from failed

    single = write

    async def _transact(self, step: Step[T]) -> T:
        async with self._connection() as connection:
            try:
                await connection.query("START TRANSACTION")
            except _TROUBLE as error:
                raise _NotBegunError(str(error)) from error
            result = await step(self._tx(connection))
            await connection.query("COMMIT")
            return result

    async def read(self, step: Step[T]) -> T:
        try:
            return await self._read(step)
        except _TROUBLE as error:
            if error_code(error) in _UNFIT or not self._resting:
                raise _explained(error) from error
        # The connection may only have been too old: reading again on a new one harms nobody.
        self._drop_resting()
        try:
            return await self._read(step)
        except _TROUBLE as error:
            raise _explained(error) from error

    async def _read(self, step: Step[T]) -> T:
        async with self._connection() as connection:
            return await step(self._tx(connection))

    async def exclusive(self, step: Step[T]) -> T:
        lock = f"ksana:{self._address.db}"[:64]
        # Not one of the pool's: rebuilding a large table takes longer than any answer may.
        connection = await self._connect(answer_within=None)
        tx = self._tx(connection)
        try:
            [(got,)] = await tx.rows(_TAKE_LOCK, lock=lock, seconds=_LOCK_SECONDS)
            if got != 1:
                raise StoreUnavailable("another node has been migrating the database for a minute; try again")
            result = await step(MysqlTx(connection, self.dialect, self._compiled, forgiving=True))
            await tx.rows(_GIVE_LOCK, lock=lock)
            return result
        except _TROUBLE as error:
            raise _explained(error) from error
        finally:
            # The lock goes with the connection, whatever happened.
            await connection.ensure_closed()

    def _tx(self, connection: Any) -> MysqlTx:
        return MysqlTx(connection, self.dialect, self._compiled)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        """A connection of the pool; one that broke, or whose work was cut off half-way, is thrown away."""
        if not self._is_open:
            raise StoreUnavailable("MySQL is not open")
        async with self._slots:
            connection, born = self._rested() or (await self._connect(_ANSWER_SECONDS), time.monotonic())
            try:
                yield connection
            except (_NotBegunError, *_TROUBLE):
                connection.close()
                raise
            except Exception:
                # The step itself refused (a conflict, a wrong state): the connection is as good as before.
                await self._rest(connection, born, undo=True)
                raise
            except BaseException:
                connection.close()
                raise
            await self._rest(connection, born)

    def _rested(self) -> tuple[Any, float] | None:
        while self._resting:
            connection, born = self._resting.pop()
            if not self._lifetime or time.monotonic() - born < self._lifetime:
                return connection, born
            connection.close()
        return None

    async def _rest(self, connection: Any, born: float, undo: bool = False) -> None:
        try:
            if undo:
                await connection.query("ROLLBACK")
        except BaseException:
            connection.close()
            raise
        if self._is_open and len(self._resting) < self._most_resting:
            self._resting.append((connection, born))
        else:
            await connection.ensure_closed()

    def _drop_resting(self) -> None:
        while self._resting:
            self._resting.pop()[0].close()

    async def _connect(self, answer_within: float | None) -> Any:
        address = self._address
        try:
            connection: Any = await asyncmy.connect(
                host=address.host,
                port=address.port,
                user=address.user,
                password=address.password,
                db=address.db,
                unix_socket=address.unix_socket,
                ssl=tls_context(address.tls),
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=10,
                read_timeout=answer_within,
                # A change to what a row already was counts as found: a compare-and-set asks whether it matched.
                client_flag=CLIENT.FOUND_ROWS,
            )
            for statement in _SESSION:
                await connection.query(statement)
        except _TROUBLE as error:
            raise StoreUnavailable(f"MySQL does not answer: {error}") from error
        return connection


def _explained(error: Exception) -> KsanaError:
    if error_code(error) in _UNFIT:
        return InvalidArgument.of("", f"the database cannot hold this value: {error}")
    return StoreUnavailable(f"MySQL: {error or type(error).__name__}")


async def _check_server(connection: Any) -> str:
    cursor = connection.cursor()
    await cursor.execute("SELECT VERSION(), @@innodb_flush_log_at_trx_commit")
    [(version, flush)] = await cursor.fetchall()
    numbers = tuple(int(part) for part in version.partition("-")[0].split(".")[:3])
    needed = (10, 6, 0) if "mariadb" in version.lower() else (8, 0, 1)
    if numbers < needed:
        raise StoreUnavailable(f"MySQL {version} cannot skip locked rows; use MySQL 8.0.1 or MariaDB 10.6 and later")
    if flush != 1:
        log.warning("innodb_flush_log_at_trx_commit is %s: a power loss may take acknowledged changes with it", flush)
    return str(version)
