"""A room for schedulers on the Redis of the tests."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from tests.periodic.room import Room


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
async def room(client: Redis, fresh_redis_prefix: str) -> Room:
    return Room(client, fresh_redis_prefix.removesuffix(":"))
