"""A world of its own for every test: on SQLite, or on every SQL store where it is about what a store must bear."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ksana.stores.open import open_store
from tests.api.tasks.world import World, open_world
from tests.kit.sink import Sink
from tests.services.databases import SharedDatabase
from tests.services.loop import LoopThread


async def migrate(url: str) -> None:
    store = open_store(url)
    await store.open()
    await store.close()


@pytest.fixture(scope="session")
def migrated_tasks_file(tmp_path_factory: pytest.TempPathFactory, service_loop: LoopThread) -> Path:
    path = tmp_path_factory.mktemp("tasks") / "migrated.db"
    service_loop.run(migrate(f"sqlite:///{path}"))
    return path


@pytest.fixture
def sqlite_tasks_url(migrated_tasks_file: Path, tmp_path: Path) -> str:
    shutil.copy(migrated_tasks_file, tmp_path / "ksana.db")
    return f"sqlite:///{tmp_path}/ksana.db"


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
