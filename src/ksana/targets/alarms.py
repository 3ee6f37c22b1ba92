"""Alarms for many waits at once. A timer of the loop costs more than a short call, and hardly one ever rings."""

from __future__ import annotations

import asyncio
from typing import Protocol

# Loops count in milliseconds, so a timer may ring that much before its time.
_EARLY = 0.001


class Rung(Protocol):
    """Whoever an alarm may ring for."""

    def ring(self) -> None: ...


class Alarms:
    """Rings for those whose time has come. All that wait equally long are due in the order in which they came, so that
    one timer, for the first, does for them all."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._due: dict[float, dict[Rung, float]] = {}
        self._timers: dict[float, asyncio.TimerHandle] = {}

    def set(self, who: Rung, seconds: float) -> None:
        at = self.loop.time() + seconds
        due = self._due.get(seconds)
        if due is None:
            self._due[seconds] = {who: at}
            self._timers[seconds] = self.loop.call_at(at, self._ring, seconds)
        else:
            due[who] = at

    def clear(self, who: Rung, seconds: float) -> None:
        """Whatever has come of it, this one waits no more."""
        due = self._due.get(seconds)
        if due is not None and due.pop(who, None) is not None and not due:
            del self._due[seconds]
            self._timers.pop(seconds).cancel()

    def _ring(self, seconds: float) -> None:
        due, now = self._due.pop(seconds), self.loop.time() + _EARLY
        del self._timers[seconds]
        late = [who for who, at in due.items() if at <= now]
        for who in late:
            del due[who]
        if due:
            self._due[seconds] = due
            self._timers[seconds] = self.loop.call_at(next(iter(due.values())), self._ring, seconds)
        for who in late:
            who.ring()
