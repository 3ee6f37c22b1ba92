"""Turns: moving and claiming runs in one step, the innermost loop."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from ksana.domain.alerts import Alert
from ksana.domain.claims import Claim, Claimed, Turn
from ksana.domain.jobs import Job
from ksana.domain.moves import Move
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.stores.sql.catalog import Catalog
from ksana.stores.sql.families import Families, move
from ksana.stores.sql.moving import Moves
from ksana.stores.sql.outbox import keep_alerts
from ksana.stores.sql.rows import Row
from ksana.stores.sql.run_rows import claimed_from_rows
from ksana.stores.sql.statements import JOB_VERSIONS
from ksana.stores.sql.tables import DUE_COLUMNS
from ksana.stores.sql.tx import Tx


class TurnRows(NamedTuple):
    """What a turn did, as far as the transaction is concerned; `told` makes values of it."""

    lost: frozenset[int]
    admitted: int
    claimed: list[Row]
    jobs: dict[int, Job]
    followed: list[tuple[Move, Job | None]]


async def turn(
    tx: Tx,
    catalog: Catalog,
    families: Families,
    moves: Moves,
    claim: Claim | None,
    alerts: Sequence[Alert] = (),
    hooks: Sequence[str] = (),
) -> TurnRows:
    lost, admitted, followed, rows = await move(tx, catalog, families, moves, hooks, claim)
    if alerts and (kept := [alert for alert in alerts if alert.run_id not in lost]):
        await keep_alerts(tx, kept)
    if claim is not None and not (claim.for_followers and admitted == len(rows) and not moves.branches):
        rows = [*rows, *await tx.claim(_rest_of(claim, len(rows)))]
    return TurnRows(lost, admitted, rows, await jobs_of(tx, catalog, rows) if rows else {}, followed)


def _rest_of(claim: Claim, count: int) -> Claim:
    return msgspec.structs.replace(claim, limit=claim.limit - count) if count else claim


def told(rows: TurnRows, claim: Claim | None) -> Turn:
    """What a turn did."""
    if claim is None or not rows.claimed:
        return Turn(rows.lost, [], rows.admitted, rows.followed)
    jobs = rows.jobs
    runs = claimed_from_rows(rows.claimed, claim.node_id, claim.now)
    return Turn(rows.lost, [_with_job(run, jobs) for run in runs], rows.admitted, rows.followed)


def _with_job(run: Run, jobs: dict[int, Job]) -> Claimed:
    return Claimed(run, None if run.job_id is None else jobs.get(run.job_id))


_JOB_ID = DUE_COLUMNS.names.index("job_id")
_JOB_VERSION = DUE_COLUMNS.names.index("job_version")
_STATE = DUE_COLUMNS.names.index("state")


async def jobs_of(tx: Tx, catalog: Catalog, rows: Sequence[Row]) -> dict[int, Job]:
    """The jobs of rows that were claimed."""
    versions = {(row[_JOB_ID], row[_JOB_VERSION]) for row in rows}
    # Runs that are tried again may not have been at rest when their job last changed, and know an older version.
    return await _jobs(tx, catalog, versions, {row[_JOB_ID] for row in rows if row[_STATE] == State.RETRYING.value})


def known_jobs(catalog: Catalog, rows: Sequence[Row]) -> dict[int, Job] | None:
    """The same from memory; None if something of it has to be read."""
    if any(row[_STATE] == State.RETRYING.value for row in rows):
        return None
    return catalog.known({(row[_JOB_ID], row[_JOB_VERSION]) for row in rows if row[_JOB_ID] is not None})


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
