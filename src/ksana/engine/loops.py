"""A duty that repeats until it is told to stop, and keeps going when the store goes away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from ksana.domain.errors import StoreUnavailable
from ksana.domain.ports import Clock, Observer

log = logging.getLogger(__name__)

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


class Backoff:
    """How long to leave a store alone that does not answer: a little longer each time, never longer than two seconds."""

    def __init__(self) -> None:
        self._pause = _FIRST_PAUSE

    def next(self) -> float:
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE)
        return pause

    def reset(self) -> None:
        self._pause = _FIRST_PAUSE


class StoreHealth:
    """Whether the store answers, as all loops of a node have last seen it."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers
        self.available = True
        self.outages = 0

    def failed(self, error: StoreUnavailable) -> None:
        if self.available:
            self.available = False
            self.outages += 1
            for observer in self._observers:
                observer.on_store(False, str(error))

    def answered(self) -> None:
        if not self.available:
            self.available = True
            for observer in self._observers:
                observer.on_store(True, "")


class Loop:
    """One duty: `run_once` does what there is to do and says when it wants to be asked again (None: at the next poll)."""

    name = "loop"

    def __init__(self, clock: Clock, health: StoreHealth, poll: timedelta) -> None:
        self._clock = clock
        self._health = health
        self._poll = poll
        self._wake = asyncio.Event()
        self._stopping = False

    async def run_once(self) -> datetime | None:
        raise NotImplementedError

    def wake(self) -> None:
        """There may be something to do now."""
        self._wake.set()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Do the duty until stopped. A store that is away pauses it; an unexpected error is logged and tried again."""
        backoff = Backoff()
        while not self._stopping:
            self._wake.clear()
            try:
                again_at = await self.run_once()
                self._health.answered()
                backoff.reset()
            except StoreUnavailable as error:
                self._health.failed(error)
                await asyncio.sleep(backoff.next())
                continue
            except Exception:
                log.exception("the %s failed and goes on", self.name)
                await asyncio.sleep(backoff.next())
                continue
            await self._rest(again_at)

    async def _rest(self, again_at: datetime | None) -> None:
        pause = self._poll
        if again_at is not None:
            pause = min(pause, again_at - self._clock.now())
        if pause > timedelta(0):
            try:
                async with asyncio.timeout(pause.total_seconds()):
                    await self._wake.wait()
            except TimeoutError:
                pass
