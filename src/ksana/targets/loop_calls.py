"""Calls of async functions, in the loop, each bounded by the timeout of its attempt. Nobody waits for one: whoever
began it is told.

A task costs more than a short call. So functions that never wait are called one after the other in the same task, each
in a context of its own. One that waits keeps the task it began in to itself: it may have told others which one it is.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Callable
from datetime import timedelta

from ksana.domain.durations import format_duration
from ksana.domain.outcomes import Outcome, Verdict
from ksana.engine.resuming import Resumed
from ksana.targets.alarms import Alarms
from ksana.targets.calls import Call, timed_out

# How long a coroutine may tidy up after it was cancelled before it is left to itself.
CANCEL_GRACE = timedelta(seconds=1)

_log = logging.getLogger(__name__)


class LoopCalls:
    """Makes the calls in the loop of these alarms."""

    def __init__(self, alarms: Alarms) -> None:
        self.alarms = alarms
        self._line: deque[LoopCall] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_one_coming = False

    def begin(self, call: Call, tell: Callable[[Outcome], None]) -> LoopCall:
        one = LoopCall(call, tell, self.alarms)
        self._line.append(one)
        self._have_one_come()
        return one

    async def close(self) -> None:
        """Cancel what is under way, and leave it the time to tidy up; what has not begun does not begin any more."""
        while self._line:
            self._line.popleft().end(Outcome(Verdict.RETRY, error="the target was closed before the function began"))
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=CANCEL_GRACE.total_seconds())

    def _have_one_come(self) -> None:
        if self._line and not self._is_one_coming:
            self._is_one_coming = True
            task = self.alarms.loop.create_task(self._serve())
            # A task that nobody holds may be collected before it ends.
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self) -> None:
        """Make one call after the other, up to the first that has to wait."""
        self._is_one_coming = False
        task = asyncio.current_task()
        assert task is not None
        # A function may have cancelled the task it runs in, which must not hit the next.
        while self._line and not task.cancelling():
            one = self._line.popleft()
            if one.is_over:
                continue
            coroutine, run = one.call.run_async(), one.context.run
            try:
                awaited = run(coroutine.send, None)
            except StopIteration as stop:
                one.end(stop.value)
                continue
            self._have_one_come()
            one.wait_in(task)
            try:
                one.end(await Resumed(coroutine, run, awaited))
            except asyncio.CancelledError:
                # It was given up, and has tidied up.
                one.end(None)
            return
        self._have_one_come()


class LoopCall:
    """One call. It is over when it has ended, or when nobody waits for its end any more."""

    __slots__ = ("_alarms", "_grace", "_task", "_tell", "call", "context", "is_over")

    def __init__(self, call: Call, tell: Callable[[Outcome], None], alarms: Alarms) -> None:
        self.call = call
        self.context = contextvars.copy_context()
        self.is_over = False
        self._tell: Callable[[Outcome], None] | None = tell
        self._alarms = alarms
        self._task: asyncio.Task[None] | None = None
        self._grace: asyncio.TimerHandle | None = None

    def wait_in(self, task: asyncio.Task[None]) -> None:
        """The function has to wait, and may do so until its time is up."""
        self._task = task
        self._alarms.set(self, self.call.seconds)

    def end(self, outcome: Outcome | None) -> None:
        """The function has returned, or is cut off. What it says after its time counts for nothing."""
        if self._grace is not None:
            self._grace.cancel()
            self._say(self._late())
        elif outcome is not None and not self.is_over:
            if self._task is not None:
                self._alarms.clear(self, self.call.seconds)
            self._say(outcome)
        self.is_over = True

    def ring(self) -> None:
        """Its time is up: it is cancelled, and may tidy up first."""
        if not self.is_over:
            self._cancel()
            self._grace = self._alarms.loop.call_later(CANCEL_GRACE.total_seconds(), self._leave_behind)

    def give_up(self) -> None:
        self._tell = None
        if not self.is_over:
            self._cancel()

    def _cancel(self) -> None:
        self.is_over = True
        self.call.give_up()
        if self._task is not None:
            self._alarms.clear(self, self.call.seconds)
            self._task.cancel()

    def _leave_behind(self) -> None:
        _log.warning("%s ignores that it was cancelled and goes on by itself", self.call.name)
        self._say(self._late())

    def _late(self) -> Outcome:
        return timed_out(f"timed out after {format_duration(self.call.timeout)}")

    def _say(self, outcome: Outcome) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            tell(outcome)
