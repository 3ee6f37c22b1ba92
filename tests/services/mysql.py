"""MariaDB or MySQL for the tests."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import asyncmy
import asyncmy.errors

from tests.services.names import PREFIX
from tests.services.programs import find_program
from tests.services.service import AdmissionError, Recipe


class MySql:
    store = "mysql"
    variable = "KSANA_TEST_MYSQL"
    package = "mariadb-server"

    def usual_urls(self) -> list[str]:
        return ["mysql://root@127.0.0.1:3306/"]

    async def admit(self, url: str) -> None:
        name = f"{PREFIX}admission"
        try:
            async with _cursor(url) as cursor:
                # Grants come in too many shapes to be read; making a database is the question itself.
                await cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{name}`")
                await cursor.execute(f"DROP DATABASE IF EXISTS `{name}`")
        except (OSError, TimeoutError, asyncmy.errors.MySQLError) as error:
            parts = urlsplit(url)
            raise AdmissionError(f"{parts.username}@{parts.hostname}:{parts.port or 3306}: {error}") from error

    def recipe(self, directory: Path, port: int) -> Recipe | None:
        server = find_program("mariadbd", "mysqld")
        if server is None:
            return None
        data = str(directory / "data")
        install = find_program("mariadb-install-db", "mysql_install_db")
        if install is not None:
            prepare = [
                install,
                "--no-defaults",
                f"--datadir={data}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ]
        else:
            prepare = [server, "--no-defaults", "--initialize-insecure", f"--datadir={data}"]
        return Recipe(
            prepare=[prepare],
            serve=[
                server,
                "--no-defaults",
                f"--datadir={data}",
                "--bind-address=127.0.0.1",
                f"--port={port}",
                # Relative to the data: the path of a checkout may be longer than a socket's name may be.
                "--socket=server.sock",
                "--pid-file=server.pid",
                "--max-connections=300",
                "--innodb-buffer-pool-size=64M",
                # Pages twice on the disk help only after a crash of the machine.
                "--innodb-doublewrite=0",
            ],
            url=f"mysql://root@127.0.0.1:{port}/",
            stop_signal=signal.SIGKILL,
            user="mysql",
        )

    async def leftovers(self, url: str, *, in_use_too: bool) -> list[str]:
        async with _cursor(url) as cursor:
            await cursor.execute(
                "SELECT schema_name FROM information_schema.schemata s WHERE LEFT(schema_name, %s) = %s"
                " AND (%s OR NOT EXISTS"
                " (SELECT 1 FROM information_schema.processlist p WHERE p.db = s.schema_name))",
                (len(PREFIX), PREFIX, in_use_too),
            )
            return [name for (name,) in await cursor.fetchall()]

    async def create(self, url: str, name: str) -> str:
        async with _cursor(url) as cursor:
            await cursor.execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
        return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))

    async def drop(self, url: str, names: list[str]) -> None:
        async with _cursor(url) as cursor:
            for name in names:
                await cursor.execute("SELECT id FROM information_schema.processlist WHERE db = %s", (name,))
                # A connection left in a transaction would hold the drop up for as long as it lives.
                for (connection,) in await cursor.fetchall():
                    with suppress(asyncmy.errors.MySQLError):
                        await cursor.execute(f"KILL {connection}")
                await cursor.execute(f"DROP DATABASE IF EXISTS `{name}`")

    async def visit(self, url: str) -> "MySqlVisit":
        connection = await _connect(url)
        async with connection.cursor() as cursor:
            await cursor.execute("SET foreign_key_checks = 0, innodb_lock_wait_timeout = 5")
            await cursor.execute(
                "SELECT table_name FROM information_schema.tables"
                " WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'"
            )
            return MySqlVisit(connection, [f"`{name}`" for (name,) in await cursor.fetchall()])


class MySqlVisit:
    def __init__(self, connection: Any, tables: list[str]) -> None:
        self._connection = connection
        self._tables = tables

    async def filled_tables(self) -> list[str]:
        if not self._tables:
            return []
        probes = [f"SELECT {n} FROM DUAL WHERE EXISTS (SELECT 1 FROM {t})" for n, t in enumerate(self._tables)]
        async with self._connection.cursor() as cursor:
            await cursor.execute(" UNION ALL ".join(probes))
            return [self._tables[n] for (n,) in await cursor.fetchall()]

    async def empty(self, keep: frozenset[str]) -> None:
        tables = [table for table in await self.filled_tables() if table not in keep]
        if not tables:
            return
        async with self._connection.cursor() as cursor:
            await cursor.execute("START TRANSACTION")
            for table in tables:
                await cursor.execute(f"DELETE FROM {table}")
            await cursor.execute("COMMIT")

    async def close(self) -> None:
        await self._connection.ensure_closed()


@asynccontextmanager
async def _cursor(url: str) -> AsyncIterator[Any]:
    connection = await _connect(url)
    try:
        async with connection.cursor() as cursor:
            yield cursor
    finally:
        await connection.ensure_closed()


async def _connect(url: str) -> Any:
    parts = urlsplit(url)
    return await asyncmy.connect(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=unquote(parts.username or "root"),
        password=unquote(parts.password or ""),
        database=parts.path.strip("/") or None,
        connect_timeout=5,
        autocommit=True,
    )
