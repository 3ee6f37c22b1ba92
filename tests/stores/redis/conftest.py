"""Here `store` is the one on Redis, and `client` looks at what it keeps."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from tests.stores.conftest import MakeStore


@pytest.fixture
def make_store(redis_stores: MakeStore) -> MakeStore:
    return redis_stores


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[Redis]:
    client: Redis = Redis.from_url(redis_url)
    yield client
    await client.aclose()
