"""Adding and changing jobs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ksana.domain.changes import CursorMoved, JobChange
from ksana.domain.errors import AlreadyExists, NotFound, VersionConflict
from ksana.domain.idempotency import IdempotencyRecord, IdempotencyReplay
from ksana.domain.jobs import Job
from ksana.domain.moves import Move, advance
from ksana.domain.runs import Run
from ksana.domain.states import Event
from ksana.stores.sql.catalog import Catalog
from ksana.stores.sql.families import Families, move
from ksana.stores.sql.job_rows import cursor_to_row, job_to_row
from ksana.stores.sql.moving import prepare
from ksana.stores.sql.rows import Row, gap_to_row, micros_or_none, record_from_row, record_to_row
from ksana.stores.sql.run_rows import run_from_row
from ksana.stores.sql.slots import fill_slots
from ksana.stores.sql.statements import DROP_TAGS, IDEMPOTENT_ANSWER, LOCK_CURSORS, RESTING_RUNS_FOLLOW, RUNS_TO_CANCEL
from ksana.stores.sql.tables import CURSORS, GAPS, IDEMPOTENCY, JOBS, TAGS
from ksana.stores.sql.tx import Tx, UniqueViolation

_NAMED = 5
_DEFINED = CURSORS.only("job_id", "version", "slot_limit")


async def add_jobs(tx: Tx, jobs: Sequence[Job], record: IdempotencyRecord | None) -> None:
    await remember_answer(tx, record)
    try:
        await tx.insert(JOBS, [job_to_row(job) for job in jobs])
    except UniqueViolation:
        raise _taken(jobs) from None
    await tx.insert(CURSORS, [cursor_to_row(job) for job in jobs])
    await tag_jobs(tx, jobs)


def _taken(jobs: Sequence[Job]) -> AlreadyExists:
    refs = ", ".join(job.ref for job in jobs[:_NAMED])
    return AlreadyExists(f"{'' if len(jobs) == 1 else 'one of '}{refs} already exists; choose another")


async def change_jobs(tx: Tx, catalog: Catalog, families: Families, changes: Sequence[JobChange]) -> list[Run]:
    ids = [change.job.id for change in changes]
    cursors = {row[0]: row for row in await tx.rows(LOCK_CURSORS, ids=ids)}
    for change in changes:
        _refuse_stale(change, cursors.get(change.job.id))
    jobs = [change.job for change in changes]
    try:
        await tx.update(JOBS, [job_to_row(job) for job in jobs])
    except UniqueViolation:
        raise _taken(jobs) from None
    await tx.update(_DEFINED, [cursor_to_row(job)[:3] for job in jobs])
    if moved := [cursor_to_row(change.job) for change in changes if change.moves_cursor]:
        await tx.update(CURSORS, moved)
    await tx.run(DROP_TAGS, ids=ids)
    await tag_jobs(tx, [job for job in jobs if job.deleted_at is None])
    canceled: list[Run] = []
    for change in changes:
        await tx.run(RESTING_RUNS_FOLLOW, version=change.job.version, job_id=change.job.id)
        if change.cancels:
            canceled += await _cancel(tx, catalog, families, change)
    if gaps := [gap_to_row(change.gap) for change in changes if change.gap]:
        await tx.insert_new(GAPS, gaps)
    # A larger limit, or none, may let in whoever waits.
    await fill_slots(tx, sorted(ids))
    return canceled


def _refuse_stale(change: JobChange, cursor: Row | None) -> None:
    if cursor is None:
        raise NotFound(f"there is no job {change.job.id}")
    _, version, _, next_slot_at = cursor
    if version != change.version:
        raise VersionConflict(
            f"job {change.job.id} is at version {version}, not {change.version}; read it again and repeat the change"
        )
    if change.cursor_was is not msgspec.UNSET and micros_or_none(change.cursor_was) != next_slot_at:
        raise CursorMoved(f"job {change.job.id} has fired")


async def _cancel(tx: Tx, catalog: Catalog, families: Families, change: JobChange) -> list[Run]:
    rows = await tx.rows(RUNS_TO_CANCEL, job_id=change.job.id, states=[state.value for state in change.cancels])
    now = change.job.updated_at
    moves = [Move(run.epoch, advance(run, Event.CANCEL, now, reason=change.reason)) for run in map(run_from_row, rows)]
    await move(tx, catalog, families, prepare(moves), ())
    return [one.run for one in moves]


async def tag_jobs(tx: Tx, jobs: Sequence[Job]) -> None:
    """Make jobs that have none yet findable by their tags."""
    if rows := [(tag, job.id) for job in jobs for tag in dict.fromkeys(job.tags)]:
        await tx.insert(TAGS, rows)


async def remember_answer(tx: Tx, record: IdempotencyRecord | None) -> None:
    """Keep the answer beside what it created; IdempotencyReplay if the key was answered before."""
    if record is None:
        return
    if await tx.insert_new(IDEMPOTENCY, [record_to_row(record)]) == 0:
        [row] = await tx.rows(IDEMPOTENT_ANSWER, scope=record.scope, key=record.key)
        raise IdempotencyReplay(record_from_row(row))
