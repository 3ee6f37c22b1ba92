"""The places of a node: as many attempts as there are places are under way at once, and further runs wait in line, so
that a place which becomes free is filled at once and not after a round trip to the store."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextvars import copy_context
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from ksana.domain.claims import Claimed
from ksana.domain.outcomes import Outcome, Verdict
from ksana.domain.ports import Begun, Clock
from ksana.engine.holdings import Key
from ksana.engine.resuming import Resumed

# How long past its timeout an attempt may take to say so before it is cut off.
_OVERRUN = timedelta(seconds=5)

# How many more workers one that must wait calls in: growing by doubling reaches any number in a few rounds.
_CALLED_IN = 2


class Execution:
    """A run this node holds: in line while nothing was begun, then an attempt under way that a worker waits for or that
    will tell by itself, then an outcome."""

    __slots__ = ("begun", "claimed", "ended_at", "key", "outcome", "started_at", "worker")

    def __init__(self, claimed: Claimed) -> None:
        run = claimed.run
        self.claimed = claimed
        self.key: Key = (run.id, run.epoch)
        self.started_at = self.ended_at = run.due_at
        self.outcome: Outcome | None = None
        self.worker: asyncio.Task[None] | None = None
        self.begun: Begun | None = None

    @property
    def is_under_way(self) -> bool:
        return self.worker is not None or self.begun is not None


def _await_all(claimed: Claimed, tell: Callable[[Outcome], None]) -> Begun | Outcome | None:
    return None


class Places:
    """Executes what it is given. `begin` begins an attempt that tells its outcome by itself, or answers None for one
    that is to be awaited; then `attempt` makes it, and never raises but for cancellation. `note_start` is called when
    one begins, and `tell` when one has ended."""

    def __init__(
        self,
        clock: Clock,
        note_start: Callable[[Claimed, datetime], None],
        attempt: Callable[[Claimed], Coroutine[Any, Any, Outcome]],
        tell: Callable[[], None],
        capacity: int,
        begin: Callable[[Claimed, Callable[[Outcome], None]], Begun | Outcome | None] = _await_all,
    ) -> None:
        self.capacity = capacity
        self.held: dict[Key, Execution] = {}
        self.ended: list[Execution] = []
        self._clock = clock
        self._note_start = note_start
        self._attempt = attempt
        self._tell = tell
        self._begin = begin
        self._line: deque[Execution] = deque()
        self._under_way = 0
        self._called_in = 0
        self._workers: set[asyncio.Task[None]] = set()
        self._at_rest: asyncio.Future[None] | None = None

    @property
    def executing(self) -> int:
        """How many attempts are under way, or about to be."""
        return min(len(self.held), self.capacity)

    @property
    def has_line(self) -> bool:
        return bool(self._line)

    @property
    def waiting(self) -> list[Execution]:
        """Runs for which nothing was sent yet."""
        return [execution for execution in self._line if self._is_held(execution)]

    async def come_to_rest(self) -> None:
        """Return when no attempt is under way."""
        while self._under_way:
            self._at_rest = self._at_rest or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._at_rest)

    def take(self, claimed: Iterable[Claimed]) -> None:
        """Begin attempts on these runs, in order, as places are free."""
        for one in claimed:
            execution = Execution(one)
            self.held[execution.key] = execution
            self._line.append(execution)
        self._call_in(1)

    def let_go(self, key: Key) -> None:
        """Stop an attempt on a run that somebody else has moved, or take it out of the line."""
        execution = self.held.pop(key, None)
        if execution is not None:
            self._cut(execution)
            self._tell()

    def cut_overruns(self) -> int:
        """Cut off attempts that went on well past their timeout; a target that hangs costs one place, not for ever."""
        now = self._clock.now()
        overrun = [e for e in self.held.values() if e.is_under_way and now - e.started_at > _limit_of(e)]
        for execution in overrun:
            error = "the target ignored its timeout and was cut off"
            del self.held[execution.key]
            self._conclude(execution, Outcome(Verdict.RETRY, error=error, timed_out=True))
            self._cut(execution)
        return len(overrun)

    def _is_held(self, execution: Execution) -> bool:
        return self.held.get(execution.key) is execution

    def _cut(self, execution: Execution) -> None:
        if execution.begun is not None:
            execution.begun.give_up()
        elif execution.worker is not None:
            execution.worker.cancel()
        else:
            return
        self._leave()
        self._call_in(1)

    def _leave(self) -> None:
        """A place is free again."""
        self._under_way -= 1
        if not self._under_way and self._at_rest is not None:
            self._at_rest.set_result(None)
            self._at_rest = None

    # Workers: each takes one run after the other from the line, and ends when there is none.

    def _call_in(self, count: int) -> None:
        wanted = min(len(self._line), self.capacity - self._under_way) - self._called_in
        for _ in range(min(count, wanted)):
            self._called_in += 1
            self._set_to_work(self._come_in())

    def _set_to_work(self, work: Coroutine[Any, Any, None]) -> None:
        worker = asyncio.create_task(work)
        # A task that nobody holds may be collected before it ends.
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)

    async def _come_in(self) -> None:
        self._called_in -= 1
        execution = self._begin_line(self._clock.now())
        if execution is not None:
            await self._work(execution)

    async def _work(self, execution: Execution | None) -> None:
        worker = asyncio.current_task()
        while execution is not None:
            execution.worker = worker
            is_sound = True
            # Each attempt has a context of its own, as its worker goes on to others.
            attempt, run = self._attempt(execution.claimed), copy_context().run
            try:
                try:
                    awaited = run(attempt.send, None)
                except StopIteration as stop:
                    outcome = stop.value
                else:
                    # Only whoever has to wait calls for others: with targets that answer at once, one worker does all.
                    self._call_in(_CALLED_IN)
                    outcome = await Resumed(attempt, run, awaited)
            except asyncio.CancelledError:
                # Whoever cuts an attempt off takes it off the list first, so this one was canceled by its own target.
                outcome = Outcome(Verdict.RETRY, error="the target canceled its own attempt")
                is_sound = False
            if not self._is_held(execution):
                # Cut off. The cancellation may still be on its way to this task, so it takes no other run.
                return
            now = self._end(execution, outcome)
            execution = self._begin_line(now) if is_sound else None
        self._call_in(1)

    def _begin_line(self, now: datetime) -> Execution | None:
        """Begin what is next in line, as long as there are places; answer the first that somebody has to wait for."""
        while (execution := self._next(now)) is not None:
            begun = self._begin(execution.claimed, partial(self._told, execution))
            if begun is None:
                return execution
            if isinstance(begun, Outcome):
                now = self._end(execution, begun)
            else:
                execution.begun = begun
        return None

    def _told(self, execution: Execution, outcome: Outcome) -> None:
        """An attempt that nobody waited for has ended; what it made room for begins without a worker, too."""
        if self._is_held(execution):
            now = self._end(execution, outcome)
            if (waiting := self._begin_line(now)) is not None:
                self._set_to_work(self._work(waiting))

    def _end(self, execution: Execution, outcome: Outcome) -> datetime:
        del self.held[execution.key]
        self._leave()
        return self._conclude(execution, outcome)

    def _next(self, now: datetime) -> Execution | None:
        """The first in line that is still held, if there is a place for it."""
        while self._line and self._under_way < self.capacity:
            execution = self._line.popleft()
            if self._is_held(execution):
                self._under_way += 1
                execution.started_at = now
                self._note_start(execution.claimed, now)
                return execution
        return None

    def _conclude(self, execution: Execution, outcome: Outcome) -> datetime:
        now = self._clock.now()
        execution.outcome = outcome
        execution.ended_at = now
        self.ended.append(execution)
        self._tell()
        return now


def _limit_of(execution: Execution) -> timedelta:
    job = execution.claimed.job
    return _OVERRUN if job is None else job.timeouts.total + _OVERRUN
