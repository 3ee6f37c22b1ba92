"""Calls of plain functions, in threads, each bounded by the timeout of its attempt. Nobody waits for one: whoever began
it is told."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable

from ksana.domain.durations import format_duration
from ksana.domain.outcomes import Outcome, Verdict
from ksana.targets.alarms import Alarms
from ksana.targets.calls import Call, timed_out
from ksana.targets.threads import Exhausted, Threads, Ticket

_log = logging.getLogger(__name__)


class ThreadCalls:
    """Makes the calls, at most `size` at once."""

    def __init__(self, size: int, max_abandoned: int) -> None:
        self.size = size
        self.threads = Threads[Outcome](size, max_abandoned)

    def begin(self, call: Call, tell: Callable[[Outcome], None], alarms: Alarms) -> ThreadCall | Outcome:
        ticket = ThreadCall(self, call, tell, alarms)
        try:
            self.threads.take_on(ticket)
        except Exhausted:
            return Outcome(
                Verdict.RETRY,
                error=f"{self.threads.abandoned} functions outlived their attempts and hold a thread each: have "
                "them ask ksana.targets.python.cancelled() now and then, and restart to be rid of these",
            )
        except RuntimeError as error:
            return Outcome(Verdict.RETRY, error=f"no thread to run the function in: {error}")
        alarms.set(ticket, call.seconds)
        return ticket


class ThreadCall(Ticket[Outcome]):
    """One call, in a context of its own."""

    __slots__ = ("_alarms", "_call", "_calls", "_context", "_is_over", "_tell")

    def __init__(self, calls: ThreadCalls, call: Call, tell: Callable[[Outcome], None], alarms: Alarms) -> None:
        super().__init__()
        self._calls = calls
        self._call = call
        self._tell = tell
        self._alarms = alarms
        self._context = contextvars.copy_context()
        self._is_over = False

    def work(self) -> Outcome:
        return self._context.run(self._call.run)

    def answer(self, outcome: Outcome) -> None:
        # The thread may have been done just before it was given up.
        if not self._is_over:
            self._is_over = True
            self._alarms.clear(self, self._call.seconds)
            self._tell(outcome)

    def ring(self) -> None:
        if self._is_over:
            return
        has_begun, limit = self.has_begun, format_duration(self._call.timeout)
        self.give_up()
        if has_begun:
            self._tell(timed_out(f"timed out after {limit}"))
        else:
            self._tell(
                timed_out(
                    f"no thread was free within {limit}: all {self._calls.size} are busy; "
                    "raise executor.python_threads, or make the function async"
                )
            )

    def give_up(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._alarms.clear(self, self._call.seconds)
        self._call.give_up()
        threads = self._calls.threads
        if threads.give_up(self):
            name, count = self._call.name, threads.abandoned
            _log.warning("%s was given up and goes on in its thread; %d such threads", name, count)
