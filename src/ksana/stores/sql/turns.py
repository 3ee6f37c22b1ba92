"""Moving and claiming runs: the innermost loop. A move counts if (id, epoch) still matches, and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ksana.domain.moves import Move, advance
from ksana.domain.policies import Priority
from ksana.domain.ports import Claim, Claimed, Turn
from ksana.domain.runs import Attempt, Run
from ksana.domain.states import Event
from ksana.domain.times import to_micros
from ksana.stores.sql.catalog import Catalog
from ksana.stores.sql.rows import attempt_to_row, exchange_to_row, move_to_row, run_from_row
from ksana.stores.sql.statements import (
    ADMIT_RUNS,
    ATTEMPTS,
    CLAIM_RUNS,
    DUE_RUNS,
    EXCHANGES,
    HOLDING_RUNS,
    LOCK_CURSORS,
    MOVED_RUNS,
    TAKEN,
    WAITED_JOBS,
    WAITING_RUNS,
)
from ksana.stores.sql.tx import Tx

_NO_RUNS: frozenset[int] = frozenset()

BY_PRIORITY = sorted(Priority, reverse=True)


async def turn(tx: Tx, catalog: Catalog, moves: Sequence[Move], claim: Claim | None) -> Turn:
    lost = await apply_moves(tx, moves) if moves else _NO_RUNS
    claimed = await _claim(tx, catalog, claim) if claim is not None and claim.limit > 0 else []
    return Turn(lost, claimed)


async def apply_moves(tx: Tx, moves: Sequence[Move]) -> frozenset[int]:
    """Apply the moves that still count, keep their attempts, fill freed slots; answer the ids of the moves that lost."""
    # Rows are always locked in rising order of id, so that two batches which share runs cannot lock each other out.
    ordered = sorted(moves, key=_run_id)
    won = await tx.swap(MOVED_RUNS, [move_to_row(move) for move in ordered], [move.epoch for move in ordered])
    if len(won) == len(ordered):
        lost = _NO_RUNS
    else:
        lost = frozenset(move.run.id for move in ordered if move.run.id not in won)
        ordered = [move for move in ordered if move.run.id in won]
    attempts = [move.attempt for move in ordered if move.attempt is not None]
    if attempts:
        await _keep_attempts(tx, attempts)
    if taken := [(move.taken_from, move.run.id, move.epoch) for move in ordered if move.taken_from is not None]:
        await tx.insert_new(TAKEN, taken)
    if freed := {move.run.job_id for move in ordered if move.frees_slot and move.run.job_id is not None}:
        await _fill_slots(tx, sorted(freed))
    return lost


def _run_id(move: Move) -> int:
    return move.run.id


async def _keep_attempts(tx: Tx, attempts: Sequence[Attempt]) -> None:
    await tx.insert(ATTEMPTS, [attempt_to_row(attempt) for attempt in attempts])
    exchanges = [exchange_to_row(a, a.exchange) for a in attempts if a.exchange is not None]
    if exchanges:
        await tx.insert(EXCHANGES, exchanges)


async def _fill_slots(tx: Tx, job_ids: list[int]) -> None:
    """Let the longest-waiting runs of these jobs in, as far as their limits allow."""
    # Firing holds the cursor while it counts; taking it here means whoever waits because of the run that just ended
    # is already visible, and whoever comes later sees the slot free. Nobody is left waiting for a slot that is free.
    limits = {row[0]: row[2] for row in await tx.rows(LOCK_CURSORS, ids=job_ids)}
    waited = [row[0] for row in await tx.rows(WAITED_JOBS, ids=job_ids)]
    if not waited:
        return
    holding: dict[int, int] = {row[0]: row[1] for row in await tx.rows(HOLDING_RUNS, ids=waited)}
    admitted: list[int] = []
    for job_id in waited:
        limit = limits.get(job_id)
        free = _EVERYBODY if limit is None else limit - holding.get(job_id, 0)
        if free > 0:
            admitted += [row[0] for row in await tx.rows(WAITING_RUNS, job_id=job_id, limit=free)]
    if admitted:
        await tx.run(ADMIT_RUNS, ids=admitted)


_EVERYBODY = 10_000


async def _claim(tx: Tx, catalog: Catalog, claim: Claim) -> list[Claimed]:
    now = to_micros(claim.now)
    rows: list[tuple[Any, ...]] = []
    for priority in BY_PRIORITY:
        for queue in claim.queues:
            left = claim.limit - len(rows)
            if left > 0:
                rows += await tx.rows(DUE_RUNS, queue=queue, priority=priority.value, now=now, limit=left)
    if not rows:
        return []
    await tx.run(CLAIM_RUNS, node_id=claim.node_id, now=now, ids=[row[0] for row in rows])
    runs = [advance(run_from_row(row), Event.CLAIM, claim.now, node_id=claim.node_id) for row in rows]
    return await with_jobs(tx, catalog, runs)


async def with_jobs(tx: Tx, catalog: Catalog, runs: Sequence[Run]) -> list[Claimed]:
    """Each run with the job it belongs to."""
    wanted = {run.job_id: run.job_version for run in runs if run.job_id is not None}
    jobs = await catalog.jobs(tx, wanted.items())
    return [Claimed(run, None if run.job_id is None else jobs.get(run.job_id)) for run in runs]
