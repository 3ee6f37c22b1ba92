"""One suite, every store: `store` is each in turn. A new one joins by its name and a fixture `<name>_stores`."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from ksana.domain.ports import Store
from ksana.stores.open import open_store
from ksana.stores.sql.statements import SET_ROLLED
from ksana.stores.sql.store import SqlStore
from tests.kit.migrated import migrate
from tests.services.databases import FreshDatabase, SharedDatabase

STORES = ("sqlite", "postgres", "mysql", "json", "redis")
SQL_STORES = ("sqlite", "postgres", "mysql")

MakeStore = Callable[[], Store]
"""Gives one more unopened store on the same data, as another node would have it."""

Reopen = Callable[[], Awaitable[Store]]
"""Gives one more open store on the same data; it is closed after the test."""


@pytest.fixture(params=STORES)
def make_store(request: pytest.FixtureRequest) -> MakeStore:
    made: MakeStore = request.getfixturevalue(f"{request.param}_stores")
    return made


@pytest.fixture
async def store(make_store: MakeStore) -> AsyncIterator[Store]:
    store = make_store()
    await store.open()
    if isinstance(store, SqlStore):
        # The shared databases keep the rows of the migration, and one of them says how far minutes are summed up.
        await store._database.write(lambda tx: tx.run(SET_ROLLED, until=0))
    yield store
    await store.close()


@pytest.fixture
async def reopen(make_store: MakeStore) -> AsyncIterator[Reopen]:
    opened: list[Store] = []

    async def reopen() -> Store:
        opened.append(make_store())
        await opened[-1].open()
        return opened[-1]

    yield reopen
    for store in opened:
        await store.close()


@pytest.fixture
def sqlite_stores(migrated_sqlite_path: Path) -> MakeStore:
    return lambda: open_store(f"sqlite:///{migrated_sqlite_path}")


@pytest.fixture
def postgres_stores(postgres_shared: SharedDatabase) -> MakeStore:
    url = postgres_shared.emptied(migrate)
    # The server starts a process for every connection, and most tests need one.
    return lambda: open_store(url, pool_idle=1)


@pytest.fixture
def mysql_stores(mysql_shared: SharedDatabase) -> MakeStore:
    url = mysql_shared.emptied(migrate)
    return lambda: open_store(url)


@pytest.fixture
def json_stores(tmp_path: Path) -> MakeStore:
    directory = tmp_path / "json"
    return lambda: open_store(f"json:{directory}")


@pytest.fixture
def redis_stores(redis_url: str, fresh_redis_prefix: str) -> MakeStore:
    return lambda: open_store(f"{redis_url}?prefix={fresh_redis_prefix}")


@pytest.fixture
def fresh_sqlite_database(tmp_path: Path) -> FreshDatabase:
    """Name files of which there is none yet."""
    names = iter(range(1000))
    return lambda: f"sqlite:///{tmp_path}/fresh_{next(names)}.db"


@pytest.fixture
def fresh_json_database(tmp_path: Path) -> FreshDatabase:
    """Name directories of which there is none yet."""
    names = iter(range(1000))
    return lambda: f"json:{tmp_path}/fresh_{next(names)}"


@pytest.fixture(params=SQL_STORES)
def fresh_url(request: pytest.FixtureRequest) -> str:
    """A SQL database without a schema."""
    fresh: FreshDatabase = request.getfixturevalue(f"fresh_{request.param}_database")
    return fresh()
