"""Firing what was worked out ahead: one transaction finds the cursors that still stand where they were seen, and stores
their runs. What it writes lies ready before the instant comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from ksana.domain.claims import Claimed, Fired
from ksana.domain.fires import DueJob
from ksana.domain.foresight import Births, Foreseen, Prospect, Sight, born, in_order
from ksana.domain.jobs import Job
from ksana.domain.times import from_micros, to_micros
from ksana.stores.sql.as_foreseen import Alike, Born, alike, born_of
from ksana.stores.sql.catalog import Catalog
from ksana.stores.sql.firing import FRESH_COUNT, active_runs, add_rows, move_cursors
from ksana.stores.sql.rows import Row, micros_or_none
from ksana.stores.sql.run_rows import FRESH, run_to_row
from ksana.stores.sql.statements import BURSTS, COMING_CURSORS, STANDING_CURSORS
from ksana.stores.sql.tables import FRESH_RUNS, RUNS, Table
from ksana.stores.sql.tx import Tx

_JOB_ID, _VERSION, _LIMIT, _SLOT_AT = range(4)


class Ready(NamedTuple):
    """Prospects as they are going to be written: the cursors as they must stand, the limits among them, the runs
    without what they get at birth, where the cursors go, and what they have in common, if it is much."""

    cursors: list[tuple[Any, ...]]
    limits: dict[int, int]
    table: Table
    scheduled: list[_Row]
    claimed: list[_Row]
    moves: list[tuple[int, int | None, int | None]]
    alike: Alike | None


_Row = tuple[tuple[Any, ...], tuple[Any, ...]]
"""A row of a run in two parts: what stands between its id and its instants of birth and claim, and what follows."""

_CREATED_AT = RUNS.names.index("created_at")


async def bursts(tx: Tx, after: datetime, until: datetime, least: int) -> list[tuple[datetime, int]]:
    rows = await tx.rows(BURSTS, after=to_micros(after), until=to_micros(until), least=least)
    return [(from_micros(at), count) for at, count in rows]


async def look_ahead(
    tx: Tx,
    catalog: Catalog,
    at: datetime,
    after_id: int,
    limit: int,
    foresee: Callable[[DueJob], Prospect | None],
) -> Sight:
    cursors = await tx.rows(COMING_CURSORS, at=to_micros(at), after_id=after_id, limit=limit)
    jobs = await catalog.jobs(tx, ((row[_JOB_ID], row[_VERSION]) for row in cursors))
    through = cursors[-1][_JOB_ID] if len(cursors) == limit else None
    return Sight(_foreseen(at, cursors, jobs, foresee), through)


def _foreseen(
    at: datetime, cursors: Sequence[Row], jobs: dict[int, Job], foresee: Callable[[DueJob], Prospect | None]
) -> Foreseen:
    found: dict[int, tuple[Any, ...]] = {}
    prospects: list[Prospect] = []
    for cursor in cursors:
        job = jobs[cursor[_JOB_ID]]
        prospect = foresee(DueJob(job, from_micros(cursor[_SLOT_AT]), at, 0))
        # A job read anew may be newer than its cursor was when that was read.
        if prospect is not None and job.version == cursor[_VERSION]:
            prospects.append(prospect)
            found[job.id] = tuple(cursor)
    prospects = in_order(prospects)
    return Foreseen(prospects, _ready(prospects, found))


def _ready(prospects: Sequence[Prospect], cursors: dict[int, tuple[Any, ...]]) -> Ready:
    scheduled = [run_to_row(one.run) for one in prospects]
    claimed = [run_to_row(one.claimed or one.run) for one in prospects]
    is_fresh = all(row[FRESH_COUNT:] == FRESH for row in scheduled)
    end = FRESH_COUNT if is_fresh else None
    moves = [(one.job.id, micros_or_none(one.next_slot_at), micros_or_none(one.next_fire_at)) for one in prospects]
    return Ready(
        [cursors[job_id] for job_id in sorted(cursors)],
        {job_id: row[_LIMIT] for job_id, row in cursors.items() if row[_LIMIT] is not None},
        FRESH_RUNS if is_fresh else RUNS,
        [_cut(row, end) for row in scheduled],
        [_cut(row, end) for row in claimed],
        moves,
        alike(cursors, moves, scheduled, claimed) if is_fresh else None,
    )


def _cut(row: tuple[Any, ...], end: int | None) -> _Row:
    return row[1:_CREATED_AT], row[_CREATED_AT + 2 : end]


def rows_of(foreseen: Foreseen, births: Births) -> list[tuple[Any, ...]]:
    """The rows of the runs that come of the prospects, if all of them stand."""
    ready: Ready = foreseen.own
    now, ids = to_micros(births.now), births.ids
    claims = _claims(foreseen, births)
    rows = [
        (run_id, *middle, now, now, *end)
        for run_id, (middle, end) in zip(ids[:claims], ready.claimed[:claims], strict=True)
    ]
    rows += [
        (run_id, *middle, now, None, *end)
        for run_id, (middle, end) in zip(ids[claims:], ready.scheduled[claims:], strict=True)
    ]
    return rows


def born_alike(foreseen: Foreseen, births: Births) -> list[Born] | None:
    """The same as few statements can store them; None if the prospects have too little in common."""
    ready: Ready = foreseen.own
    return None if ready.alike is None else born_of(ready.alike, births, _claims(foreseen, births))


def _claims(foreseen: Foreseen, births: Births) -> int:
    return sum(1 for one in foreseen.prospects[: births.claims] if one.claimed is not None)


async def fire_foreseen(tx: Tx, ready: Ready, rows: Sequence[tuple[Any, ...]]) -> tuple[Sequence[Row], int]:
    """Store the runs of the prospects that stand; answer the rows that are new, and how many stood."""
    standing = list(map(tuple, await tx.rows(STANDING_CURSORS, ids=[row[_JOB_ID] for row in ready.cursors])))
    gone = set[int]()
    if standing != ready.cursors:
        gone.update(row[_JOB_ID] for row in frozenset(ready.cursors).difference(standing))
    active = await active_runs(tx, [job_id for job_id in ready.limits if job_id not in gone])
    gone.update(job_id for job_id, count in active.items() if count >= ready.limits[job_id])
    moves = ready.moves
    if gone:
        rows = [row for row in rows if row[1] not in gone]
        moves = [move for move in moves if move[0] not in gone]
    if not moves:
        return (), 0
    added = await add_rows(tx, ready.table, rows)
    await move_cursors(tx, moves)
    return added, len(moves)


def told(foreseen: Foreseen, births: Births, added: Sequence[Row] | None = None, stood: int | None = None) -> Fired:
    """What firing did; all that was foreseen, unless something else is said."""
    runs = born(foreseen.prospects, births)
    claimed = [Claimed(run, one.job) for run, one in zip(runs, foreseen.prospects, strict=True)]
    if added is not None and len(added) < len(claimed):
        ids = {row[0] for row in added}
        claimed = [one for one in claimed if one.run.id in ids]
    return Fired(claimed, [], len(runs) if stood is None else stood)
