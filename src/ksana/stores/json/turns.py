"""Moving and claiming runs. A move counts if (id, epoch) still matches, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from ksana.domain.alerts import Alert
from ksana.domain.moves import Move, advance, storable
from ksana.domain.outcomes import Exchange
from ksana.domain.policies import Priority
from ksana.domain.ports import Claim, Claimed, Turn
from ksana.domain.runs import Attempt, Run
from ksana.domain.states import Event, State
from ksana.stores.json.outbox import keep_alerts
from ksana.stores.json.tables import Tables
from ksana.stores.json.tx import Tx

_replace = msgspec.structs.replace
_NO_RUNS: frozenset[int] = frozenset()

BY_PRIORITY = sorted(Priority, reverse=True)


def turn(tx: Tx, moves: Sequence[Move], claim: Claim | None, alerts: Sequence[Alert] = ()) -> Turn:
    lost, admitted = apply_moves(tx, moves)
    keep_alerts(tx, [alert for alert in alerts if alert.run_id not in lost])
    claimed = _claim(tx, claim) if claim is not None and claim.limit > 0 else []
    return Turn(lost, claimed, admitted)


def apply_moves(tx: Tx, moves: Sequence[Move]) -> tuple[frozenset[int], int]:
    """Apply the moves that still count, keep their attempts, fill freed slots.

    Answer the runs whose moves lost, and how many that waited were let in.
    """
    if not moves:
        return _NO_RUNS, 0
    # A move offered again after an unclear answer may share a batch with the next move of its run: the first of two
    # alike counts, and those of one run follow each other by epoch.
    tried = {(move.run.id, move.epoch): move for move in reversed(moves)}
    won = [move for key in sorted(tried, key=_epoch) if _move(tx, move := tried[key])]
    lost = frozenset(run_id for run_id, _ in tried) - {move.run.id for move in won}
    freed = {move.run.job_id for move in won if move.frees_slot and move.run.job_id is not None}
    return lost, sum(fill_slots(tx, job_id) for job_id in sorted(freed))


def _epoch(key: tuple[int, int]) -> int:
    return key[1]


def _move(tx: Tx, move: Move) -> bool:
    tables = tx.tables
    stored = tables.runs.get(move.run.id)
    if stored is None or stored.epoch != move.epoch:
        return False
    # The version follows the job without a move; the one that moves may not have heard of it.
    tx.put(tables.runs, stored.id, _replace(move.run, job_version=stored.job_version, node_id=None))
    if move.attempt is not None:
        tx.put(tables.attempts, (move.attempt.run_id, move.attempt.epoch), readable(move.attempt))
    if move.taken_from is not None:
        heard = tables.taken.get(move.taken_from) or frozenset()
        tx.put(tables.taken, move.taken_from, heard | {(stored.id, move.epoch)})
    return True


def readable(attempt: Attempt) -> Attempt:
    """The attempt with text that can be written: what targets say may hold halves of characters."""
    exchange = attempt.exchange
    if exchange is not None:
        exchange = _readable_exchange(exchange)
    return _replace(attempt, error=storable(attempt.error), exchange=exchange)


def _readable_exchange(exchange: Exchange) -> Exchange:
    return _replace(
        exchange,
        request_line=storable(exchange.request_line),
        request_headers=readable_headers(exchange.request_headers),
        response_headers=readable_headers(exchange.response_headers),
    )


def readable_headers(headers: dict[str, str]) -> dict[str, str]:
    return {storable(name): storable(value) for name, value in headers.items()}


def fill_slots(tx: Tx, job_id: int) -> int:
    """Let the longest-waiting runs of a job in, as far as its limit allows; answer how many."""
    runs = tx.tables.runs
    waiting = runs.waiting[job_id]
    job = tx.tables.jobs.get(job_id)
    if not waiting or job is None:
        return 0
    limit = job.overlap.limit
    free = len(waiting) if limit is None else max(0, limit - len(runs.holding[job_id]))
    admitted = waiting[:free]
    for _, run_id in admitted:
        run = runs.rows[run_id]
        tx.put(runs, run_id, _replace(run, state=State.SCHEDULED, reason=None, epoch=run.epoch + 1))
    return len(admitted)


def admit_waiting(tx: Tx) -> int:
    """Let in whoever waits for a slot that is free."""
    return sum(fill_slots(tx, job_id) for job_id in sorted(tx.tables.runs.waiting.groups()))


def _claim(tx: Tx, claim: Claim) -> list[Claimed]:
    tables = tx.tables
    due: list[int] = []
    for priority in BY_PRIORITY:
        if len(due) < claim.limit:
            due += _due(tables, claim, priority, claim.limit - len(due))
    claimed: list[Run] = []
    for run_id in due:
        run = advance(tables.runs.rows[run_id], Event.CLAIM, claim.now, node_id=claim.node_id)
        tx.put(tables.runs, run_id, run)
        claimed.append(run)
    return with_jobs(tables, claimed)


def _due(tables: Tables, claim: Claim, priority: Priority, limit: int) -> list[int]:
    """The next runs of one priority over all the queues."""
    found: list[tuple[datetime, int]] = []
    for queue in dict.fromkeys(claim.queues):
        ready = tables.runs.ready[queue, priority.value]
        found += ready[: min(limit, ready.through(claim.now))]
    return [run_id for _, run_id in sorted(found)[:limit]]


def with_jobs(tables: Tables, runs: Iterable[Run]) -> list[Claimed]:
    """Each run with the job it belongs to."""
    return [Claimed(run, None if run.job_id is None else tables.jobs.get(run.job_id)) for run in runs]
