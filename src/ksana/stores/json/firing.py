"""From due cursors to runs: one step adds the runs, records the gaps and moves the cursors."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from datetime import datetime
from itertools import groupby
from operator import itemgetter

import msgspec

from ksana.domain.claims import Claimed, Fired
from ksana.domain.errors import AlreadyExists, NotFound
from ksana.domain.fires import DueJob, Fire
from ksana.domain.foresight import Births, Foreseen, Prospect, Sight, born, in_order
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.jobs import Job
from ksana.domain.runs import Run
from ksana.stores.json.jobs import keep_gap, remember_answer
from ksana.stores.json.tables import Tables
from ksana.stores.json.tx import Tx


def fire_due(tx: Tx, now: datetime, limit: int, decide: Callable[[list[DueJob]], list[Fire]]) -> Fired:
    tables = tx.tables
    cursors = tables.jobs.due
    due = [_due(tables, job_id) for _, job_id in cursors[: min(limit, cursors.through(now))]]
    if not due:
        return Fired([], [], 0)
    fires = decide(due)
    runs: list[Claimed] = []
    for fire in fires:
        job = tables.jobs.rows[fire.job_id]
        runs += [Claimed(run, job) for run in fire.runs if _add(tx, run)]
        for gap in fire.gaps:
            keep_gap(tx, gap)
        _move(tx, job, fire.next_slot_at, fire.next_fire_at)
    return Fired(runs, [gap for fire in fires for gap in fire.gaps], len(due))


def bursts(tables: Tables, after: datetime, until: datetime, least: int) -> list[tuple[datetime, int]]:
    cursors = tables.jobs.due
    coming = cursors[cursors.through(after) : cursors.through(until)]
    counts = ((at, sum(1 for _ in group)) for at, group in groupby(coming, key=itemgetter(0)))
    return [(at, count) for at, count in counts if count >= least]


def look_ahead(
    tables: Tables, at: datetime, after_id: int, limit: int, foresee: Callable[[DueJob], Prospect | None]
) -> Sight:
    cursors = tables.jobs.due
    start = bisect_right(cursors, (at, after_id))
    ids = [job_id for _, job_id in cursors[start : min(start + limit, cursors.through(at))]]
    prospects = [one for job_id in ids if (one := foresee(_due(tables, job_id))) is not None]
    return Sight(Foreseen(in_order(prospects)), ids[-1] if len(ids) == limit else None)


def fire_foreseen(tx: Tx, foreseen: Foreseen, births: Births) -> Fired:
    tables = tx.tables
    runs: list[Claimed] = []
    stood = 0
    for prospect, run in zip(foreseen.prospects, born(foreseen.prospects, births), strict=True):
        job = tables.jobs.get(prospect.job.id)
        if job is None or job.next_fire_at is None or not prospect.stands(_due(tables, job.id)):
            continue
        stood += 1
        if _add(tx, run):
            runs.append(Claimed(run, job))
        _move(tx, job, prospect.next_slot_at, prospect.next_fire_at)
    return Fired(runs, [], stood)


def _move(tx: Tx, job: Job, next_slot_at: datetime | None, next_fire_at: datetime | None) -> None:
    moved = msgspec.structs.replace(job, next_slot_at=next_slot_at, next_fire_at=next_fire_at)
    tx.put(tx.tables.jobs, job.id, moved)


def _due(tables: Tables, job_id: int) -> DueJob:
    job = tables.jobs.rows[job_id]
    assert job.next_slot_at is not None and job.next_fire_at is not None
    active = 0 if job.overlap.limit is None else len(tables.runs.active[job_id])
    return DueJob(job, job.next_slot_at, job.next_fire_at, active)


def _add(tx: Tx, run: Run) -> bool:
    """Add a run whose slot has none yet: the slot that has a run is the fire, whatever brought the cursor back here."""
    runs = tx.tables.runs
    if run.id in runs.rows:
        return False
    if run.job_id is not None and run.slot_at is not None and runs.has_slot(run.job_id, run.slot_at):
        return False
    tx.put(runs, run.id, run)
    return True


def add_run(
    tx: Tx, job_id: int, make: Callable[[Job, int], Run], record: Callable[[Run], IdempotencyRecord] | None
) -> Run:
    job = tx.tables.jobs.get(job_id)
    if job is None:
        raise NotFound(f"there is no job {job_id}")
    run = make(job, len(tx.tables.runs.active[job_id]))
    remember_answer(tx, record(run) if record else None)
    if not _add(tx, run):
        raise AlreadyExists(f"there is a run {run.id}, or one of its slot, already")
    return run
