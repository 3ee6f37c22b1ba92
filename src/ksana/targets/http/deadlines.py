"""Deadlines of exchanges. A timer for each would cost more than parsing the answer, and hardly any ever rings; those
that end within the same few milliseconds share one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

# How many shared timers a second has: nobody is told earlier than due, and at most this much later.
_PER_SECOND = 50

Expire = Callable[[], None]


class Deadlines:
    """Calls back, once each, those who have not been forgotten when their time is up."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[int, Expire]] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._last = 0

    def remember(self, deadline: float, expire: Expire) -> tuple[int, int]:
        """Call back when the loop's clock has reached the deadline; answer what to forget it by."""
        moment = int(deadline * _PER_SECOND) + 1
        waiting = self._waiting.get(moment)
        if waiting is None:
            waiting = self._waiting[moment] = {}
            timer = asyncio.get_running_loop().call_at(moment / _PER_SECOND, self._ring, moment)
            self._timers[moment] = timer
        self._last = number = self._last + 1
        waiting[number] = expire
        return moment, number

    def forget(self, place: tuple[int, int]) -> None:
        """The exchange is over."""
        moment, number = place
        if (waiting := self._waiting.get(moment)) is not None:
            waiting.pop(number, None)

    def close(self) -> None:
        """Ring no more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._waiting.clear()

    def _ring(self, moment: int) -> None:
        del self._timers[moment]
        for expire in self._waiting.pop(moment).values():
            expire()
