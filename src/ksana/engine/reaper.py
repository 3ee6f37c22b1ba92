"""The reaper: takes back runs whose worker vanished, and ends waits whose deadline has passed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from ksana.domain import items
from ksana.domain.claims import Claimed
from ksana.domain.jobs import Job
from ksana.domain.moves import Move, overdue, reclaim
from ksana.domain.policies import OnUncertain
from ksana.domain.ports import Clock, Observer, Store
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.domain.steering import is_branched
from ksana.engine.alerts import Alarm
from ksana.engine.chain_verbs import ChainVerbs
from ksana.engine.clock import ClockWatch
from ksana.engine.lineage import Lineage
from ksana.engine.loops import Loop, StoreHealth
from ksana.engine.runner import Runner

_CHUNK = 500


class Reaper(Loop):
    """Take back, time out."""

    name = "reaper"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        runner: Runner,
        lineage: Lineage,
        chains: ChainVerbs,
        health: StoreHealth,
        observers: Sequence[Observer],
        *,
        lease: timedelta,
        max_reclaims: int,
        on_uncertain: OnUncertain,
        poll: timedelta,
        watch: ClockWatch,
        alarm: Alarm,
    ) -> None:
        super().__init__(clock, health, poll)
        self._store = store
        self._runner = runner
        self._lineage = lineage
        self._chains = chains
        self._observers = observers
        self._lease = lease
        self._max_reclaims = max_reclaims
        self._on_uncertain = on_uncertain
        self._alarm = alarm
        self._patient_until: datetime | None = None
        self._outages = health.outages
        self._watch = watch

    def be_patient(self) -> None:
        """Leases that look lapsed after an outage or a clock step may only be late: give their nodes time to say so."""
        self._patient_until = self._clock.now() + self._lease

    async def run_once(self) -> datetime | None:
        now = self._clock.now()
        # The heart watches the clock too, but whichever comes first after a step must not judge leases by it.
        if self._watch.jump(now) is not None or self._health.outages != self._outages:
            self._outages = self._health.outages
            self.be_patient()
        while await self._take_back(now) == _CHUNK:
            pass
        return None

    async def _take_back(self, now: datetime) -> int:
        found = await self._store.lapsed(now, _CHUNK)
        if sum([await self._end_parent(one.run) for one in found if _is_parent(one.run)]):
            # What was asked to stop by it is found in the next round.
            self._runner.wake_for_work()
            return _CHUNK
        found = await self._lineage.with_jobs([one for one in found if not _is_parent(one.run)])
        results = [(move, one.job) for one in found if (move := self._judge(one, now)) is not None]
        if not results:
            return 0
        alerts = self._alarm.of(results, now)
        turn = await self._store.turn([move for move, _ in results], None, alerts, self._alarm.hooks)
        kept = [result for result in results if result[0].run.id not in turn.lost]
        for observer in self._observers:
            observer.on_moved([*kept, *turn.followed], now)
        self._runner.wake_for_work()
        return len(found)

    async def _end_parent(self, run: Run) -> int:
        """Halt a run that is to stop, or end one whose time is up; answer how many runs it moved."""
        if run.state is State.STOPPING:
            return await self._chains.halt(run.id)
        return await self._chains.expire(run.id)

    def _judge(self, one: Claimed, now: datetime) -> Move | None:
        run, job = one.run, one.job
        if run.state is State.CALLBACK_PENDING:
            return Move(run.epoch, overdue(run, now), frees_slot=True)
        if run.kind == items.KIND and run.node_id is None:
            return items.lapsed(run, now)
        if run.node_id == self._runner.node_id or self._is_patient(now):
            return None
        moved = reclaim(run, self._doubt_of(job), self._max_reclaims, now)
        return Move(run.epoch, moved, frees_slot=moved.ended_at is not None, taken_from=run.node_id)

    def _doubt_of(self, job: Job | None) -> OnUncertain:
        return OnUncertain.RETRY if job is None else job.on_uncertain or self._on_uncertain

    def _is_patient(self, now: datetime) -> bool:
        return self._patient_until is not None and now < self._patient_until


def _is_parent(run: Run) -> bool:
    return run.state is State.STOPPING or is_branched(run)
