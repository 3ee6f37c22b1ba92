"""MySQL and MariaDB through asyncmy: InnoDB, READ COMMITTED, row locks that skip each other."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import asyncmy
from asyncmy.constants import CLIENT

from ksana.domain.errors import StoreUnavailable
from ksana.stores.sql.compile import Compiled, compile_statement, expand
from ksana.stores.sql.dialects import MYSQL
from ksana.stores.sql.statements import RUN_EPOCHS, Statement, Table
from ksana.stores.sql.tx import Step, UniqueViolation

T = TypeVar("T")

log = logging.getLogger(__name__)

_TRIES = 8
_DUPLICATE = 1062
_AGAIN = frozenset({1205, 1213})
_EXISTS = frozenset({1050, 1061, _DUPLICATE})
# Statements larger than a server's packet are refused; bodies may be megabytes, so rows are sent in bounded pieces.
_STATEMENT_BYTES = 1 << 20
_SESSION = (
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00',"
    " innodb_lock_wait_timeout = 10",
)


class Address(NamedTuple):
    """Where the database is and how to log in."""

    host: str
    port: int
    user: str
    password: str
    db: str
    unix_socket: str | None
    tls: str


def parse_url(url: str) -> Address:
    """Read `mysql://user:password@host:3306/db?unix_socket=…&tls=…`."""
    parts = urlsplit(url)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    return Address(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=unquote(parts.username or "root"),
        password=unquote(parts.password or ""),
        db=unquote(parts.path.lstrip("/")),
        unix_socket=options.get("unix_socket"),
        tls=options.get("tls", ""),
    )


def _code(error: Exception) -> int:
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


class MysqlTx:
    """A transaction on one connection."""

    def __init__(self, connection: Any, compiled: dict[Statement, Compiled], forgiving: bool = False) -> None:
        self._connection = connection
        self._compiled = compiled
        self._forgiving = forgiving

    async def _execute(self, text: str, values: Sequence[Any] = ()) -> Any:
        cursor = self._connection.cursor()
        try:
            await cursor.execute(text, values)
        except asyncmy.errors.MySQLError as error:
            # A schema change commits by itself here, so a migration cut short finds its own first steps done.
            if not (self._forgiving and _code(error) in _EXISTS):
                raise
        return cursor

    def _ready(self, statement: Statement, values: dict[str, Any]) -> tuple[str, list[Any]]:
        compiled = self._compiled.get(statement)
        if compiled is None:
            parts = compile_statement(statement, MYSQL)
            # The driver fills values in by the % operator, so a % of ours must be written twice.
            compiled = parts._replace(parts=tuple(part.replace("%", "%%") for part in parts.parts))
            self._compiled[statement] = compiled
        return expand(compiled, values, "%s")

    async def rows(self, statement: Statement, /, **values: Any) -> list[Any]:
        cursor = await self._execute(*self._ready(statement, values))
        return list(await cursor.fetchall())

    async def run(self, statement: Statement, /, **values: Any) -> int:
        return int((await self._execute(*self._ready(statement, values))).rowcount)

    async def insert(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        try:
            await self._insert(table, rows, "")
        except asyncmy.errors.IntegrityError as error:
            if _code(error) != _DUPLICATE:
                raise
            raise UniqueViolation(str(error)) from error

    async def insert_new(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> int:
        # A row that collides is "updated" to what it is, which counts as found (2 per changed row, 1 per found row with
        # FOUND_ROWS): the number alone cannot tell, so the ones already there are counted first.
        before = await self._present(table, rows)
        await self._insert(table, rows, f" ON DUPLICATE KEY UPDATE {table.key[0]} = {table.key[0]}")
        return len(rows) - before

    async def _present(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> int:
        names, unique = table.names, _UNIQUE.get(table.name, table.key)
        places = [names.index(name) for name in unique]
        keys = [tuple(row[place] for place in places) for row in rows]
        keys = [key for key in keys if None not in key]
        if not keys:
            return 0
        literal = self._connection.escape
        wanted = ",".join(f"({','.join(literal(value) for value in key)})" for key in keys)
        cursor = await self._execute(
            f"SELECT COUNT(*) FROM {table.name} WHERE ({', '.join(unique)}) IN ({wanted})".replace("%", "%%")
        )
        [(count,)] = await cursor.fetchall()
        return int(count)

    async def _insert(self, table: Table, rows: Sequence[tuple[Any, ...]], ending: str) -> None:
        head = f"INSERT INTO {table.name} ({', '.join(table.names)}) VALUES "
        for piece in _pieces(rows, self._connection.escape):
            await self._execute(f"{head}{piece}".replace("%", "%%") + ending)

    async def update(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        # The rows are there and locked, so this insert always turns into the update; it is the fastest bulk update here.
        changes = ", ".join(f"{name} = VALUES({name})" for name in table.names[1:])
        await self._insert(table, rows, f" ON DUPLICATE KEY UPDATE {changes}")

    async def swap(self, table: Table, rows: Sequence[tuple[Any, ...]], epochs: Sequence[int]) -> set[int]:
        found = dict(await self.rows(RUN_EPOCHS, ids=[row[0] for row in rows]))
        winners = [row for row, epoch in zip(rows, epochs, strict=True) if found.get(row[0]) == epoch]
        if winners:
            await self.update(table, winners)
        return {row[0] for row in winners}


_UNIQUE = {"ksana_runs": ("job_id", "slot_at")}
"""The key by which `insert_new` collides, where it is not the primary one."""


def _pieces(rows: Sequence[tuple[Any, ...]], escape: Any) -> list[str]:
    """Rows as SQL, in pieces of bounded size."""
    pieces: list[str] = []
    piece: list[str] = []
    size = 0
    for row in rows:
        text = f"({','.join([_literal(value, escape) for value in row])})"
        if piece and size + len(text) > _STATEMENT_BYTES:
            pieces.append(",".join(piece))
            piece, size = [], 0
        piece.append(text)
        size += len(text)
    if piece:
        pieces.append(",".join(piece))
    return pieces


def _literal(value: Any, escape: Any) -> str:
    # Numbers and NULL are nearly everything on the hot path, and need no escaping.
    if value is None:
        return "NULL"
    kind = type(value)
    if kind is int:
        return str(value)
    if kind is bytes:
        return f"x'{value.hex()}'"
    text: str = escape(value)
    return text


class MysqlDatabase:
    """A MySQL or MariaDB database, shared by any number of nodes."""

    dialect = MYSQL
    parallelism = 4

    def __init__(self, url: str, pool_size: int = 10, pool_lifetime: float = 0) -> None:
        self._address = parse_url(url)
        self._free: deque[tuple[Any, float]] = deque()
        self._slots = asyncio.Semaphore(max(pool_size, self.parallelism + 2))
        self._lifetime = pool_lifetime
        self._compiled: dict[Statement, Compiled] = {}
        self._is_open = False

    async def open(self) -> None:
        self._is_open = True
        async with self._connection() as connection:
            await _check_server(connection)

    async def close(self) -> None:
        self._is_open = False
        while self._free:
            connection, _ = self._free.pop()
            with suppress(Exception):
                await connection.ensure_closed()

    async def _connect(self) -> Any:
        address = self._address
        try:
            connection = await asyncmy.connect(
                host=address.host,
                port=address.port,
                user=address.user,
                password=address.password,
                db=address.db,
                unix_socket=address.unix_socket,
                ssl=_tls(address.tls),
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=10,
                # A change to what a row already was counts as found: a compare-and-set asks whether it matched.
                client_flag=CLIENT.FOUND_ROWS,
            )
        except (OSError, asyncio.TimeoutError, asyncmy.errors.MySQLError) as error:
            raise StoreUnavailable(f"MySQL does not answer: {error}") from error
        for statement in _SESSION:
            await connection.query(statement)
        return connection

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        """A connection of the pool; one that broke, or whose work was cut off half-way, is thrown away."""
        if not self._is_open:
            raise StoreUnavailable("MySQL is not open")
        async with self._slots:
            connection, born = self._take() or (await self._connect(), time.monotonic())
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            self._free.append((connection, born))

    def _take(self) -> tuple[Any, float] | None:
        while self._free:
            connection, born = self._free.pop()
            if not self._lifetime or time.monotonic() - born < self._lifetime:
                return connection, born
            connection.close()
        return None

    async def write(self, step: Step[T]) -> T:
        error: Exception | None = None
        for _ in range(_TRIES):
            try:
                return await self._once(step)
            except asyncmy.errors.MySQLError as failed:
                error = failed
                if _code(failed) not in _AGAIN:
                    break
        raise StoreUnavailable(f"MySQL: {error}") from error

    async def _once(self, step: Step[T]) -> T:
        refused: Exception | None = None
        try:
            async with self._connection() as connection:
                await connection.query("START TRANSACTION")
                try:
                    result = await step(MysqlTx(connection, self._compiled))
                except (asyncmy.errors.MySQLError, OSError, asyncio.CancelledError):
                    raise
                except Exception as error:
                    # The step itself refused (a conflict, bad state): the connection is as good as before.
                    await connection.query("ROLLBACK")
                    refused = error
                else:
                    await connection.query("COMMIT")
                    return result
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError) as error:
            raise StoreUnavailable(f"MySQL does not answer: {error}") from error
        assert refused is not None
        raise refused

    async def read(self, step: Step[T]) -> T:
        try:
            async with self._connection() as connection:
                return await step(MysqlTx(connection, self._compiled))
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, asyncmy.errors.MySQLError) as error:
            raise StoreUnavailable(f"MySQL does not answer: {error}") from error

    async def exclusive(self, step: Step[T]) -> T:
        lock = f"ksana:{self._address.db}"[:64]
        async with self._connection() as connection:
            await MysqlTx(connection, self._compiled).rows(Statement("SELECT GET_LOCK(:lock, 60)"), lock=lock)
            try:
                return await step(MysqlTx(connection, self._compiled, forgiving=True))
            finally:
                await MysqlTx(connection, self._compiled).rows(Statement("SELECT RELEASE_LOCK(:lock)"), lock=lock)


def _tls(choice: str) -> ssl.SSLContext | None:
    if choice in ("", "false"):
        return None
    context = ssl.create_default_context()
    if choice == "skip-verify":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


async def _check_server(connection: Any) -> None:
    cursor = connection.cursor()
    await cursor.execute("SELECT VERSION(), @@innodb_flush_log_at_trx_commit")
    [(version, flush)] = await cursor.fetchall()
    numbers = tuple(int(part) for part in version.partition("-")[0].split(".")[:3])
    needed = (10, 6, 0) if "mariadb" in version.lower() else (8, 0, 1)
    if numbers < needed:
        raise StoreUnavailable(f"MySQL {version} cannot skip locked rows; use MySQL 8.0.1 or MariaDB 10.6 and later")
    if flush != 1:
        log.warning("innodb_flush_log_at_trx_commit is %s: a power loss may take acknowledged changes with it", flush)
