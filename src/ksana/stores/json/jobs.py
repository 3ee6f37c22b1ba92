"""Adding and changing jobs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ksana.domain.changes import CursorMoved, JobChange
from ksana.domain.errors import AlreadyExists, NotFound, VersionConflict
from ksana.domain.fires import Gap
from ksana.domain.idempotency import IdempotencyRecord, IdempotencyReplay
from ksana.domain.jobs import Job
from ksana.domain.moves import Move, advance
from ksana.domain.runs import Run
from ksana.domain.states import AT_REST, Event
from ksana.stores.json.families import move
from ksana.stores.json.moving import fill_slots
from ksana.stores.json.tx import Tx

_replace = msgspec.structs.replace
_SAID = ("ref", "name", "target", "schedule", "retry", "timeouts", "deleted_at")


def add_jobs(tx: Tx, jobs: Sequence[Job], record: IdempotencyRecord | None) -> None:
    remember_answer(tx, record)
    for job in jobs:
        if job.id in tx.tables.jobs.rows:
            raise AlreadyExists(f"there is a job {job.id} already")
        _put(tx, job)


def _put(tx: Tx, job: Job) -> None:
    jobs = tx.tables.jobs
    if job.ref and job.deleted_at is None and jobs.by_ref.get((job.surface, job.ref), job.id) != job.id:
        raise AlreadyExists(f"{job.ref} already exists; choose another")
    tx.put(jobs, job.id, job)


def change_jobs(tx: Tx, changes: Sequence[JobChange]) -> list[Run]:
    for change in changes:
        _refuse_stale(change, tx.tables.jobs.get(change.job.id))
    canceled: list[Run] = []
    for change in changes:
        canceled += _change(tx, change)
    # A larger limit, or none, may let in whoever waits.
    for job_id in sorted({change.job.id for change in changes}):
        fill_slots(tx, job_id)
    return canceled


def _refuse_stale(change: JobChange, stored: Job | None) -> None:
    if stored is None:
        raise NotFound(f"there is no job {change.job.id}")
    if stored.version != change.version:
        raise VersionConflict(
            f"job {stored.id} is at version {stored.version}, not {change.version}; read it again and repeat the change"
        )
    if change.cursor_was is not msgspec.UNSET and change.cursor_was != stored.next_slot_at:
        raise CursorMoved(f"job {stored.id} has fired")


def _change(tx: Tx, change: JobChange) -> list[Run]:
    old, new = tx.tables.jobs.rows[change.job.id], change.job
    if not change.moves_cursor:
        new = _replace(new, next_slot_at=old.next_slot_at, next_fire_at=old.next_fire_at)
    _put(tx, new)
    if any(getattr(old, name) != getattr(new, name) for name in _SAID):
        # What could not be read from the file has been said anew.
        tx.drop(tx.tables.broken, new.id)
    if change.gap is not None:
        keep_gap(tx, change.gap)
    runs = tx.tables.runs
    live = [runs.rows[run_id] for run_id in runs.live[new.id]]
    resting = [_replace(run, job_version=new.version) for run in live if run.state in AT_REST]
    for run in resting:
        tx.put(runs, run.id, run)
    leaving = [runs.rows[run.id] for run in live if run.state in change.cancels]
    moves = [Move(run.epoch, advance(run, Event.CANCEL, new.updated_at, reason=change.reason)) for run in leaving]
    move(tx, moves, ())
    return [one.run for one in moves]


def keep_gap(tx: Tx, gap: Gap) -> None:
    """Record a gap, the same one only once."""
    key = (gap.job_id, gap.from_at, gap.reason)
    if key not in tx.tables.gaps.rows:
        tx.put(tx.tables.gaps, key, gap)


def remember_answer(tx: Tx, record: IdempotencyRecord | None) -> None:
    """Keep the answer beside what it created; IdempotencyReplay if the key was answered before."""
    if record is None:
        return
    answered = tx.tables.answers.get((record.scope, record.key))
    if answered is not None:
        raise IdempotencyReplay(answered)
    tx.put(tx.tables.answers, (record.scope, record.key), record)
