"""Moving runs. A move counts if (id, epoch) still matches, and by nothing else."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from ksana.domain.moves import Move
from ksana.domain.states import FINAL, Reason, State
from ksana.stores.sql.attempt_rows import attempt_row_from_last, attempt_to_row, exchange_to_row, last_attempt_of
from ksana.stores.sql.kept import keep
from ksana.stores.sql.move_rows import About, Change, about, change_of
from ksana.stores.sql.run_rows import run_to_row
from ksana.stores.sql.slots import fill_slots
from ksana.stores.sql.statements import FORGET_LAST_ATTEMPTS, LAST_ATTEMPTS_OF_RUNS, MOVE_RUNS
from ksana.stores.sql.tables import ATTEMPTS, CHAINS, EXCHANGES, RUNS, TAKEN
from ksana.stores.sql.tx import Told, Tx

_NO_RUNS: frozenset[int] = frozenset()
_INPUTS = RUNS.only("id", "input")

Key = tuple[int, int]
"""A run and its epoch."""


class Moves(NamedTuple):
    """Moves as they are going to be written, worked out before the transaction: where one thread writes, the others get
    on meanwhile. `alike` has, for each change, the runs that make it with what each of them tells of its end."""

    tried: dict[Key, Move]
    alike: list[tuple[Change, Told]]
    attempts: list[tuple[Any, ...]]
    exchanges: list[tuple[Any, ...]]
    taken: list[tuple[Any, ...]]
    kept: list[tuple[Key, tuple[Any, ...]]]
    inputs: list[tuple[Key, tuple[Any, ...]]]
    branches: list[Move]
    parents: frozenset[int]
    """Runs whose children come to an end by these moves, or go on after they had."""
    frees_slots: bool


def prepare(moves: Sequence[Move]) -> Moves:
    """Work out what to write for these moves."""
    # A move offered again after an unclear answer may share a batch with the next move of its run.
    tried = {(move.run.id, move.epoch): move for move in reversed(moves)}
    alike: dict[About, tuple[Change, Told]] = {}
    attempts: list[tuple[Any, ...]] = []
    exchanges: list[tuple[Any, ...]] = []
    taken: list[tuple[Any, ...]] = []
    kept: list[tuple[Key, tuple[Any, ...]]] = []
    inputs: list[tuple[Key, tuple[Any, ...]]] = []
    branches: list[Move] = []
    parents: list[int] = []
    frees_slots = False
    last_said: tuple[Any, ...] = ()
    # Rows are locked in rising order of id, so that two batches which share runs rarely lock each other out.
    for key, move in sorted(tried.items()):
        run_id, run = key[0], move.run
        group = alike.get(what := about(move))
        if group is None:
            group = alike[what] = (change_of(what), {})
        change, told = group
        if move.frees_slot:
            frees_slots = True
        if move.taken_from is not None:
            taken.append((move.taken_from, run_id, move.epoch))
        if move.artifact is not None or move.checkpoint is not None:
            kept.append((key, (run_id, move.artifact, move.checkpoint)))
        if move.input is not None:
            inputs.append((key, (run_id, move.input)))
        if move.branch is not None:
            branches.append(move)
        if run.parent_id is not None and (run.state in FINAL or goes_on(move)):
            parents.append(run.parent_id)
        attempt = move.attempt
        if attempt is None:
            told[run_id] = None
            continue
        if change.is_told:
            said = last_attempt_of(attempt)
            # Runs of which the same is told share one value, by which a driver may know them.
            if said != last_said:
                last_said = said
            told[run_id] = last_said
        else:
            told[run_id] = None
            attempts.append(attempt_to_row(attempt))
        if attempt.exchange is not None:
            exchanges.append(exchange_to_row(attempt, attempt.exchange))
    # By rising epoch, so that two moves of one run follow each other.
    changes = sorted(alike.values(), key=_epoch)
    return Moves(tried, changes, attempts, exchanges, taken, kept, inputs, branches, frozenset(parents), frees_slots)


def is_one_change(moves: Moves) -> bool:
    """Whether these moves are made by a single `Tx.swap`, and nothing follows from them."""
    if len(moves.alike) != 1 or moves.parents:
        return False
    [(change, _)] = moves.alike
    if change.is_told or _comes_back(change):
        return False
    if moves.attempts or moves.exchanges or moves.taken or moves.kept or moves.inputs or moves.branches:
        return False
    return not moves.frees_slots


def goes_on(move: Move) -> bool:
    """Whether the run may have been over before."""
    return move.run.state is State.RETRYING and move.run.failures == 0


def _epoch(group: tuple[Change, Told]) -> int:
    return group[0].epoch


async def apply_moves(tx: Tx, moves: Moves) -> tuple[frozenset[int], int]:
    """Apply the moves that still count, keep their attempts, fill freed slots.

    Answer the runs whose moves lost, and how many that waited were let in.
    """
    if not moves.tried:
        return _NO_RUNS, 0
    won = await _swap(tx, moves.alike)
    lost = _NO_RUNS
    if won is not None:
        lost = frozenset(run_id for run_id, _ in moves.tried) - {run_id for run_id, _ in won}
        moves = _only(moves, won)
    for table, rows in ((ATTEMPTS, moves.attempts), (EXCHANGES, moves.exchanges)):
        if rows:
            await tx.insert(table, rows)
    if moves.taken:
        await tx.insert_new(TAKEN, moves.taken)
    if moves.kept:
        await keep(tx, [row for _, row in moves.kept])
    if moves.inputs:
        await tx.update(_INPUTS, [row for _, row in moves.inputs])
    if moves.branches:
        await _branch(tx, moves.branches)
    if not moves.frees_slots:
        return lost, 0
    freed = {m.run.job_id for m in moves.tried.values() if m.frees_slot and m.run.job_id is not None}
    return lost, await fill_slots(tx, sorted(freed)) if freed else 0


def _only(moves: Moves, won: set[Key]) -> Moves:
    return Moves(
        {key: move for key, move in moves.tried.items() if key in won},
        moves.alike,
        [row for row in moves.attempts if tuple(row[:2]) in won],
        [row for row in moves.exchanges if tuple(row[:2]) in won],
        [row for row in moves.taken if tuple(row[1:]) in won],
        [(key, row) for key, row in moves.kept if key in won],
        [(key, row) for key, row in moves.inputs if key in won],
        [move for move in moves.branches if (move.run.id, move.epoch) in won],
        moves.parents,
        moves.frees_slots,
    )


async def _branch(tx: Tx, moves: Sequence[Move]) -> None:
    """Add the children of runs that hand their work over, and the plan by which they were made."""
    branches = [(move.run.id, move.branch) for move in moves if move.branch is not None]
    await tx.insert(CHAINS, [(run_id, 0) for run_id, _ in branches])
    await tx.update(_INPUTS, [(run_id, branch.plan) for run_id, branch in branches])
    if rows := [run_to_row(child) for _, branch in branches for child in branch.children]:
        await tx.insert(RUNS, rows)


async def _swap(tx: Tx, alike: list[tuple[Change, Told]]) -> set[Key] | None:
    """Make the moves whose epoch still stands, one statement for all that do the same; answer which those were, or None
    if it was all of them."""
    moves: list[tuple[int, Collection[int]]] = []
    is_all = True
    for change, told in alike:
        moved = await (_end(tx, change, told) if change.is_told else _move(tx, change, list(told)))
        moves.append((change.epoch, moved))
        is_all = is_all and len(moved) == len(told)
    return None if is_all else {(run_id, epoch) for epoch, moved in moves for run_id in moved}


async def _end(tx: Tx, change: Change, told: Told) -> Collection[int]:
    return await tx.end(told, change.epoch, **ended_as(change))


def ended_as(change: Change) -> dict[str, Any]:
    """How a run ends, as `Tx.end` takes it."""
    return {
        "state": change.state,
        "reason": change.reason,
        "failures": change.failures,
        "reclaims": change.reclaims,
        "ended_at": change.ended_at,
        "error": change.error,
    }


async def _move(tx: Tx, change: Change, ids: list[int]) -> list[int]:
    if _comes_back(change):
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
        began_at=change.began_at,
        ended_at=change.ended_at,
        error=change.error,
    )


def _comes_back(change: Change) -> bool:
    """Whether it may change runs that had ended before."""
    return change.ended_at is None or change.reason == Reason.OPERATOR.value


async def _set_last_attempts_apart(tx: Tx, ids: list[int]) -> None:
    """A run that goes on after it had ended, or ends again by hand: what ended it then does not end it now."""
    if rows := await tx.rows(LAST_ATTEMPTS_OF_RUNS, ids=ids):
        await tx.insert_new(ATTEMPTS, [attempt_row_from_last(row)[: len(ATTEMPTS.names)] for row in rows])
        await tx.run(FORGET_LAST_ATTEMPTS, ids=[row[0] for row in rows])
