"""Timers on SQLite, or on every store where a test is about what the store must bear; and real calls to a real sink."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api.jobs.timers import Timers
from tests.api.v2.world import World, open_world
from tests.engine.conftest import (  # noqa: F401  # fixtures are found by their names
    Worlds,
    json_world_url,
    mysql_world_url,
    postgres_world_url,
    sqlite_world_url,
)
from tests.kit.sink import Sink

MakeTimers = Callable[..., Awaitable[Timers]]


class ManyTimers(Worlds):
    async def create(self, **options: Any) -> Timers:
        timers = Timers(self._store, **options)
        self._worlds.append(timers)
        await timers.open()
        return timers


@pytest.fixture
async def make_timers(sqlite_world_url: str) -> AsyncIterator[MakeTimers]:  # noqa: F811
    """Make timers with options of the engine, or defaults of jobs, said aloud."""
    worlds = ManyTimers(sqlite_world_url)
    yield worlds.create
    await worlds.close()


@pytest.fixture
async def timers(make_timers: MakeTimers) -> Timers:
    return await make_timers()


@pytest.fixture(params=["sqlite", "postgres", "mysql", "json"])
async def any_timers(request: pytest.FixtureRequest) -> AsyncIterator[Timers]:
    """The same on every store."""
    worlds = ManyTimers(request.getfixturevalue(f"{request.param}_world_url"))
    yield await worlds.create()
    await worlds.close()


@pytest.fixture
async def world(migrated_sqlite_path: Path) -> AsyncIterator[World]:
    """The app with its real target."""
    async with open_world(migrated_sqlite_path) as world:
        yield world


@pytest.fixture
async def sink() -> AsyncIterator[Sink]:
    async with Sink() as sink:
        yield sink
