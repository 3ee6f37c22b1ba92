"""The planner: due slots become runs. It wakes exactly when the next slot is due and fires all that are, in batches."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from ksana.domain.claims import Fired
from ksana.domain.fires import DueJob, Fire, Lateness, decide
from ksana.domain.foresight import Births, Foreseen
from ksana.domain.moves import advance
from ksana.domain.ports import Clock, Observer, Store
from ksana.domain.states import Event, State
from ksana.engine.draws import IdPool, IdsExhausted, SystemDraws
from ksana.engine.foresight import Foresight
from ksana.engine.loops import Loop, StoreHealth
from ksana.engine.runner import Runner

# Room for the jobs of a batch that catch up more than one slot each.
_SPARE_IDS = 1000


class _Stored(NamedTuple):
    """What a step has fired, and the room set aside for it."""

    fired: Fired
    reserved: int


class Planner(Loop):
    """Fire what is due."""

    name = "planner"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        runner: Runner,
        run_ids: IdPool,
        health: StoreHealth,
        observers: Sequence[Observer],
        *,
        batch: int,
        foresees_from: int,
        lateness: Lateness,
        poll: timedelta,
    ) -> None:
        super().__init__(clock, health, poll)
        self._store = store
        self._runner = runner
        self._run_ids = run_ids
        self._draws = SystemDraws(run_ids)
        self._observers = observers
        self._batch = batch
        self._lateness = lateness
        self._untold: list[tuple[Fired, datetime]] = []
        self._foresight = Foresight(
            store,
            clock,
            self._draws,
            node_id=runner.node_id,
            queues=runner.queues,
            lateness=lateness,
            batch=batch,
            least=foresees_from,
            poll=poll,
        )

    async def run_once(self) -> datetime | None:
        """Fire everything due now, a batch at a time, and look ahead; answer when there is something to do again."""
        next_at = await self._store.next_fire_at()
        is_due = next_at is not None and next_at <= self._clock.now()
        if is_due:
            try:
                with self._runner.storing_later():
                    await self._fire_foreseen()
                    while await self._fire_batch() == self._batch:
                        pass
            finally:
                self._tell()
            next_at = await self._store.next_fire_at()
        if next_at is None:
            return None
        again_at = await self._foresight.look(next_at, has_fired=is_due)
        await self._run_ids.ensure(self._foresight.count)
        return again_at

    async def _fire_foreseen(self) -> None:
        """Fire what was worked out ahead, with as many steps under way as the store can use and there is room for."""
        under_way: deque[asyncio.Task[_Stored]] = deque()
        stored: _Stored | None = None
        try:
            while (foreseen := self._foresight.take(self._clock.now())) is not None:
                count = len(foreseen.prospects)
                while under_way and (len(under_way) >= self._store.parallelism or self._runner.room < count):
                    self._begin_stored(stored)
                    stored = None
                    stored = await under_way.popleft()
                await self._run_ids.ensure(count)
                now = self._clock.now()
                if foreseen.is_good(now):
                    births = Births(now, [self._run_ids.take() for _ in range(count)], self._runner.reserve(count))
                    under_way.append(asyncio.create_task(self._fire_ahead(foreseen, births)))
                # The store is at work again before what it has stored is begun, which may take as long as its step.
                self._begin_stored(stored)
                stored = None
        finally:
            # When one has failed the others are still seen through.
            self._begin_stored(stored)
            await self._see_through(under_way)

    async def _see_through(self, under_way: deque[asyncio.Task[_Stored]]) -> None:
        try:
            while under_way:
                self._begin_stored(await under_way.popleft())
        finally:
            if under_way:
                await self._see_through(under_way)

    async def _fire_ahead(self, foreseen: Foreseen, births: Births) -> _Stored:
        try:
            return _Stored(await self._store.fire_foreseen(foreseen, births), births.claims)
        except BaseException:
            self._runner.give_back(births.claims)
            raise

    def _begin_stored(self, stored: _Stored | None) -> None:
        if stored is not None:
            self._begin(*stored)

    async def _fire_batch(self) -> int:
        now = self._clock.now()
        await self._run_ids.ensure(self._batch + _SPARE_IDS)
        reserved = self._runner.reserve(self._batch)
        try:
            fired = await self._store.fire_due(now, self._batch, lambda due: self._decide(due, now, reserved))
        except BaseException:
            self._runner.give_back(reserved)
            raise
        self._begin(fired, reserved)
        return fired.looked_at

    def _begin(self, fired: Fired, reserved: int) -> None:
        self._runner.begin([c for c in fired.runs if c.run.state is State.RUNNING], reserved)
        if any(c.run.state is State.SCHEDULED for c in fired.runs):
            self._runner.wake_for_work()
        if fired.runs or fired.gaps:
            self._untold.append((fired, self._clock.now()))

    def _tell(self) -> None:
        untold, self._untold = self._untold, []
        for fired, stored_at in untold:
            for observer in self._observers:
                observer.on_fired(fired.runs, fired.gaps, stored_at)

    def _decide(self, due: list[DueJob], now: datetime, reserved: int) -> list[Fire]:
        """Decide each due job. As many runs as this node has room for are born claimed by it, in the same commit."""
        fires: list[Fire] = []
        for job in due:
            try:
                fires.append(decide(job, now, self._lateness, self._draws))
            except IdsExhausted:
                if not fires:
                    raise
                break
        ours = [
            (-run.priority, run.due_at, run.id, fire, i)
            for fire in fires
            for i, run in enumerate(fire.runs)
            if run.state is State.SCHEDULED and run.queue in self._runner.queues
        ]
        if len(ours) > reserved:
            ours = heapq.nsmallest(reserved, ours, key=_claim_order)
        for *_, fire, i in ours:
            fire.runs[i] = advance(fire.runs[i], Event.CLAIM, now, node_id=self._runner.node_id)
        return fires


def _claim_order(candidate: tuple[int, datetime, int, Fire, int]) -> tuple[int, datetime, int]:
    return candidate[:3]
