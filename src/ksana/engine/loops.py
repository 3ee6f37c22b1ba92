"""A duty that repeats until it is told to stop, and keeps going when the store goes away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from ksana.domain.errors import StoreUnavailable
from ksana.domain.ports import Clock, Observer

log = logging.getLogger(__name__)

_FIRST_PAUSE = timedelta(milliseconds=50)
_LONGEST_PAUSE = timedelta(seconds=2)


async def rest(clock: Clock, wake: asyncio.Event, span: timedelta) -> bool:
    """Wait for the event, but no longer than that on this clock; answer whether the whole span passed."""
    if span <= timedelta(0):
        return True
    is_over = False

    async def ring() -> None:
        nonlocal is_over
        await clock.sleep(span)
        is_over = True
        wake.set()

    alarm = asyncio.ensure_future(ring())
    try:
        await wake.wait()
    finally:
        alarm.cancel()
    return is_over


class Rests:
    """Rests one after the other. An alarm that was set and rings early enough is left to ring, by whoever is woken
    before: setting one costs more than a look that comes too early."""

    def __init__(self, clock: Clock, wake: asyncio.Event) -> None:
        self._clock = clock
        self._wake = wake
        self._alarm: asyncio.Task[None] | None = None
        self._rings_at: datetime | None = None
        self._has_rung = False

    async def rest(self, span: timedelta) -> bool:
        """Wait for the event, but no longer than that on this clock; answer whether the alarm rang since the last."""
        if span <= timedelta(0):
            return True
        until = self._clock.now() + span
        if not self._has_rung and (self._rings_at is None or until < self._rings_at):
            self.stop()
            self._rings_at = until
            self._alarm = asyncio.create_task(self._ring(span))
        if not self._has_rung:
            await self._wake.wait()
        has_rung, self._has_rung = self._has_rung, False
        return has_rung

    def stop(self) -> None:
        """Set no alarm off any more."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._rings_at = None

    async def _ring(self, span: timedelta) -> None:
        await self._clock.sleep(span)
        self._alarm = self._rings_at = None
        self._has_rung = True
        self._wake.set()


async def ended(clock: Clock, tasks: Collection[asyncio.Task[Any]], limit: timedelta) -> bool:
    """Wait for tasks to end, but no longer than that on this clock; answer whether all did."""
    alarm = asyncio.ensure_future(clock.sleep(limit))
    try:
        pending: set[asyncio.Future[Any]] = {task for task in tasks if not task.done()}
        while pending and not alarm.done():
            await asyncio.wait({*pending, alarm}, return_when=asyncio.FIRST_COMPLETED)
            pending = {task for task in pending if not task.done()}
        return not pending
    finally:
        alarm.cancel()


class Backoff:
    """How long to leave a store alone that does not answer: a little longer each time, at most two seconds."""

    def __init__(self) -> None:
        self._pause = _FIRST_PAUSE

    def next(self) -> timedelta:
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE)
        return pause

    def reset(self) -> None:
        self._pause = _FIRST_PAUSE


class StoreHealth:
    """Whether the store answers, as the duties of a node have last seen it. It is away until it answers each of them
    again: one that is full still reads for the one and does not write for the other."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers
        self._failing: set[str] = set()
        self.outages = 0
        self.error = ""

    @property
    def available(self) -> bool:
        return not self._failing

    def failed(self, error: StoreUnavailable, duty: str = "runner") -> None:
        was_available = self.available
        self._failing.add(duty)
        self.error = str(error)
        if was_available:
            self.outages += 1
            for observer in self._observers:
                observer.on_store(False, self.error)

    def answered(self, duty: str = "runner") -> None:
        if duty not in self._failing:
            return
        self._failing.discard(duty)
        if self.available:
            for observer in self._observers:
                observer.on_store(True, "")


class Loop:
    """One duty: `run_once` does what there is to do and says when to ask it again (None: at the next poll)."""

    name = "loop"

    def __init__(self, clock: Clock, health: StoreHealth, poll: timedelta) -> None:
        self._clock = clock
        self._health = health
        self._poll = poll
        self._wake = asyncio.Event()
        self._stopping = False
        self._backoff = Backoff()

    async def run_once(self) -> datetime | None:
        raise NotImplementedError

    def wake(self) -> None:
        """There may be something to do now."""
        self._wake.set()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Do the duty until stopped."""
        while not self._stopping:
            self._wake.clear()
            await rest(self._clock, self._wake, await self.attend())

    async def attend(self) -> timedelta:
        """Do the duty once and answer how long to rest. A store that is away pauses it; an unexpected error is logged
        and tried again."""
        try:
            again_at = await self.run_once()
        except StoreUnavailable as error:
            self._health.failed(error, self.name)
            return self._backoff.next()
        except Exception:
            log.exception("the %s failed and goes on", self.name)
            return self._backoff.next()
        self._health.answered(self.name)
        self._backoff.reset()
        return self._poll if again_at is None else min(self._poll, again_at - self._clock.now())
