"""Moving runs. A move counts if (id, epoch) still matches, and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ksana.domain.errors import AlreadyExists
from ksana.domain.moves import Branch, Move, storable
from ksana.domain.outcomes import Exchange
from ksana.domain.runs import Attempt
from ksana.domain.states import State
from ksana.stores.json.kept import keep
from ksana.stores.json.tx import Tx

_replace = msgspec.structs.replace
_NO_RUNS: frozenset[int] = frozenset()


class Applied(NamedTuple):
    """The runs whose moves lost, the moves that counted, and how many that waited for a slot were let in."""

    lost: frozenset[int]
    won: list[Move]
    admitted: int


def apply_moves(tx: Tx, moves: Sequence[Move]) -> Applied:
    """Apply the moves that still count with all they bring along, and fill freed slots."""
    if not moves:
        return Applied(_NO_RUNS, [], 0)
    # A move offered again after an unclear answer may share a batch with the next move of its run: the first of two
    # alike counts, and those of one run follow each other by epoch.
    tried = {(move.run.id, move.epoch): move for move in reversed(moves)}
    won = [move for key in sorted(tried, key=_epoch) if _move(tx, move := tried[key])]
    lost = frozenset(run_id for run_id, _ in tried) - {move.run.id for move in won}
    freed = {move.run.job_id for move in won if move.frees_slot and move.run.job_id is not None}
    return Applied(lost, won, sum(fill_slots(tx, job_id) for job_id in sorted(freed)))


def _epoch(key: tuple[int, int]) -> int:
    return key[1]


def _move(tx: Tx, move: Move) -> bool:
    tables = tx.tables
    stored = tables.runs.get(move.run.id)
    if stored is None or stored.epoch != move.epoch:
        return False
    input = (stored.input if move.input is None else move.input) if move.branch is None else move.branch.plan
    # The version follows the job without a move; the one that moves may not have heard of it.
    tx.put(tables.runs, stored.id, _replace(move.run, job_version=stored.job_version, node_id=None, input=input))
    if move.branch is not None:
        _add_children(tx, move.branch)
    if move.attempt is not None:
        tx.put(tables.attempts, (move.attempt.run_id, move.attempt.epoch), readable(move.attempt))
    if move.taken_from is not None:
        heard = tables.taken.get(move.taken_from) or frozenset()
        tx.put(tables.taken, move.taken_from, heard | {(stored.id, move.epoch)})
    keep(tx, stored.id, move.artifact, move.checkpoint)
    return True


def _add_children(tx: Tx, branch: Branch) -> None:
    runs = tx.tables.runs
    for child in branch.children:
        if child.id in runs.rows:
            raise AlreadyExists(f"there is a run {child.id} already")
        tx.put(runs, child.id, child)


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
