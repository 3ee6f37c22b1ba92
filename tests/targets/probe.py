"""Counts calls under way, in whatever thread, and lets a test wait for a count instead of sleeping."""

from __future__ import annotations

import asyncio
from threading import Condition
from types import TracebackType

_DEADLINE_SECONDS = 20


class Probe:
    """`with probe:` around the body of a call; `await probe.settles_at(n)` in the test."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._running = 0

    def __enter__(self) -> None:
        self._add(1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._add(-1)

    async def settles_at(self, count: int) -> None:
        """Return once exactly so many calls are under way."""
        has_settled = await asyncio.to_thread(self._wait, count)
        assert has_settled, f"waited for {count} calls under way, but there are {self._running}"

    def _wait(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._running == count, _DEADLINE_SECONDS)

    def _add(self, count: int) -> None:
        with self._changed:
            self._running += count
            self._changed.notify_all()
