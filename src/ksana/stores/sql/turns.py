"""Moving and claiming runs: the innermost loop. A move counts if (id, epoch) still matches, and by nothing else."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ksana.domain.moves import Move
from ksana.domain.policies import Priority
from ksana.domain.ports import Claim, Claimed, Turn
from ksana.domain.runs import Attempt, Run
from ksana.domain.times import to_micros
from ksana.stores.sql.catalog import Catalog
from ksana.stores.sql.rows import (
    Change,
    Row,
    attempt_row_from_last,
    attempt_to_row,
    change_of,
    claimed_from_row,
    exchange_to_row,
    is_told_in_run,
    last_attempt_of,
)
from ksana.stores.sql.statements import (
    ADMIT_RUNS,
    ALL_WAITED_JOBS,
    ATTEMPTS,
    CLAIM_RUNS,
    DUE_COLUMNS,
    DUE_RUNS,
    EXCHANGES,
    FORGET_LAST_ATTEMPTS,
    HOLDING_RUNS,
    JOB_VERSIONS,
    LAST_ATTEMPTS_OF_RUNS,
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


async def turn(tx: Tx, catalog: Catalog, moves: Sequence[Move], claim: Claim | None) -> Turn:
    lost, admitted = await apply_moves(tx, moves)
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
    won = await _swap(tx, tried.values())
    lost = _NO_RUNS
    ordered = list(tried.values())
    if len(won) < len(ordered):
        lost = frozenset(move.run.id for move in ordered) - {run_id for run_id, _ in won}
        ordered = [move for key, move in tried.items() if key in won]
    await _keep_attempts(tx, ordered)
    if taken := [(move.taken_from, move.run.id, move.epoch) for move in ordered if move.taken_from is not None]:
        await tx.insert_new(TAKEN, taken)
    if freed := {move.run.job_id for move in ordered if move.frees_slot and move.run.job_id is not None}:
        return lost, await fill_slots(tx, sorted(freed))
    return lost, 0


async def _swap(tx: Tx, moves: Collection[Move]) -> set[tuple[int, int]]:
    """Make the moves whose epoch still stands, one statement for all that do the same; answer which those were."""
    alike: dict[Change, dict[int, Attempt | None]] = {}
    for move in moves:
        alike.setdefault(change_of(move), {})[move.run.id] = move.attempt
    won: set[tuple[int, int]] = set()
    # By rising epoch, so that two moves of one run follow each other.
    for change in sorted(alike, key=_epoch):
        # Rows are locked in rising order of id, so that two batches which share runs rarely lock each other out.
        told = dict(sorted(alike[change].items()))
        moved = await (_end(tx, change, told) if change.is_told else _move(tx, change, list(told)))
        won.update([(run_id, change.epoch) for run_id in moved])
    return won


async def _end(tx: Tx, change: Change, attempts: Mapping[int, Attempt | None]) -> Collection[int]:
    told = {run_id: last_attempt_of(attempt) for run_id, attempt in attempts.items() if attempt is not None}
    return await tx.end(
        told,
        change.epoch,
        state=change.state,
        reason=change.reason,
        failures=change.failures,
        reclaims=change.reclaims,
        ended_at=change.ended_at,
        error=change.error,
    )


async def _move(tx: Tx, change: Change, ids: list[int]) -> list[int]:
    if change.ended_at is None:
        await _set_last_attempts_apart(tx, ids)
    return await tx.swap(
        MOVE_RUNS,
        ids=ids,
        epoch=change.epoch,
        state=change.state,
        reason=change.reason,
        failures=change.failures,
        reclaims=change.reclaims,
        due_at=change.due_at,
        deadline_at=change.deadline_at,
        ended_at=change.ended_at,
        error=change.error,
    )


async def _set_last_attempts_apart(tx: Tx, ids: list[int]) -> None:
    """A run that goes on after it had ended: what ended it then was not the last attempt."""
    if rows := await tx.rows(LAST_ATTEMPTS_OF_RUNS, ids=ids):
        await tx.insert_new(ATTEMPTS, [attempt_row_from_last(run_id, told) for run_id, told in rows])
        await tx.run(FORGET_LAST_ATTEMPTS, ids=[row[0] for row in rows])


def _epoch(change: Change) -> int:
    return change.epoch


async def _keep_attempts(tx: Tx, moves: Sequence[Move]) -> None:
    """Keep what the rows of the runs do not tell: attempts that were not the last, results, what went over the wire."""
    if apart := [move.attempt for move in moves if move.attempt is not None and not is_told_in_run(move)]:
        await tx.insert(ATTEMPTS, [attempt_to_row(attempt) for attempt in apart])
    if exchanges := [exchange_to_row(a, a.exchange) for m in moves if (a := m.attempt) is not None and a.exchange]:
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
    rows: list[Row] = []
    for priority in BY_PRIORITY:
        if len(rows) < claim.limit:
            rows += await _due(tx, claim, priority, claim.limit - len(rows))
    if not rows:
        return []
    await tx.run(CLAIM_RUNS, node_id=claim.node_id, now=to_micros(claim.now), ids=[row[_ID] for row in rows])
    runs = [claimed_from_row(row, claim.node_id, claim.now) for row in rows]
    return await with_jobs(tx, catalog, runs, [run for run in runs if run.attempt > 1])


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
_DUE_AT = DUE_COLUMNS.names.index("due_at")


def _due_order(row: Row) -> tuple[int, int]:
    return row[_DUE_AT], row[_ID]


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
