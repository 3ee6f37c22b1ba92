"""The fire: from due slots to runs, pure. One decision per due job, made from values alone, so every store and every
test makes the same one. Each planned instant ends as a run or inside one Gap that says why not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from ksana.domain.errors import ConcurrencyLimit
from ksana.domain.jobs import Job
from ksana.domain.plans import input_of
from ksana.domain.policies import MisfireRule, OverlapRule
from ksana.domain.runs import Run, Trigger
from ksana.domain.schedules import Once, Schedule, count_slots, fire_at, latest_slots, next_slot, previous_slot
from ksana.domain.states import Reason, State

MISFIRE_THRESHOLD = timedelta(seconds=5)
MISFIRE_GRACE = timedelta(seconds=1)


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """Slots that got no run: which (first and last, and how many) and why."""

    job_id: int
    from_at: datetime
    to_at: datetime
    count: int
    reason: Reason
    recorded_at: datetime


class DueJob(msgspec.Struct, frozen=True):
    """A job whose cursor has come due: the slot, the same with its jitter, and how many of its runs hold a slot.

    The cursor stands here because it moves without the job's version moving; `active` counts unfinished runs that hold
    a slot and is 0 for a job without a limit.
    """

    job: Job
    slot_at: datetime
    fire_at: datetime
    active: int


class Fire(msgspec.Struct, frozen=True):
    """What a due job becomes: its new runs, what it left out, and where its cursor goes."""

    job_id: int
    runs: list[Run]
    gaps: list[Gap]
    next_slot_at: datetime | None
    next_fire_at: datetime | None


class Lateness(msgspec.Struct, frozen=True):
    """How late a slot may be found before it is a misfire; a `once` has its own, shorter grace."""

    threshold: timedelta = MISFIRE_THRESHOLD
    grace: timedelta = MISFIRE_GRACE

    def misses(self, run_at: datetime, now: datetime) -> bool:
        """Whether a `once` first looked at now is too late to run."""
        return now - run_at > self.grace


class Draws(Protocol):
    """Where a decision gets what it must not invent: fresh run ids, jitter and tokens."""

    def run_id(self) -> int: ...

    def jitter(self) -> float: ...

    def token(self) -> str: ...


def decide(due: DueJob, now: datetime, lateness: Lateness, draws: Draws) -> Fire:
    """What becomes of every slot of this job that is due at `now`."""
    job, first = due.job, due.slot_at
    schedule = job.schedule
    assert schedule is not None
    if isinstance(schedule, Once):
        missed = lateness.misses(first, now)
        runs = [_missed(job, first, now, draws)] if missed else _admit(due, [first], now, draws)
        return Fire(job.id, runs, [], None, None)

    following = next_slot(schedule, first)
    if (following is None or following > now) and now - due.fire_at <= lateness.threshold:
        # Nearly always: one slot, found in time.
        following_fire = None if following is None else fire_at(schedule, following, draws.jitter())
        return Fire(job.id, _admit(due, [first], now, draws), [], following, following_fire)

    after = next_slot(schedule, max(now, first))
    after_fire = None if after is None else fire_at(schedule, after, draws.jitter())
    count = 1 + count_slots(schedule, first, now)
    fresh, keeps = count, 0
    if now - due.fire_at > lateness.threshold:
        # Each slot is late by itself: those of the last moments are due like any other, whatever became of older ones.
        fresh = count_slots(schedule, max(first, now - lateness.threshold - _TICK), now)
        keeps = job.misfire.keeps
    kept = _newest(schedule, first, now, min(max(fresh, keeps), _MOST_RUNS), count)
    gaps = []
    if count > len(kept):
        last_left_out = previous_slot(schedule, kept[0] if kept else now + _TICK)
        gaps.append(
            Gap(
                job_id=job.id,
                from_at=first,
                to_at=last_left_out or first,
                count=count - len(kept),
                reason=Reason.CATCH_UP_LIMIT if job.misfire.rule is MisfireRule.CATCH_UP else Reason.MISFIRE,
                recorded_at=now,
            )
        )
    return Fire(job.id, _admit(due, kept, now, draws, len(kept) - fresh), gaps, after, after_fire)


_TICK = timedelta(microseconds=1)

_MOST_RUNS = 1000
"""How many runs one decision may make; what is beyond is recorded as left out, never dropped silently."""


def _newest(schedule: Schedule, first: datetime, now: datetime, n: int, count: int) -> list[datetime]:
    """The newest `n` of the `count` slots from `first` to `now`, both included, oldest first."""
    slots = latest_slots(schedule, first, now, n)
    return [first, *slots] if len(slots) < n and count > len(slots) else slots


def _admit(due: DueJob, slots: list[datetime], now: datetime, draws: Draws, caught_up: int = 0) -> list[Run]:
    """One run per slot, the first `caught_up` of them late; past the job's limit they wait in line or are skipped."""
    job = due.job
    runs: list[Run] = []
    active, limit = due.active, job.overlap.limit
    for i, slot_at in enumerate(slots):
        trigger = Trigger.CATCH_UP if i < caught_up else Trigger.SCHEDULE
        due_at = due.fire_at if slot_at == due.slot_at else slot_at
        run = new_run(job, draws, now, trigger=trigger, slot_at=slot_at, due_at=due_at)
        if limit is not None and active >= limit:
            run = _turned_away(run, job.overlap.rule, now)
        if run.ended_at is None:
            active += 1
        runs.append(run)
    return runs


