"""A lock in Redis that lapses by itself. Only the holder of its token can release or extend it."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from ksana.domain.errors import InvalidArgument
from ksana.periodic.errors import LockError
from ksana.periodic.redis_errors import redis_errors

if TYPE_CHECKING:
    from redis.asyncio import Redis

_MILLISECOND: Final = timedelta(milliseconds=1)

# Asked and done in one step: between a question and a deletion the lock could lapse and become somebody else's.
_RELEASE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
_EXTEND: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
"""


class DistributedLock:
    """A lock that is held until it is released or its time is up. Made by `acquire_lock`."""

    def __init__(self, client: Redis, key: str, token: str) -> None:
        self.key = key
        self.token = token
        self._client = client

    async def release(self) -> bool:
        """Give it up; False if it was not ours any more."""
        try:
            return bool(await self._client.eval(_RELEASE, 1, self.key, self.token))
        except redis_errors() as error:
            raise LockError(f"failed to release lock: {error}") from error

    async def extend(self, ttl: float | timedelta) -> bool:
        """Hold it for that much longer from now on, a number being seconds; False if it was not ours any more."""
        try:
            return bool(await self._client.eval(_EXTEND, 1, self.key, self.token, str(millis_of(ttl))))
        except redis_errors() as error:
            raise LockError(f"failed to extend lock: {error}") from error


async def acquire_lock(client: Redis, key: str, ttl: float | timedelta) -> DistributedLock | None:
    """Take a lock for so long, a number being seconds; None if somebody holds it."""
    token = str(uuid.uuid4())
    try:
        is_ours = await client.set(key, token, nx=True, px=millis_of(ttl))
    except redis_errors() as error:
        raise LockError(f"failed to acquire lock: {error}") from error
    return DistributedLock(client, key, token) if is_ours else None


def millis_of(ttl: float | timedelta) -> int:
    """A span in milliseconds; InvalidArgument unless it is at least one."""
    span = ttl if isinstance(ttl, timedelta) else timedelta(seconds=ttl)
    if span < _MILLISECOND:
        raise InvalidArgument.of("ttl", "must be at least a millisecond")
    return span // _MILLISECOND
