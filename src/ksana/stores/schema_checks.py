"""Whether the schema of an SQL store is the one this program knows; it is looked at and never changed."""

from __future__ import annotations

import sqlite3
from importlib import import_module
from typing import Any, Final

import msgspec

from ksana.domain.errors import KsanaError


class Schema(msgspec.Struct, frozen=True):
    """How the schema stands: how many migrations are missing, or why this program cannot work with it."""

    known: int
    missing: int = 0
    trouble: str = ""


# Where the database of a scheme is, and what it calls the place its tables are in.
_DATABASES: Final = {
    "postgresql": ("ksana.stores.postgres", "PostgresDatabase", "current_schema()"),
    "mysql": ("ksana.stores.mysql", "MysqlDatabase", "DATABASE()"),
}


def schema_of(url: str) -> Schema | None:
    """The schema of the SQL server at this address; None if the store there has none."""
    import asyncio

    place = _DATABASES.get(url.partition(":")[0])
    if place is None:
        return None
    module, name, here = place
    try:
        return judged(asyncio.run(_applied(getattr(import_module(module), name)(url), here)))
    except KsanaError as error:
        return Schema(0, trouble=error.message)


def schema_in(database: sqlite3.Connection) -> Schema:
    """The schema of an open SQLite file; sqlite3.Error if it holds no store."""
    return judged(dict(database.execute("SELECT number, checksum FROM ksana_migrations")))


def judged(applied: dict[int, str]) -> Schema:
    """What these migrations, by number with their checksums, mean to this program."""
    from ksana.stores.sql.migrate import known_migrations

    known = {migration.number: migration.checksum for migration in known_migrations()}
    if applied.keys() - known.keys():
        return Schema(len(known), trouble="the store is newer than this program")
    changed = sorted(number for number, checksum in applied.items() if known[number] != checksum)
    if changed:
        return Schema(len(known), trouble=f"migration {changed[0]} differs from the one that was applied")
    return Schema(len(known), missing=len(known) - len(applied))


async def _applied(database: Any, here: str) -> dict[int, str]:
    from ksana.stores.sql.migrate import APPLIED
    from ksana.stores.sql.statements import Statement

    has_ledger = Statement(
        f"SELECT 1 FROM information_schema.tables WHERE table_schema = {here} AND table_name = 'ksana_migrations'"
    )

    async def read(tx: Any) -> dict[int, str]:
        return dict(await tx.rows(APPLIED)) if await tx.rows(has_ledger) else {}

    await database.open()
    try:
        found: dict[int, str] = await database.read(read)
    finally:
        await database.close()
    return found
