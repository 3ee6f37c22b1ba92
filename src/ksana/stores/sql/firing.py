"""From due cursors to runs: one transaction adds the runs, records the gaps and moves the cursors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from ksana.domain.claims import Claimed, Fired
from ksana.domain.errors import AlreadyExists, NotFound
from ksana.domain.fires import DueJob, Fire
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.jobs import Job
from ksana.domain.runs import Run
from ksana.domain.times import from_micros, to_micros
from ksana.stores.sql.catalog import Catalog
from ksana.stores.sql.jobs import remember_answer
from ksana.stores.sql.rows import Row, gap_to_row, micros_or_none
from ksana.stores.sql.run_rows import FRESH, run_to_row
from ksana.stores.sql.statements import ACTIVE_RUNS, DUE_CURSORS, LOCK_CURSORS, MOVE_CURSORS, RUNS_PRESENT
from ksana.stores.sql.tables import CURSORS, FRESH_RUNS, GAPS, RUNS, Table
from ksana.stores.sql.tx import Tx, UniqueViolation

FRESH_COUNT = len(FRESH_RUNS.names)
_MOVED_CURSORS = CURSORS.only("job_id", "next_slot_at", "next_fire_at")

# How many cursors go to the same place, on average, for a statement per place to be worth it.
_ALIKE = 8


async def fire_due(
    tx: Tx, catalog: Catalog, now: datetime, limit: int, decide: Callable[[list[DueJob]], list[Fire]]
) -> Fired:
    cursors = await tx.rows(DUE_CURSORS, now=to_micros(now), limit=limit)
    if not cursors:
        return Fired([], [], 0)
    jobs = await catalog.jobs(tx, ((row[0], row[1]) for row in cursors))
    active = await active_runs(tx, [row[0] for row in cursors if row[2] is not None])
    instants = _Instants()
    fires = decide(
        [
            DueJob(jobs[job_id], instants[slot_at], instants[fire_at], active.get(job_id, 0))
            for job_id, _, _, slot_at, fire_at in cursors
        ]
    )
    gaps = [gap for fire in fires for gap in fire.gaps]
    runs = await _add_runs(tx, [run for fire in fires for run in fire.runs])
    if gaps:
        await tx.insert_new(GAPS, [gap_to_row(gap) for gap in gaps])
    await move_cursors(
        tx, [(fire.job_id, micros_or_none(fire.next_slot_at), micros_or_none(fire.next_fire_at)) for fire in fires]
    )
    return Fired([Claimed(run, jobs[run.job_id]) for run in runs if run.job_id is not None], gaps, len(cursors))


async def move_cursors(tx: Tx, moves: Sequence[tuple[int, int | None, int | None]]) -> None:
    """Put cursors on (job, next slot, next fire). Jobs that come due together often have their next slot in common
    too, and are then moved by one statement for each such place."""
    alike: dict[tuple[int | None, int | None], list[int]] = {}
    for job_id, slot_at, fire_at in moves:
        alike.setdefault((slot_at, fire_at), []).append(job_id)
    if len(alike) * _ALIKE > len(moves):
        await tx.update(_MOVED_CURSORS, moves)
        return
    for (slot_at, fire_at), ids in alike.items():
        await tx.run(MOVE_CURSORS, next_slot_at=slot_at, next_fire_at=fire_at, ids=ids)


class _Instants(dict[int, datetime]):
    """Instants by their microseconds: jobs that come due together mostly have theirs in common."""

    def __missing__(self, micros: int) -> datetime:
        instant = self[micros] = from_micros(micros)
        return instant


async def active_runs(tx: Tx, job_ids: list[int]) -> dict[int, int]:
    if not job_ids:
        return {}
    return {row[0]: row[1] for row in await tx.rows(ACTIVE_RUNS, ids=job_ids)}


async def _add_runs(tx: Tx, runs: list[Run]) -> list[Run]:
    if not runs:
        return runs
    rows = [run_to_row(run) for run in runs]
    if all(row[FRESH_COUNT:] == FRESH for row in rows):
        added = await add_rows(tx, FRESH_RUNS, [row[:FRESH_COUNT] for row in rows])
    else:
        added = await add_rows(tx, RUNS, rows)
    if len(added) == len(runs):
        return runs
    ids = {row[0] for row in added}
    return [run for run in runs if run.id in ids]


async def add_rows(tx: Tx, table: Table, rows: Sequence[tuple[Any, ...]]) -> Sequence[Row]:
    """Add runs whose slot has none yet: the unique row is the fire, whatever brought the cursor back here. Answer the
    rows that are new."""
    if await tx.insert_new(table, rows) == len(rows):
        return rows
    present = {row[0] for row in await tx.rows(RUNS_PRESENT, ids=[row[0] for row in rows])}
    return [row for row in rows if row[0] in present]


async def add_run(
    tx: Tx,
    catalog: Catalog,
    job_id: int,
    make: Callable[[Job, int], Run],
    record: Callable[[Run], IdempotencyRecord] | None,
) -> Run:
    locked = await tx.rows(LOCK_CURSORS, ids=[job_id])
    if not locked:
        raise NotFound(f"there is no job {job_id}")
    jobs = await catalog.jobs(tx, [(job_id, locked[0][1])])
    active = await active_runs(tx, [job_id])
    run = make(jobs[job_id], active.get(job_id, 0))
    await remember_answer(tx, record(run) if record else None)
    try:
        await tx.insert(RUNS, [run_to_row(run)])
    except UniqueViolation:
        raise AlreadyExists(f"there is a run {run.id}, or one of its slot, already") from None
    return run
