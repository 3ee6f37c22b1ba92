"""Numbered migrations, each applied once and never edited afterwards: a checksum tells.

Any number of nodes may start at once; the first takes the lock and the others find the work done.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from importlib import resources
from typing import NamedTuple

from ksana.stores.sql.statements import Statement
from ksana.stores.sql.tx import Database, Tx

_NAME = re.compile(r"(\d{4})_(\w+)\.sql")

CREATE_LEDGER = Statement(
    "CREATE TABLE IF NOT EXISTS ksana_migrations"
    " (number {int} NOT NULL PRIMARY KEY, name {code} NOT NULL, checksum {code} NOT NULL) {table}"
)
APPLIED = Statement("SELECT number, checksum FROM ksana_migrations ORDER BY number")
RECORD = Statement("INSERT INTO ksana_migrations (number, name, checksum) VALUES (:number, :name, :checksum)")
SET_IDENTITY = Statement("INSERT INTO ksana_identity (one, value) VALUES (1, :value)")
START_ROLLED = Statement("INSERT INTO ksana_rolled (one, until_at) VALUES (1, 0)")


class Migration(NamedTuple):
    """One step of the schema."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]

    def statements(self) -> list[Statement]:
        lines = [line for line in self.text.splitlines() if not line.startswith("--")]
        return [Statement(part.strip()) for part in "\n".join(lines).split(";\n") if part.strip(" \n;")]


class SchemaMismatch(Exception):
    """The database was migrated by something other than this program; starting would risk what is in it."""


def known_migrations() -> list[Migration]:
    """The migrations this program carries, in order."""
    files = resources.files("ksana.stores.sql").joinpath("migrations").iterdir()
    return sorted(
        Migration(int(match[1]), match[2], file.read_text(encoding="utf-8").strip() + "\n")
        for file in files
        if (match := _NAME.fullmatch(file.name))
    )


async def pending(tx: Tx) -> list[Migration]:
    """What is still to be applied; SchemaMismatch if what was applied is not what this program knows."""
    await tx.run(CREATE_LEDGER)
    applied = dict(await tx.rows(APPLIED))
    known = known_migrations()
    unknown = sorted(set(applied) - {migration.number for migration in known})
    if unknown:
        raise SchemaMismatch(
            f"migration {unknown[-1]} is unknown here: the store is newer than this program; upgrade it"
        )
    for migration in known:
        if applied.get(migration.number, migration.checksum) != migration.checksum:
            raise SchemaMismatch(f"migration {migration.number} ({migration.name}) differs from the one applied")
    return [migration for migration in known if migration.number not in applied]


async def apply(tx: Tx) -> list[str]:
    """Bring the schema up to date inside the caller's lock; answer the names of what was applied."""
    todo = await pending(tx)
    for migration in todo:
        for statement in migration.statements():
            await tx.run(statement)
        if migration.number == 1:
            await tx.run(SET_IDENTITY, value=secrets.randbits(62))
            await tx.run(START_ROLLED)
        await tx.run(RECORD, number=migration.number, name=migration.name, checksum=migration.checksum)
    return [migration.name for migration in todo]


async def migrate(database: Database) -> list[str]:
    """Bring the schema up to date; answer the names of what was applied."""
    return await database.exclusive(apply)
