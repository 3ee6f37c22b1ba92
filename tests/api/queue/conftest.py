"""The queue on SQLite, or on every store where a test is about what the store must bear."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.api.queue.world import Queue
from tests.engine.conftest import (  # noqa: F401  # fixtures are found by their names
    Worlds,
    json_world_url,
    mysql_world_url,
    postgres_world_url,
    redis_world_url,
    sqlite_world_url,
)

MakeQueue = Callable[..., Awaitable[Queue]]


class ManyQueues(Worlds):
    async def create(self, **options: Any) -> Queue:
        queue = Queue(self._store, **options)
        self._worlds.append(queue)
        await queue.open()
        return queue


@pytest.fixture
async def make_queue(sqlite_world_url: str) -> AsyncIterator[MakeQueue]:  # noqa: F811
    worlds = ManyQueues(sqlite_world_url)
    yield worlds.create
    await worlds.close()


@pytest.fixture
async def queue(make_queue: MakeQueue) -> Queue:
    return await make_queue()


@pytest.fixture(params=["sqlite", "postgres", "mysql", "json", "redis"])
async def any_queue(request: pytest.FixtureRequest) -> AsyncIterator[Queue]:
    """The same on every store."""
    worlds = ManyQueues(request.getfixturevalue(f"{request.param}_world_url"))
    yield await worlds.create()
    await worlds.close()
