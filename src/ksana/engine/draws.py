"""What decisions must not invent themselves: run ids reserved in blocks, jitter, callback tokens."""

from __future__ import annotations

import random
import secrets
from collections import deque

from ksana.domain.fires import Draws
from ksana.domain.ports import Store

_SMALLEST_BLOCK = 50
_LARGEST_BLOCK = 5000


class IdsExhausted(Exception):
    """More runs were decided than ids were reserved; what is left is decided in the next round."""


class IdPool:
    """Ids of one kind, fetched in blocks that grow with the appetite for them: a quiet node leaves few ids unused when
    it stops, a busy one seldom has to ask. Taking one never waits and is safe from any thread."""

    def __init__(self, store: Store, what: str) -> None:
        self._store = store
        self._what = what
        self._free: deque[int] = deque()
        self._block = _SMALLEST_BLOCK

    async def ensure(self, count: int) -> None:
        """Have at least that many ids at hand."""
        # Others may take while this waits, so it looks again after every block.
        while (missing := count - len(self._free)) > 0:
            self._free.extend(await self._store.reserve_ids(self._what, max(missing, self._block)))
            self._block = min(self._block * 2, _LARGEST_BLOCK)

    def take(self) -> int:
        try:
            return self._free.popleft()
        except IndexError:
            raise IdsExhausted from None

    async def next(self) -> int:
        await self.ensure(1)
        return self.take()

    async def in_a_row(self, count: int) -> range:
        """That many ids which follow each other without a gap."""
        free = self._free
        if 0 < count <= len(free) and free[count - 1] - free[0] == count - 1:
            return range(free[0], [free.popleft() for _ in range(count)][-1] + 1)
        return await self._store.reserve_ids(self._what, count)


class OneRun:
    """Draws for a single run whose id is taken beforehand, so that nobody else can take the last one meanwhile."""

    def __init__(self, run_id: int, draws: Draws) -> None:
        self._run_id = run_id
        self.jitter = draws.jitter
        self.token = draws.token

    def run_id(self) -> int:
        return self._run_id


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
