"""An event loop whose time stands still until it is moved, and which knows when everybody waits for nothing else."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, Final

_Events = list[tuple[selectors.SelectorKey, int]]

# Threads and sockets know nothing of the virtual time; this much real time they get before a test fails, or goes on.
_PATIENCE: Final = 30.0
_GRACE: Final = 1.0


class _Selector(selectors.DefaultSelector):
    """Asks the loop what to do whenever there is nothing to do."""

    rest: Callable[[Callable[[float | None], _Events]], _Events]

    def select(self, timeout: float | None = None) -> _Events:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        return self.rest(super().select)


class VirtualLoop(asyncio.SelectorEventLoop):
    """`outside` counts what is done in threads: time does not pass meanwhile."""

    def __init__(self) -> None:
        selector = _Selector()
        selector.rest = self._rest
        self._sockets = selector
        self._seconds = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = itertools.count()
        self._resting: list[asyncio.Future[None]] = []
        self._flows = False
        self.outside = 0
        self.is_talking: Callable[[], bool] = lambda: False
        """Whether somebody may be waiting for an answer from a socket."""
        super().__init__(selector)
        self._own_sockets = len(selector.get_map())

    def time(self) -> float:
        return self._seconds

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = super().call_at(when, callback, *args, context=context)
        heapq.heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    @property
    def next_timer(self) -> float | None:
        """When the next timer rings that nobody has canceled."""
        timers = self._timers
        while timers and (timers[0][0] <= self._seconds or timers[0][2].cancelled()):
            heapq.heappop(timers)
        return timers[0][0] if timers else None

    def move_to(self, seconds: float) -> None:
        """Let it be so late."""
        self._seconds = max(self._seconds, seconds)

    def flow(self) -> None:
        """From here on let time pass by itself."""
        self._flows = True

    async def at_rest(self) -> None:
        """Wait until everybody waits for time to pass."""
        future: asyncio.Future[None] = self.create_future()
        self._resting.append(future)
        await future

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        self.outside += 1
        future.add_done_callback(self._came_back)
        return future

    def _came_back(self, future: asyncio.Future[Any]) -> None:
        self.outside -= 1

    def _rest(self, select: Callable[[float | None], _Events]) -> _Events:
        """Nothing is ready. Wait for threads; else say so to whoever asked; else wait for the test."""
        if self.outside:
            events = select(_PATIENCE)
            if not events:
                self._tell(AssertionError(f"a function has not come back from its thread in {_PATIENCE:g} s"))
            return events
        if self._resting:
            has_sockets = len(self._sockets.get_map()) > self._own_sockets
            if has_sockets and self.is_talking() and (events := select(_GRACE)):
                return events
            self._tell(None)
            return []
        if self._flows and (at := self.next_timer) is not None:
            self.move_to(at)
            return []
        return select(None)

    def _tell(self, error: AssertionError | None) -> None:
        resting, self._resting = self._resting, []
        for future in resting:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
