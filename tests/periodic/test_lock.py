"""The lock: the document's unit tests of acquiring, releasing, expiring and being wanted by many (B-71)."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from ksana.domain.errors import InvalidArgument
from ksana.periodic import LockError, acquire_lock
from tests.periodic.room import DEADLINE


@pytest.fixture
def key(fresh_redis_prefix: str) -> str:
    return f"{fresh_redis_prefix}lock"


async def test_a_lock_is_held_by_one_until_it_is_released(client: Redis, key: str) -> None:
    """B-28, B-29, B-68, B-71."""
    lock = await acquire_lock(client, key, 5)
    assert lock is not None
    kept = await client.get(key)
    assert isinstance(kept, bytes)
    assert str(uuid.UUID(kept.decode())) == lock.token
    assert 0 < await client.pttl(key) <= 5000
    assert await acquire_lock(client, key, 5) is None
    assert await lock.release()
    assert not await lock.release()
    again = await acquire_lock(client, key, timedelta(seconds=5))
    assert again is not None
    assert again.token != lock.token


async def test_only_the_owner_releases_and_extends(client: Redis, key: str) -> None:
    """B-29, B-30, B-68."""
    lock = await acquire_lock(client, key, 5)
    assert lock is not None
    assert await lock.extend(60)
    assert 55_000 < await client.pttl(key) <= 60_000
    await client.set(key, "somebody else", px=4000)
    assert not await lock.release()
    assert not await lock.extend(60)
    assert await client.get(key) == b"somebody else"
    assert await client.pttl(key) <= 4000


async def test_a_lock_lapses_by_itself(client: Redis, key: str) -> None:
    """B-34, B-71: and its old owner cannot touch the next one's."""
    lock = await acquire_lock(client, key, 0.02)
    assert lock is not None
    async with asyncio.timeout(DEADLINE):
        while (other := await acquire_lock(client, key, 5)) is None:
            pass
    assert not await lock.release()
    assert await other.release()


async def test_of_many_that_want_it_one_gets_it(client: Redis, key: str) -> None:
    """B-71."""
    locks = await asyncio.gather(*(acquire_lock(client, key, 5) for _ in range(10)))
    assert sum(lock is not None for lock in locks) == 1


async def test_a_redis_that_is_away_is_an_error_and_not_a_lock_held(client: Redis, key: str) -> None:
    """B-28."""
    lock = await acquire_lock(client, key, 5)
    assert lock is not None
    async with Redis(port=1, retry=Retry(NoBackoff(), 0)) as nobody:
        with pytest.raises(LockError, match=r"^failed to acquire lock: "):
            await acquire_lock(nobody, key, 5)
        lock._client = nobody
        with pytest.raises(LockError, match=r"^failed to release lock: "):
            await lock.release()
        with pytest.raises(LockError, match=r"^failed to extend lock: "):
            await lock.extend(5)


async def test_a_lock_needs_time(client: Redis, key: str) -> None:
    with pytest.raises(InvalidArgument, match="ttl"):
        await acquire_lock(client, key, 0)
