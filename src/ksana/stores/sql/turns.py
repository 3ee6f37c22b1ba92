"""Moving and claiming runs: the innermost loop. A move counts if (id, epoch) still matches, and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ksana.domain.alerts import Alert
from ksana.domain.moves import Move, advance
from ksana.domain.policies import Priority
from ksana.domain.ports import Claim, Claimed, Turn
from ksana.domain.runs import Attempt, Run
from ksana.domain.states import Event, State
from ksana.domain.times import to_micros
from ksana.stores.sql.catalog import Catalog
from ksana.stores.sql.outbox import keep_alerts
from ksana.stores.sql.rows import Change, attempt_to_row, change_of, exchange_to_row, run_from_row
from ksana.stores.sql.statements import (
    ADMIT_RUNS,
    ALL_WAITED_JOBS,
    ATTEMPTS,
    CLAIM_RUNS,
    DUE_RUNS,
    EXCHANGES,
    HOLDING_RUNS,
    JOB_VERSIONS,
    LOCK_CURSORS,
    MOVE_RUNS,
    TAKEN,
    WAITED_JOBS,
    WAITING_RUNS,
)
from ksana.stores.sql.tx import Tx

_NO_RUNS: frozenset[int] = frozenset()

# A job whose limit was lifted while runs waited lets them all in, in steps of this many.
_EVERYBODY = 10_000

BY_PRIORITY = sorted(Priority, reverse=True)


async def turn(
    tx: Tx, catalog: Catalog, moves: Sequence[Move], claim: Claim | None, alerts: Sequence[Alert] = ()
) -> Turn:
    lost, admitted = await apply_moves(tx, moves)
    if alerts and (kept := [alert for alert in alerts if alert.run_id not in lost]):
        await keep_alerts(tx, kept)
    claimed = await _claim(tx, catalog, claim) if claim is not None and claim.limit > 0 else []
    return Turn(lost, claimed, admitted)


async def apply_moves(tx: Tx, moves: Sequence[Move]) -> tuple[frozenset[int], int]:
    """Apply the moves that still count, keep their attempts, fill freed slots.

    Answer the runs whose moves lost, and how many that waited were let in.
    """
    if not moves:
        return _NO_RUNS, 0
    # A move offered again after an unclear answer may share a batch with the next move of its run.
    tried = {(move.run.id, move.epoch): move for move in reversed(moves)}
    won = await _swap(tx, tried)
    lost = _NO_RUNS
    ordered = list(tried.values())
    if len(won) < len(ordered):
        lost = frozenset(move.run.id for move in ordered) - {run_id for run_id, _ in won}
        ordered = [move for key, move in tried.items() if key in won]
    attempts = [move.attempt for move in ordered if move.attempt is not None]
    if attempts:
        await _keep_attempts(tx, attempts)
    if taken := [(move.taken_from, move.run.id, move.epoch) for move in ordered if move.taken_from is not None]:
        await tx.insert_new(TAKEN, taken)
    if freed := {move.run.job_id for move in ordered if move.frees_slot and move.run.job_id is not None}:
        return lost, await fill_slots(tx, sorted(freed))
    return lost, 0


async def _swap(tx: Tx, tried: dict[tuple[int, int], Move]) -> set[tuple[int, int]]:
    """Make the moves whose epoch still stands, one statement for all that do the same; answer which those were."""
    alike: dict[Change, list[int]] = {}
    for (run_id, _), move in tried.items():
        alike.setdefault(change_of(move), []).append(run_id)
    won: set[tuple[int, int]] = set()
    # By rising epoch, so that two moves of one run follow each other.
    for change in sorted(alike, key=_epoch):
        # Rows are locked in rising order of id, so that two batches which share runs rarely lock each other out.
        moved = await tx.swap(MOVE_RUNS, ids=sorted(alike[change]), **change._asdict())
        won.update([(run_id, change.epoch) for run_id in moved])
    return won


def _epoch(change: Change) -> int:
    return change.epoch


async def _keep_attempts(tx: Tx, attempts: Sequence[Attempt]) -> None:
    await tx.insert(ATTEMPTS, [attempt_to_row(attempt) for attempt in attempts])
    exchanges = [exchange_to_row(a, a.exchange) for a in attempts if a.exchange is not None]
    if exchanges:
        await tx.insert(EXCHANGES, exchanges)


async def fill_slots(tx: Tx, job_ids: list[int]) -> int:
    """Let the longest-waiting runs of these jobs in, as far as their limits allow; answer how many."""
    # Firing holds the cursor while it counts; taking it here means whoever waits because of the run that just ended
    # is already visible, and whoever comes later sees the slot free. Nobody is left waiting for a slot that is free.
    limits = {row[0]: row[2] for row in await tx.rows(LOCK_CURSORS, ids=job_ids)}
    waited = [row[0] for row in await tx.rows(WAITED_JOBS, ids=job_ids)]
    if not waited:
        return 0
    holding: dict[int, int] = {row[0]: row[1] for row in await tx.rows(HOLDING_RUNS, ids=waited)}
    admitted: list[int] = []
    for job_id in waited:
        limit = limits.get(job_id)
        free = _EVERYBODY if limit is None else limit - holding.get(job_id, 0)
        if free > 0:
            admitted += [row[0] for row in await tx.rows(WAITING_RUNS, job_id=job_id, limit=free)]
    if admitted:
        await tx.run(ADMIT_RUNS, ids=admitted)
    return len(admitted)


async def admit_waiting(tx: Tx) -> int:
    """Let in whoever waits for a slot that is free."""
    waited = sorted({row[0] for row in await tx.rows(ALL_WAITED_JOBS)})
    return await fill_slots(tx, waited) if waited else 0


async def _claim(tx: Tx, catalog: Catalog, claim: Claim) -> list[Claimed]:
    due: list[Run] = []
    for priority in BY_PRIORITY:
        if len(due) < claim.limit:
            due += await _due(tx, claim, priority, claim.limit - len(due))
    if not due:
        return []
    await tx.run(CLAIM_RUNS, node_id=claim.node_id, now=to_micros(claim.now), ids=[run.id for run in due])
    runs = [advance(run, Event.CLAIM, claim.now, node_id=claim.node_id) for run in due]
    return await with_jobs(tx, catalog, runs, [run for run in due if run.state is State.RETRYING])


async def _due(tx: Tx, claim: Claim, priority: Priority, limit: int) -> list[Run]:
    """The next runs of one priority over all the queues: each queue has its own order in the index, merged here."""
    now = to_micros(claim.now)
    queues = dict.fromkeys(claim.queues)
    rows: list[tuple[Any, ...]] = []
    for queue in queues:
        rows += await tx.rows(DUE_RUNS, queue=queue, priority=priority.value, now=now, limit=limit)
    runs = [run_from_row(row) for row in rows]
    if len(queues) > 1:
        runs.sort(key=_due_order)
    return runs[:limit]


def _due_order(run: Run) -> tuple[datetime, int]:
    return run.due_at, run.id


async def with_jobs(tx: Tx, catalog: Catalog, runs: Sequence[Run], behind: Sequence[Run]) -> list[Claimed]:
    """Each run with the job it belongs to. Those that may be `behind` were not at rest when their job last changed."""
    wanted: dict[int, int] = {}
    for run in runs:
        if run.job_id is not None:
            wanted[run.job_id] = max(run.job_version, wanted.get(run.job_id, 0))
    if changed := sorted({run.job_id for run in behind if run.job_id is not None}):
        wanted.update(await tx.rows(JOB_VERSIONS, ids=changed))
    jobs = await catalog.jobs(tx, wanted.items())
    return [Claimed(run, None if run.job_id is None else jobs.get(run.job_id)) for run in runs]
