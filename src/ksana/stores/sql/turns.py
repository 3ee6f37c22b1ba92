"""Turns: moving and claiming runs in one step, the innermost loop."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from ksana.domain.alerts import Alert
from ksana.domain.jobs import Job
from ksana.domain.policies import Priority
from ksana.domain.ports import Claim, Claimed, Turn
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.domain.times import to_micros
from ksana.stores.sql.catalog import Catalog
from ksana.stores.sql.moving import Moves, apply_moves
from ksana.stores.sql.outbox import keep_alerts
from ksana.stores.sql.rows import Row, claimed_from_rows
from ksana.stores.sql.statements import CLAIM_RUNS, DUE_COLUMNS, DUE_RUNS, JOB_VERSIONS
from ksana.stores.sql.tx import Tx

BY_PRIORITY = sorted(Priority, reverse=True)


class TurnRows(NamedTuple):
    """What a turn did, as far as the transaction is concerned; `told` makes values of it."""

    lost: frozenset[int]
    admitted: int
    claimed: list[Row]
    jobs: dict[int, Job]


async def turn(tx: Tx, catalog: Catalog, moves: Moves, claim: Claim | None, alerts: Sequence[Alert] = ()) -> TurnRows:
    lost, admitted = await apply_moves(tx, moves)
    if alerts and (kept := [alert for alert in alerts if alert.run_id not in lost]):
        await keep_alerts(tx, kept)
    rows = await _claim(tx, claim) if claim is not None else []
    return TurnRows(lost, admitted, rows, await _jobs_of(tx, catalog, rows) if rows else {})


def told(rows: TurnRows, claim: Claim | None) -> Turn:
    """What a turn did."""
    if claim is None or not rows.claimed:
        return Turn(rows.lost, [], rows.admitted)
    jobs = rows.jobs
    runs = claimed_from_rows(rows.claimed, claim.node_id, claim.now)
    return Turn(rows.lost, [_with_job(run, jobs) for run in runs], rows.admitted)


def _with_job(run: Run, jobs: dict[int, Job]) -> Claimed:
    return Claimed(run, None if run.job_id is None else jobs.get(run.job_id))


async def _claim(tx: Tx, claim: Claim) -> list[Row]:
    rows: list[Row] = []
    for priority in BY_PRIORITY:
        if len(rows) < claim.limit:
            rows += await _due(tx, claim, priority, claim.limit - len(rows))
    if rows:
        await tx.run(CLAIM_RUNS, node_id=claim.node_id, now=to_micros(claim.now), ids=[row[_ID] for row in rows])
    return rows


async def _due(tx: Tx, claim: Claim, priority: Priority, limit: int) -> list[Row]:
    """The next runs of one priority over all the queues: each queue has its own order in the index, merged here."""
    now = to_micros(claim.now)
    queues = dict.fromkeys(claim.queues)
    rows: list[Row] = []
    for queue in queues:
        rows += await tx.rows(DUE_RUNS, queue=queue, priority=priority.value, now=now, limit=limit)
    if len(queues) > 1:
        rows.sort(key=_due_order)
    return rows[:limit]


_ID = DUE_COLUMNS.names.index("id")
_JOB_ID = DUE_COLUMNS.names.index("job_id")
_JOB_VERSION = DUE_COLUMNS.names.index("job_version")
_STATE = DUE_COLUMNS.names.index("state")
_DUE_AT = DUE_COLUMNS.names.index("due_at")


def _due_order(row: Row) -> tuple[int, int]:
    return row[_DUE_AT], row[_ID]


async def _jobs_of(tx: Tx, catalog: Catalog, rows: Sequence[Row]) -> dict[int, Job]:
    versions = {(row[_JOB_ID], row[_JOB_VERSION]) for row in rows}
    # Runs that are tried again may not have been at rest when their job last changed, and know an older version.
    return await _jobs(tx, catalog, versions, {row[_JOB_ID] for row in rows if row[_STATE] == State.RETRYING.value})


async def with_jobs(tx: Tx, catalog: Catalog, runs: Sequence[Run]) -> list[Claimed]:
    """Each run with the job it belongs to, as the job is now."""
    jobs = await _jobs(tx, catalog, {(run.job_id, run.job_version) for run in runs}, {run.job_id for run in runs})
    return [_with_job(run, jobs) for run in runs]


async def _jobs(
    tx: Tx, catalog: Catalog, versions: Iterable[tuple[int | None, int]], behind: Collection[int | None]
) -> dict[int, Job]:
    wanted: dict[int, int] = {}
    for job_id, version in versions:
        if job_id is not None:
            wanted[job_id] = max(version, wanted.get(job_id, 0))
    if changed := sorted(job_id for job_id in behind if job_id is not None):
        wanted.update(await tx.rows(JOB_VERSIONS, ids=changed))
    return await catalog.jobs(tx, wanted.items())
