"""PostgreSQL for the tests."""

import getpass
import os
import signal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from tests.services.names import PREFIX
from tests.services.programs import find_program
from tests.services.service import AdmissionError, Recipe


class Postgres:
    store = "postgres"
    variable = "KSANA_TEST_POSTGRES"
    package = "postgresql"

    def usual_urls(self) -> list[str]:
        users = dict.fromkeys([os.environ.get("USER") or getpass.getuser(), "root", "postgres"])
        return [f"postgresql://{user}@127.0.0.1:5432/postgres" for user in users]

    async def admit(self, url: str) -> None:
        try:
            connection = await asyncpg.connect(url, timeout=5)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise AdmissionError(f"{_shown(url)}: {error}") from error
        try:
            allowed = await connection.fetchval(
                "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
            )
        finally:
            await connection.close()
        if not allowed:
            raise AdmissionError(f"{_shown(url)}: the user may not create databases")

    def recipe(self, directory: Path, port: int) -> Recipe | None:
        initdb, postgres = find_program("initdb"), find_program("postgres")
        if initdb is None or postgres is None:
            return None
        data = str(directory / "data")
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            # The path of a checkout may be longer than a socket's name is allowed to be.
            "unix_socket_directories": "",
            "max_connections": "300",
            # It may all be in memory.
            "max_wal_size": "128MB",
            # What helps only after a crash of the machine, or to copies elsewhere.
            "full_page_writes": "off",
            "wal_level": "minimal",
            "max_wal_senders": "0",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return Recipe(
            prepare=[[initdb, "-D", data, "-U", "ksana", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]],
            serve=[postgres, "-D", data, *options],
            url=f"postgresql://ksana@127.0.0.1:{port}/postgres",
            # An immediate shutdown: the data is thrown away, but the shared memory has to be given back.
            stop_signal=signal.SIGQUIT,
            user="postgres",
        )

    async def leftovers(self, url: str, *, in_use_too: bool) -> list[str]:
        connection = await asyncpg.connect(url)
        try:
            rows = await connection.fetch(
                "SELECT datname FROM pg_database d WHERE starts_with(datname, $1)"
                " AND ($2 OR NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.datid = d.oid))",
                PREFIX,
                in_use_too,
            )
        finally:
            await connection.close()
        return [row["datname"] for row in rows]

    async def create(self, url: str, name: str) -> str:
        connection = await asyncpg.connect(url)
        try:
            # template0 has no visitors; a connection to template1 would make the copy fail.
            await connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        finally:
            await connection.close()
        return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))

    async def drop(self, url: str, names: list[str]) -> None:
        connection = await asyncpg.connect(url)
        try:
            for name in names:
                await connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        finally:
            await connection.close()

    async def visit(self, url: str) -> "PostgresVisit":
        connection = await asyncpg.connect(url)
        rows = await connection.fetch(
            "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        is_super = await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        return PostgresVisit(connection, [row[0] for row in rows], is_super)


class PostgresVisit:
    def __init__(self, connection: Any, tables: list[str], is_super: bool) -> None:
        self._connection = connection
        self._tables = tables
        self._is_super = is_super

    async def filled_tables(self) -> list[str]:
        if not self._tables:
            return []
        probes = [f"SELECT {n} WHERE EXISTS (SELECT FROM {table})" for n, table in enumerate(self._tables)]
        return [self._tables[row[0]] for row in await self._connection.fetch(" UNION ALL ".join(probes))]

    async def empty(self, keep: frozenset[str]) -> None:
        tables = [table for table in await self.filled_tables() if table not in keep]
        if not tables:
            return
        if self._is_super:
            # Ten times quicker than TRUNCATE on small tables; the role turns foreign keys off.
            deletes = "; ".join(f"DELETE FROM {table}" for table in tables)
            await self._connection.execute(
                f"BEGIN; SET LOCAL lock_timeout = '5s'; SET LOCAL session_replication_role = replica; {deletes}; COMMIT"
            )
        else:
            await self._connection.execute(f"TRUNCATE {', '.join(tables)} CASCADE")

    async def close(self) -> None:
        await self._connection.close()


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.username}@{parts.hostname}:{parts.port or 5432}"
