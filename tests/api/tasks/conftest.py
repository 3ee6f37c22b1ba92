"""A world of its own for every test: on SQLite, or on every SQL store where it is about what a store must bear."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.tasks.world import World, open_world
from tests.kit.migrated import migrate
from tests.kit.sink import Sink
from tests.services.databases import SharedDatabase


@pytest.fixture
def sqlite_tasks_url(migrated_sqlite_path: Path) -> str:
    return f"sqlite:///{migrated_sqlite_path}"


@pytest.fixture
def postgres_tasks_url(postgres_shared: SharedDatabase) -> str:
    return postgres_shared.emptied(migrate)


@pytest.fixture
def mysql_tasks_url(mysql_shared: SharedDatabase) -> str:
    return mysql_shared.emptied(migrate)


@pytest.fixture
def json_tasks_url(tmp_path: Path) -> str:
    return f"json:{tmp_path}/json"


@pytest.fixture(params=["sqlite", "postgres", "mysql", "json"])
def any_tasks_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"{request.param}_tasks_url")
    return url


@pytest.fixture
async def world(sqlite_tasks_url: str, sink: Sink) -> AsyncIterator[World]:
    async with open_world(sqlite_tasks_url, sink) as world:
        yield world


@pytest.fixture
async def any_world(any_tasks_url: str, sink: Sink) -> AsyncIterator[World]:
    async with open_world(any_tasks_url, sink) as world:
        yield world
