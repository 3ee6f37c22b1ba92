"""Foresight: where many slots come due at the same instant, their runs are worked out before it, so that at the instant
itself there is nothing left to do but to store and begin them."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import datetime, timedelta

from ksana.domain.fires import Draws, DueJob, Lateness
from ksana.domain.foresight import Foreseen, Prospect, foresee
from ksana.domain.ports import Clock, Store

# How many are worked out at once: on a store that does it on this loop, everybody else waits for that long.
_MOST_AT_ONCE = 500

# How many prospects are kept at most; what comes due beyond them is decided when it is due.
_CAPACITY = 20_000

# How long before its instant a slot is worked out, at the least.
_LEAD = timedelta(seconds=1)

# How long it is before another look may find anything new that matters.
_REST = timedelta(milliseconds=250)


class _Burst:
    """An instant at which many come due: how many did when it was found, what is ready, and the last job looked at."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.foreseen: deque[Foreseen] = deque()
        self.through: int | None = 0


class Foresight:
    """Prospects of the instants that come next. They are guesses, and hold nothing: whether each still stands is asked
    when it is due, inside the step that fires it, so a job that changes meanwhile is simply decided anew."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        draws: Draws,
        *,
        node_id: int,
        queues: tuple[str, ...],
        lateness: Lateness,
        batch: int,
        least: int,
        poll: timedelta,
    ) -> None:
        self._store = store
        self._clock = clock
        self._draws = draws
        self._node_id = node_id
        self._queues = frozenset(queues)
        self._lateness = lateness
        self._batch = min(batch, _MOST_AT_ONCE)
        self._least = least
        self._span = poll + _LEAD
        self._bursts: dict[datetime, _Burst] = {}
        self._rests_until: datetime | None = None
        self._is_behind = False

    async def look(self, next_at: datetime, has_fired: bool) -> datetime:
        """Work out the bursts that come before there is time to look again, unless the first slot comes due meanwhile.
        Answer when to come back: at that slot, or before it if cursors have moved and it is too early to look."""
        now = self._clock.now()
        until = now + self._span
        self._is_behind |= has_fired
        if next_at > until:
            return next_at
        if self._rests_until is not None and now < self._rests_until <= now + _REST:
            return min(next_at, self._rests_until) if self._is_behind else next_at
        self._rests_until = now + _REST
        self._is_behind = False
        # What was passed over is nobody's guess any more, nor what a clock that was set back has put far off.
        self._bursts = {at: burst for at, burst in self._bursts.items() if now < at <= until}
        for at, count in await self._store.bursts(now, until, self._least):
            burst = self._bursts.get(at)
            # A few more jobs that have come to the same instant are not worth working all of it out again.
            if burst is None or count >= 2 * burst.count:
                burst = self._bursts[at] = _Burst(count)
            await self._work_out(at, burst, next_at)
        return next_at

    async def _work_out(self, at: datetime, burst: _Burst, next_at: datetime) -> None:
        while burst.through is not None and self.count < _CAPACITY and self._clock.now() < next_at:
            sight = await self._store.look_ahead(at, burst.through, self._batch, self._foresee)
            if sight.foreseen.prospects:
                burst.foreseen.append(sight.foreseen)
            burst.through = sight.through
            # A store that answers at once must not keep everybody else waiting.
            await asyncio.sleep(0)

    @property
    def count(self) -> int:
        """How many prospects there are."""
        return sum(len(one.prospects) for burst in self._bursts.values() for one in burst.foreseen)

    def _foresee(self, due: DueJob) -> Prospect | None:
        node_id = self._node_id if due.job.queue in self._queues else None
        return foresee(due, self._lateness, self._draws, node_id)

    def take(self, now: datetime) -> Foreseen | None:
        """The next prospects that are due."""
        for at in sorted(self._bursts):
            if at > now:
                break
            if self._bursts[at].foreseen:
                return self._bursts[at].foreseen.popleft()
            del self._bursts[at]
        return None
