"""The schema: brought up once, by whoever comes first, and never guessed at."""

import asyncio
import sys
from typing import Any

import pytest

from ksana.domain.ports import Store
from ksana.stores.open import open_store
from ksana.stores.sql import migrate
from ksana.stores.sql.migrate import Migration, SchemaMismatch, known_migrations
from ksana.stores.sql.statements import Statement
from ksana.stores.sql.store import SqlStore
from ksana.stores.sql.tx import Database, Tx
from tests.stores.builders import NOW

OPEN = """
import asyncio, sys
from ksana.stores.open import open_store
async def main():
    store = open_store(sys.argv[1])
    await store.open()
    print(await store.identity(), end="")
    await store.close()
asyncio.run(main())
"""


def database_of(store: Store) -> Database:
    assert isinstance(store, SqlStore)
    return store._database


async def opened(url: str) -> Store:
    store = open_store(url)
    await store.open()
    return store


NEWER = Migration(9999, "more", "CREATE TABLE ksana_more (id {int} NOT NULL PRIMARY KEY) {table};\n")


def become_newer(patch: pytest.MonkeyPatch) -> None:
    """Be a program one migration newer than this one."""
    patch.setattr(migrate, "known_migrations", lambda: [*known_migrations(), NEWER])


async def test_a_fresh_database_is_brought_up_and_the_second_time_nothing_is_done(fresh_url: str) -> None:
    store = open_store(fresh_url)
    database = database_of(store)
    await database.open()
    assert await migrate.migrate(database) == [migration.name for migration in known_migrations()]
    assert await migrate.migrate(database) == []
    await store.ping()
    await store.close()


async def test_stores_opened_at_once_bring_the_schema_up_together(fresh_url: str) -> None:
    stores = await asyncio.gather(*(opened(fresh_url) for _ in range(3)))
    identities = [await store.identity() for store in stores]
    assert len(set(identities)) == 1
    assert (await stores[0].reserve_ids("job", 1)).start == 1
    for store in stores:
        await store.close()


async def test_processes_started_at_once_bring_the_schema_up_together(fresh_url: str) -> None:
    started = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", OPEN, fresh_url, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        for _ in range(2)
    ]
    said = await asyncio.gather(*(process.communicate() for process in started))
    assert [errors for _, errors in said] == [b"", b""]
    assert len({identity for identity, _ in said}) == 1


async def test_an_applied_migration_that_reads_differently_is_refused(fresh_url: str) -> None:
    store = await opened(fresh_url)
    forged = Statement("UPDATE ksana_migrations SET checksum = 'forged'")
    await database_of(store).write(lambda tx: tx.run(forged))
    await store.close()
    with pytest.raises(SchemaMismatch, match="differs"):
        await opened(fresh_url)


async def test_a_schema_newer_than_the_program_is_refused(fresh_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        become_newer(patch)
        await (await opened(fresh_url)).close()
    with pytest.raises(SchemaMismatch, match=r"9999 .*newer than this program"):
        await opened(fresh_url)


async def test_a_later_migration_is_applied_to_a_database_in_use(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(fresh_url)
    identity = await store.identity()
    become_newer(monkeypatch)
    assert await migrate.migrate(database_of(store)) == ["more"]
    assert await store.identity() == identity
    await store.close()


class CutShortError(Exception):
    """The power went."""


class Interrupted:
    """A transaction that breaks off after so many statements."""

    def __init__(self, tx: Tx, after: int) -> None:
        self._tx = tx
        self._left = after

    async def rows(self, statement: Statement, /, **values: Any) -> list[Any]:
        return await self._tx.rows(statement, **values)

    async def run(self, statement: Statement, /, **values: Any) -> int:
        if self._left == 0:
            raise CutShortError
        self._left -= 1
        return await self._tx.run(statement, **values)


async def test_a_migration_cut_short_is_taken_up_again(fresh_url: str) -> None:
    store = open_store(fresh_url)
    database = database_of(store)
    await database.open()
    statements = len(known_migrations()[0].statements())
    for after in (1, 3, 9, statements + 1, statements + 2, statements + 3):
        with pytest.raises(CutShortError):
            await database.exclusive(lambda tx, after=after: migrate.apply(Interrupted(tx, after)))  # type: ignore[arg-type,misc]
    assert await migrate.migrate(database) == [migration.name for migration in known_migrations()]
    assert (await store.reserve_ids("job", 2)) == range(1, 3)
    assert await store.roll_up(NOW) == 0
    await store.close()
