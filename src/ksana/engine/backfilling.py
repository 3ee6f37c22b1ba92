"""Filling in what a schedule left out: runs for slots of the past that have none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from ksana.domain.claims import Claimed
from ksana.domain.errors import AlreadyExists, InvalidArgument, InvalidState, NotFound
from ksana.domain.fires import Draws, new_run
from ksana.domain.jobs import Job
from ksana.domain.ports import Clock, Observer, Store
from ksana.domain.runs import Run, Trigger
from ksana.domain.schedules import count_slots, latest_slots
from ksana.domain.states import Reason, State
from ksana.domain.times import UTC_MIN
from ksana.engine.draws import IdPool, OneRun
from ksana.engine.recording import Recorder

MOST_SLOTS = 1000

_TICK = timedelta(microseconds=1)
# How many runs are on their way to the store at once: enough for them to share its commits.
_TOGETHER = 50


class BackfillVerbs:
    """See what is missing, and fill it in."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdPool,
        draws: Draws,
        observers: Sequence[Observer],
        wake: Callable[[], None],
        recorder: Recorder,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._draws = draws
        self._observers = observers
        self._wake = wake
        self._recorder = recorder

    async def missing(self, job: Job, since: datetime, until: datetime) -> list[datetime]:
        """The slots of a job from `since` to `until`, both included, that have come and have no run, the earliest
        first. InvalidState without a schedule, InvalidArgument if the stretch is too long."""
        if job.schedule is None:
            raise InvalidState(f"job {job.id} has no schedule, so there is nothing to fill in; run it by hand")
        after, until = max(since, UTC_MIN + _TICK) - _TICK, min(until, self._clock.now())
        count = count_slots(job.schedule, after, until)
        if count > MOST_SLOTS:
            raise InvalidArgument.of(
                "since", f"{count} slots lie between since and until; at most {MOST_SLOTS} are filled in at once"
            )
        slots = latest_slots(job.schedule, after, until, count)
        if not slots:
            return []
        fired = await self._store.fire_log(job.id, slots[0], slots[-1] + _TICK, 2 * MOST_SLOTS)
        taken = {record.from_at for record in fired if record.run_id is not None}
        return [slot_at for slot_at in slots if slot_at not in taken]

    async def fill(self, job: Job, slots: Sequence[datetime]) -> list[Run]:
        """Make the runs of these slots, as far as they have none by now. They start at once; past the limit of the job
        they wait in line, whatever its overlap rule: somebody wants them all."""
        ids = [await self._ids.next() for _ in slots]
        made: list[Run] = []
        for start in range(0, len(slots), _TOGETHER):
            end = start + _TOGETHER
            adding = [self._add(job, slot_at, id) for slot_at, id in zip(slots[start:end], ids[start:end], strict=True)]
            added = [run for run in await asyncio.gather(*adding) if run is not None]
            for observer in self._observers:
                observer.on_changed([], [Claimed(run, job) for run in added], self._clock.now())
            self._wake()
            made += added
        await self._recorder.backfill(job, made)
        return made

    async def _add(self, job: Job, slot_at: datetime, id: int) -> Run | None:
        draws, now = OneRun(id, self._draws), self._clock.now()

        def make(job: Job, active: int) -> Run:
            if job.deleted_at is not None:
                raise NotFound(f"there is no job {job.id}")
            run = new_run(job, draws, now, trigger=Trigger.CATCH_UP, slot_at=slot_at)
            if job.overlap.limit is None or active < job.overlap.limit:
                return run
            return msgspec.structs.replace(run, state=State.WAITING, reason=Reason.SLOT)

        try:
            return await self._store.add_run(job.id, make)
        except AlreadyExists:
            return None
