"""The system's clock, and a watch on it: somebody setting the wall clock must be noticed, not guessed at later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


class SystemClock:
    """Wall-clock time for decisions; waiting follows the monotonic clock, as the event loop does."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, span: timedelta) -> None:
        await asyncio.sleep(max(0.0, span.total_seconds()))


class ClockWatch:
    """Compares how far the wall clock and the monotonic clock have come."""

    THRESHOLD = timedelta(seconds=1)

    def __init__(self, ticks: Callable[[], float] = time.monotonic) -> None:
        self._ticks = ticks
        self._wall: datetime | None = None
        self._ticked = 0.0

    def jump(self, now: datetime) -> timedelta | None:
        """How far the wall clock was set since the last look, if it was."""
        ticked = self._ticks()
        before, self._wall = self._wall, now
        passed, self._ticked = ticked - self._ticked, ticked
        if before is None:
            return None
        jump = (now - before) - timedelta(seconds=passed)
        return jump if abs(jump) > self.THRESHOLD else None
