"""Foresight: where many slots come due at the same instant, their runs are worked out before it, so that at the instant
itself there is nothing left to do but to store and begin them."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import datetime, timedelta

from ksana.domain.fires import Draws, DueJob, Lateness
from ksana.domain.foresight import Foreseen, Prospect, foresee
from ksana.domain.ports import Clock, Place, Store

# How many are worked out at once: on a store that does it on this loop, everybody else waits for that long.
_MOST_AT_ONCE = 500

# How many prospects are kept at most; what comes due beyond them is decided when it is due.
_CAPACITY = 20_000

# How long before its instant a slot is looked at, at the least, and how much further a look then reaches.
_LEAD = timedelta(seconds=1)
_REACH = timedelta(milliseconds=500)


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
        self._kept: deque[Foreseen] = deque()
        self._count = 0
        self._seen: Place | None = None

    async def look(self, next_at: datetime) -> None:
        """Work out what comes due before there is time to look again, unless the first of it comes due meanwhile."""
        now = self._clock.now()
        needed = now + self._span
        until = needed + _REACH
        if next_at > needed:
            return
        seen = self._seen
        if seen is None or not now <= seen[0] <= until:
            # Nobody has looked for a while, or the clock was set back.
            self._forget()
            seen = (now, 0)
        elif seen[0] >= needed:
            return
        while self._count < _CAPACITY and self._clock.now() < next_at:
            sight = await self._store.look_ahead(seen, until, self._batch, self._least, self._foresee)
            for foreseen in sight.foreseen:
                self._kept.append(foreseen)
                self._count += len(foreseen.prospects)
            seen = self._seen = sight.through or (until, 0)
            if sight.through is None:
                return
            # A store that answers at once must not keep everybody else waiting.
            await asyncio.sleep(0)

    def _foresee(self, due: DueJob) -> Prospect | None:
        node_id = self._node_id if due.job.queue in self._queues else None
        return foresee(due, self._lateness, self._draws, node_id)

    def take(self, now: datetime) -> Foreseen | None:
        """The next prospects that are due."""
        if not self._kept or self._kept[0].prospects[0].fire_at > now:
            return None
        foreseen = self._kept.popleft()
        self._count -= len(foreseen.prospects)
        return foreseen

    def _forget(self) -> None:
        self._kept.clear()
        self._count = 0
