"""Families: what the end of a child means for its siblings and its parent, worked out in the same step."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from ksana.domain.alerts import alerts_of
from ksana.domain.chains import Shape
from ksana.domain.errors import InvalidArgument, InvalidState, NotFound
from ksana.domain.jobs import Job
from ksana.domain.moves import Move, advance, pass_by
from ksana.domain.plans import read_plan, shape_of_plan
from ksana.domain.runs import Run
from ksana.domain.states import Event, Reason, State
from ksana.domain.steering import Family, Steer, ended, is_branched, risen
from ksana.stores.json.chains import KnownChain
from ksana.stores.json.moving import apply_moves, fill_slots
from ksana.stores.json.outbox import keep_alerts
from ksana.stores.json.tables import Tables
from ksana.stores.json.tx import Tx

log = logging.getLogger(__name__)

Told = list[tuple[Move, Job | None]]
"""Moves, each with the job of its run."""


class Moved(NamedTuple):
    """What moves did: which of them lost, how many runs that waited may start now, and the parents that ended."""

    lost: frozenset[int]
    admitted: int
    followed: Told


def move(tx: Tx, moves: Sequence[Move], hooks: Sequence[str]) -> Moved:
    """Apply moves that still count, and all that follows from them."""
    lost, won, admitted = apply_moves(tx, moves)
    waited, followed = _follow(tx, [move.run for move in won], hooks)
    return Moved(lost, admitted + waited, followed)


def steer(tx: Tx, parent_id: int, decide: Steer, hooks: Sequence[str], above: Steer | None) -> Told:
    family = _family(tx.tables, parent_id)
    moves = decide(family)
    told = _steer(tx, moves, hooks)
    while above and (run := risen(family, moves)) and run.parent_id is not None:
        family = _family(tx.tables, run.parent_id)
        moves = above(family)
        told += _steer(tx, moves, hooks)
    # What follows within the family was decided with the rest.
    _, followed = _follow(tx, [move.run for move in moves if move.run.id == family.parent.id], hooks)
    return told + followed


def _family(tables: Tables, parent_id: int) -> Family:
    parent = tables.runs.get(parent_id)
    if parent is None:
        raise NotFound(f"there is no run {parent_id}")
    return Family(parent, children(tables, parent_id))


def _steer(tx: Tx, moves: Sequence[Move], hooks: Sequence[str]) -> Told:
    """Make moves that were decided for a family."""
    applied = apply_moves(tx, moves)
    if applied.lost:
        raise InvalidState(f"run {min(applied.lost)} is not where the decision took it to be")
    told = _with_jobs(tx.tables, moves)
    _alert(tx, told, hooks)
    return told


def children(tables: Tables, parent_id: int) -> list[Run]:
    runs = tables.runs
    return [runs.rows[run_id] for run_id in runs.children[parent_id]]


def _follow(tx: Tx, moved: Iterable[Run], hooks: Sequence[str]) -> tuple[int, Told]:
    """Move the families on whose children ended, then those of the parents that ended by it, and so on.

    Answer how many runs may start now, the steps done by the way and the ends of parents.
    """
    admitted, told = 0, Told()
    news = _instants(moved)
    while news:
        ends: list[Move] = []
        for parent_id, now in sorted(news.items()):
            step = _move_on(tx, parent_id, now)
            admitted += step.admitted
            told += [(move, None) for move in step.passed]
            if step.end is not None:
                ends.append(step.end)
        told += _with_jobs(tx.tables, ends)
        news = _instants(move.run for move in ends)
    _alert(tx, told, hooks)
    freed = {move.run.job_id for move, _ in told if move.run.job_id is not None}
    return admitted + sum(fill_slots(tx, job_id) for job_id in sorted(freed)), told


def _instants(moved: Iterable[Run]) -> dict[int, datetime]:
    """The parents whose children ended, and when the last of them did."""
    found: dict[int, datetime] = {}
    for run in moved:
        if run.parent_id is not None and run.ended_at is not None:
            found[run.parent_id] = max(run.ended_at, found.get(run.parent_id, run.ended_at))
    return found


class _Step(NamedTuple):
    """How many children were admitted, those that were done because they do nothing, and the parent's end."""

    admitted: int
    passed: list[Move]
    end: Move | None


def _move_on(tx: Tx, parent_id: int, now: datetime) -> _Step:
    """Do what follows from where the children stand."""
    runs = tx.tables.runs
    parent = runs.get(parent_id)
    chain = None if parent is None else _chain_of(tx.tables, parent)
    if parent is None or chain is None:
        return _Step(0, [], None)
    follows = chain.advance()
    for place in follows.admits:
        child = runs.rows[chain.first + place]
        tx.put(runs, child.id, advance(child, Event.ADMIT, now, due_at=now))
    for place in follows.skips:
        child = runs.rows[chain.first + place]
        tx.put(runs, child.id, advance(child, Event.SKIP, now, reason=Reason.DEPENDENCY))
    passed: list[Move] = []
    for place in follows.passes:
        child = runs.rows[chain.first + place]
        passed.append(Move(child.epoch, pass_by(child, now)))
        tx.put(runs, child.id, passed[-1].run)
    if follows.end is None:
        return _Step(len(follows.admits), passed, None)
    over = ended(parent, follows.end, now, _error(tx.tables, chain))
    tx.put(runs, parent_id, over)
    return _Step(len(follows.admits), passed, Move(parent.epoch, over, frees_slot=True))


def _error(tables: Tables, chain: KnownChain) -> str:
    """What the parent says of a step that failed."""
    place = chain.first_failed
    if place is None:
        return ""
    child = tables.runs.rows[chain.first + place]
    return f"{child.step}: {child.error}"


def _chain_of(tables: Tables, parent: Run) -> KnownChain | None:
    """The chain of a run that waits for its children, as they stand; None for any other."""
    if not is_branched(parent) and parent.state is not State.STOPPING:
        return None
    known = tables.runs.chains.get(parent.id)
    if known is not None and known.catch_up(parent):
        return known
    family = children(tables, parent.id)
    shape = known.shape if known is not None and known.is_of(parent.input) else _shape_of(parent)
    tables.runs.chains.pop(parent.id, None)
    if shape is None or len(shape.needs) != len(family):
        return None
    fresh = tables.runs.chains[parent.id] = KnownChain(parent, shape, family)
    return fresh


def _shape_of(parent: Run) -> Shape | None:
    try:
        return shape_of_plan(read_plan(parent.input))
    except (msgspec.DecodeError, UnicodeDecodeError, InvalidArgument) as error:
        # Whoever wrote it, others move in the same step and must not be held up by it.
        log.error("run %d cannot go on, because its plan cannot be read: %s", parent.id, error)
        return None


def _with_jobs(tables: Tables, moves: Iterable[Move]) -> Told:
    jobs = tables.jobs
    return [(move, None if move.run.job_id is None else jobs.get(move.run.job_id)) for move in moves]


def _alert(tx: Tx, told: Told, hooks: Sequence[str]) -> None:
    for move, job in told if hooks else ():
        if move.run.ended_at is not None:
            keep_alerts(tx, alerts_of([(move, job)], hooks, move.run.ended_at))
