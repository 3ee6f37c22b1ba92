"""What decisions must not invent themselves: run ids reserved in blocks, jitter, callback tokens."""

from __future__ import annotations

import random
import secrets
from collections import deque

from ksana.domain.ports import Store

_BLOCK = 50


class IdsExhausted(Exception):
    """More runs were decided than ids were reserved; what is left is decided in the next round."""


class IdPool:
    """Ids of one kind, fetched in blocks. Taking one never waits and is safe from any thread."""

    def __init__(self, store: Store, what: str) -> None:
        self._store = store
        self._what = what
        self._free: deque[int] = deque()

    async def ensure(self, count: int) -> None:
        """Have at least that many ids at hand."""
        missing = count - len(self._free)
        if missing > 0:
            self._free.extend(await self._store.reserve_ids(self._what, max(missing, _BLOCK)))

    def take(self) -> int:
        try:
            return self._free.popleft()
        except IndexError:
            raise IdsExhausted from None

    async def next(self) -> int:
        await self.ensure(1)
        return self.take()


class SystemDraws:
    """Ids from the pool, the rest from the system's randomness."""

    def __init__(self, run_ids: IdPool) -> None:
        self._run_ids = run_ids

    def run_id(self) -> int:
        return self._run_ids.take()

    def jitter(self) -> float:
        return random.random()  # noqa: S311 (spreads load, guards nothing)

    def token(self) -> str:
        return secrets.token_hex(16)
