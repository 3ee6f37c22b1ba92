"""The system's clock, and a watch on it: somebody setting the wall clock must be noticed, not guessed at later."""

from __future__ import annotations

import asyncio
import time
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

    def __init__(self, monotonic: float | None = None) -> None:
        self._wall: datetime | None = None
        self._monotonic = 0.0 if monotonic is None else monotonic

    def jump(self, now: datetime, monotonic: float | None = None) -> timedelta | None:
        """How far the wall clock was set since the last look, if it was."""
        ticks = time.monotonic() if monotonic is None else monotonic
        before, self._wall = self._wall, now
        passed, self._monotonic = ticks - self._monotonic, ticks
        if before is None:
            return None
        jump = (now - before) - timedelta(seconds=passed)
        return jump if abs(jump) > self.THRESHOLD else None
