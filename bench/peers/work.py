"""What a peer is given to do, and the clock on it: from the first execution until its store holds nothing more."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

BODY = '{"event":"order.received","payload":{"order_id":12345}}'
_LOOK_EVERY = 0.02


class Work:
    """One unit of work, as often as it is asked for: nothing, or one HTTP call."""

    def __init__(self) -> None:
        self.where, self.count, self.mode, self.sink = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
        self.executed = 0
        self._began = 0.0
        self._session: Any = None

    def noop(self) -> None:
        self._began = self._began or time.perf_counter()
        self.executed += 1

    async def run(self) -> None:
        self.noop()
        if self.mode == "http":
            self._session = self._session or aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64))
            async with self._session.post(self.sink, data=BODY) as response:
                await response.read()
                assert response.status == 200

    async def until_empty(self, left: Callable[[], Awaitable[int]]) -> None:
        """Wait until everything was executed and the store says that nothing is left; then tell the rate."""
        # Only the store knows, and it does not tell by itself.
        while self.executed < self.count or await left():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_EVERY)
        self.tell()
        if self._session is not None:
            await self._session.close()

    def tell(self) -> None:
        assert self.executed >= self.count
        print(json.dumps({"rate": self.count / (time.perf_counter() - self._began)}), flush=True)