def _turned_away(run: Run, rule: OverlapRule, now: datetime) -> Run:
    if rule is OverlapRule.QUEUE:
        return msgspec.structs.replace(run, state=State.WAITING, reason=Reason.SLOT)
    return msgspec.structs.replace(run, state=State.SKIPPED, reason=Reason.OVERLAP, ended_at=now)


def _missed(job: Job, slot_at: datetime, now: datetime, draws: Draws) -> Run:
    run = new_run(job, draws, now, trigger=Trigger.SCHEDULE, slot_at=slot_at)
    return msgspec.structs.replace(run, state=State.MISSED, reason=Reason.MISFIRE, ended_at=now)


def new_run(
    job: Job,
    draws: Draws,
    now: datetime,
    *,
    trigger: Trigger,
    slot_at: datetime | None = None,
    due_at: datetime | None = None,
    input: bytes | None = None,
    awaits_callback: bool | None = None,
) -> Run:
    """A fresh run of the job, ready to be claimed once it is due (at once unless said otherwise). It awaits a callback
    if its job's runs do, unless said otherwise."""
    if awaits_callback is None:
        awaits_callback = job.awaits_callback
    return Run(
        id=draws.run_id(),
        job_id=job.id,
        job_version=job.version,
        surface=job.surface,
        kind=job.target.kind,
        queue=job.queue,
        trigger=trigger,
        slot_at=slot_at,
        priority=job.priority,
        due_at=due_at or now,
        created_at=now,
        callback_token=draws.token() if awaits_callback else None,
        input=input_of(job, input),
    )


def admit_manual(job: Job, active: int, run: Run) -> Run:
    """A run somebody asked for, under the job's overlap rule: it starts, waits in line, or is refused."""
    limit = job.overlap.limit
    if limit is None or active < limit:
        return run
    if job.overlap.rule is OverlapRule.SKIP:
        raise ConcurrencyLimit(f"job {job.id} already has {active} unfinished runs and allows {limit}")
    return msgspec.structs.replace(run, state=State.WAITING, reason=Reason.SLOT)


def paused_gap(job: Job, paused_at: datetime, now: datetime) -> Gap | None:
    """What a pause left out: the slots between pausing and `now`, as one record."""
    first = None if job.schedule is None else next_slot(job.schedule, paused_at)
    return _gap(job, first, now, Reason.PAUSED)


def owed_gap(job: Job, now: datetime, reason: Reason) -> Gap | None:
    """What a job still owes when its cursor is taken away: the slots from the cursor to `now`, as one record."""
    return _gap(job, job.next_slot_at, now, reason)


def _gap(job: Job, first: datetime | None, now: datetime, reason: Reason) -> Gap | None:
    if job.schedule is None or first is None or first > now:
        return None
    last = previous_slot(job.schedule, now + _TICK)
    count = 1 + count_slots(job.schedule, first, now)
    return Gap(job_id=job.id, from_at=first, to_at=last or first, count=count, reason=reason, recorded_at=now)


def plan_from(job: Job, after: datetime, draws: Draws) -> Job:
    """The job with its cursor on the first slot after `after`, or with none left."""
    slot_at = None if job.schedule is None or not job.enabled else next_slot(job.schedule, after)
    if slot_at is None or job.schedule is None:
        return msgspec.structs.replace(job, next_slot_at=None, next_fire_at=None)
    return msgspec.structs.replace(
        job, next_slot_at=slot_at, next_fire_at=fire_at(job.schedule, slot_at, draws.jitter())
    )
