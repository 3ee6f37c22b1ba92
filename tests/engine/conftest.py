"""The world the engine is tried in: on SQLite, or on every store where a test is about what the store must bear."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ksana.domain.ports import Store
from ksana.stores.open import open_store
from tests.kit.migrated import migrate
from tests.kit.world import World
from tests.services.databases import SharedDatabase

Create = Callable[..., Awaitable[World]]


@pytest.fixture
def sqlite_world_url(migrated_sqlite_path: Path) -> str:
    return f"sqlite:///{migrated_sqlite_path}"


@pytest.fixture
def postgres_world_url(postgres_shared: SharedDatabase) -> str:
    return postgres_shared.emptied(migrate)


@pytest.fixture
def mysql_world_url(mysql_shared: SharedDatabase) -> str:
    return mysql_shared.emptied(migrate)


@pytest.fixture
def json_world_url(tmp_path: Path) -> str:
    return f"json:{tmp_path}/world"


@pytest.fixture
def redis_world_url(redis_url: str, fresh_redis_prefix: str) -> str:
    return f"{redis_url}?prefix={fresh_redis_prefix}"


class Worlds:
    """Makes worlds on one database, and puts their stores away after the test."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stores: list[Store] = []
        self._worlds: list[World] = []

    async def _store(self) -> Store:
        # PostgreSQL starts a process for every connection, and most tests need one.
        store = open_store(self._url, pool_idle=1)
        await store.open()
        self._stores.append(store)
        return store

    async def create(self, **options: Any) -> World:
        world = World(self._store, **options)
        self._worlds.append(world)
        return await world.open()

    async def close(self) -> None:
        for world in self._worlds:
            await world.close()
        for store in self._stores:
            await store.close()


@pytest.fixture
async def create_world(sqlite_world_url: str) -> AsyncIterator[Create]:
    """Make a world with options of the engine said aloud."""
    worlds = Worlds(sqlite_world_url)
    yield worlds.create
    await worlds.close()


@pytest.fixture
async def create_quick_world(json_world_url: str) -> AsyncIterator[Create]:
    """The same on the store that costs least, for long lives."""
    worlds = Worlds(json_world_url)
    yield worlds.create
    await worlds.close()


@pytest.fixture
async def world(create_world: Create) -> World:
    return await create_world()


@pytest.fixture
async def quick_world(create_quick_world: Create) -> World:
    return await create_quick_world()


@pytest.fixture(params=["sqlite", "postgres", "mysql", "json", "redis"])
async def create_any_world(request: pytest.FixtureRequest) -> AsyncIterator[Create]:
    """The same on every store."""
    worlds = Worlds(request.getfixturevalue(f"{request.param}_world_url"))
    yield worlds.create
    await worlds.close()


@pytest.fixture
async def any_world(create_any_world: Create) -> World:
    return await create_any_world()
