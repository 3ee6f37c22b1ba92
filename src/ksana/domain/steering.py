"""What people and deadlines do to a run with children: stop, halt, expire, retry and complete a step, retry all that
failed. Each act is decided from the whole family at once and stored at once, so nobody sees half of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from ksana.domain.chains import Chain, Shape, may_start
from ksana.domain.errors import InvalidState
from ksana.domain.moves import Move, advance, pass_by
from ksana.domain.runs import Run
from ksana.domain.states import FAILURES, UNDER_WAY, Event, Reason, State

UNSUCCESSFUL = FAILURES | {State.CANCELED}


class Family(msgspec.Struct, frozen=True):
    """A run and its children, in the order of their steps."""

    parent: Run
    children: list[Run]


Steer = Callable[[Family], list[Move]]
"""Decides the moves of a family; pure, and asked again if the family has moved meanwhile."""


def stopped(run: Run, now: datetime) -> Move:
    """Ask a run with children to stop. Whoever sees its deadline, which is now, halts it."""
    holder = run.node_id if run.state is State.RUNNING else None
    return Move(run.epoch, advance(run, Event.STOP, now, reason=Reason.OPERATOR, deadline_at=now), taken_from=holder)


def halt(family: Family, now: datetime, reason: Reason | None = Reason.OPERATOR, error: str = "") -> list[Move]:
    """End what is under way in a family that is to stop, or whose end was decided already. Steps that have not begun
    stay as they are; a step with children of its own is asked to stop, and its end will end the rest."""
    under_way = [child for child in family.children if child.state in UNDER_WAY]
    moves = [_halted(child, now, reason, error) for child in under_way if child.state is not State.STOPPING]
    is_over = not any(child.state is State.STOPPING or is_branched(child) for child in under_way)
    if is_over and family.parent.state is State.STOPPING:
        ended = advance(family.parent, Event.CANCEL, now, reason=Reason.OPERATOR)
        moves.append(Move(family.parent.epoch, ended, frees_slot=True))
    return moves


def expire(family: Family, now: datetime) -> list[Move]:
    """End a family whose time is up."""
    parent = family.parent
    if parent.state is not State.RUNNING:
        return []
    error = "the chain took longer than its timeout"
    ended = advance(parent, Event.TIME_OUT, now, reason=Reason.CHILDREN, error=error)
    return [*halt(family, now, None, error), Move(parent.epoch, ended, frees_slot=True)]


def _halted(child: Run, now: datetime, reason: Reason | None, error: str) -> Move:
    if is_branched(child):
        return stopped(child, now)
    holder = child.node_id if child.state is State.RUNNING else None
    canceled = advance(child, Event.CANCEL, now, reason=reason, error=error)
    return Move(child.epoch, canceled, frees_slot=True, taken_from=holder)


def retry_step(
    family: Family, shape: Shape, place: int, now: datetime, *, reason: str, artifact: bytes | None
) -> list[Move]:
    """Try a step again that ended without success, and let the chain go on from there."""
    child = family.children[place]
    if child.state not in UNSUCCESSFUL:
        raise InvalidState(f"node {child.step} is {child.state}; only one that failed or was stopped can be retried")
    return _go_on(family, shape, _again(family, shape, [place], now, reason, artifact), now)


def retry_failed(family: Family, shape: Shape, now: datetime) -> list[Move]:
    """Try all steps again that ended without success. Those with children of their own are under way already when it
    comes to this: their children were tried again first."""
    if family.parent.state not in UNSUCCESSFUL:
        raise InvalidState(f"run {family.parent.id} is {family.parent.state}; only one that ended without success can")
    places = [place for place, child in enumerate(family.children) if child.state in UNSUCCESSFUL]
    return _go_on(family, shape, _again(family, shape, places, now), now)


def _again(
    family: Family,
    shape: Shape,
    places: Sequence[int],
    now: datetime,
    reason: str = "",
    artifact: bytes | None = None,
) -> dict[int, Move]:
    """Steps that are tried again: at once if what they need allows it and as far as there is room, else in their turn.
    Whether another step has failed does not matter here, even to a chain that fails fast: somebody wants these."""
    states = [child.state for child in family.children]
    for place in places:
        states[place] = State.WAITING
    most = len(states) if shape.max_parallel is None else shape.max_parallel
    room = most - sum(state in UNDER_WAY for state in states)
    moves = {}
    for place in places:
        child = family.children[place]
        if room > 0 and may_start(shape, states, place):
            room -= 1
            moved = advance(child, Event.RERUN, now, due_at=now, reason=Reason.OPERATOR, error=reason)
        else:
            moved = advance(child, Event.RESUME, now, reason=Reason.DEPENDENCY, error=reason)
        moves[place] = Move(child.epoch, moved, artifact=artifact)
    return moves


def complete_step(
    family: Family, shape: Shape, place: int, now: datetime, *, reason: str, artifact: bytes | None
) -> list[Move]:
    """Take a step as done because somebody says so, and let the chain go on from there. Again changes nothing."""
    child = family.children[place]
    if child.state is State.SUCCESS:
        return []
    if child.state not in UNSUCCESSFUL | {State.RUNNING, State.CALLBACK_PENDING}:
        raise InvalidState(
            f"node {child.step} is {child.state}; only one that runs, failed or was stopped can be completed"
        )
    holder = child.node_id if child.state is State.RUNNING else None
    done = advance(child, Event.COMPLETE, now, reason=Reason.OPERATOR, error=reason)
    move = Move(child.epoch, done, frees_slot=True, taken_from=holder, artifact=artifact)
    return _go_on(family, shape, {place: move}, now)


def put_back(family: Family, shape: Shape, move: Move, now: datetime) -> list[Move]:
    """Let a step begin anew by a move of its own, and the chain go on with it, unless that is done for good. Nothing
    moves if the step has moved meanwhile."""
    place = next(place for place, child in enumerate(family.children) if child.id == move.run.id)
    if family.children[place].epoch != move.epoch:
        return []
    return _go_on(family, shape, {place: move}, now) if _may_go_on(family.parent) else [move]


def risen(family: Family, moves: Sequence[Move]) -> Run | None:
    """The parent as these moves leave it, if it had failed and goes on, or has come to a better end: then the family it
    is a child of has to follow."""
    moved = [move.run for move in moves if move.run.id == family.parent.id]
    is_risen = family.parent.state in UNSUCCESSFUL and bool(moved) and moved[-1].state not in UNSUCCESSFUL
    return moved[-1] if is_risen else None


def go_on(family: Family, shape: Shape, now: datetime) -> list[Move]:
    """Follow a step that has risen."""
    return _go_on(family, shape, {}, now) if _may_go_on(family.parent) else []


def _may_go_on(parent: Run) -> bool:
    return is_branched(parent) or parent.state in UNSUCCESSFUL


def awaits_children(run: Run) -> bool:
    """Whether what becomes of the run hangs on its children."""
    return run.state is State.STOPPING or is_branched(run)


def is_branched(run: Run) -> bool:
    """Whether the run is under way and its children do the work."""
    return run.state is State.RUNNING and run.reason is Reason.CHILDREN


def _go_on(family: Family, shape: Shape, moved: dict[int, Move], now: datetime) -> list[Move]:
    """These moves, by the places of their steps, and all that follows: steps skipped for what is no longer so wait
    again, the run goes on if it was over, what may start starts."""
    parent = family.parent
    if parent.state is State.STOPPING:
        raise InvalidState(f"run {parent.id} is stopping; wait until it has stopped")
    resumed = {
        place: Move(child.epoch, advance(child, Event.RESUME, now, reason=Reason.DEPENDENCY))
        for place, child in enumerate(family.children)
        if child.state is State.SKIPPED and child.reason is not Reason.CONDITION
    }
    after = moved | resumed
    runs = [after[place].run if place in after else child for place, child in enumerate(family.children)]
    follows = Chain(shape, [run.state for run in runs]).advance()
    # Most would be skipped again at once; those have not moved.
    skips = [place for place in follows.skips if resumed.pop(place, None) is None]
    result = [*moved.values(), *resumed.values()]
    if parent.state is not State.RUNNING:
        deadline_at = None if shape.timeout is None else now + shape.timeout
        reopened = advance(parent, Event.REOPEN, now, reason=Reason.CHILDREN, deadline_at=deadline_at)
        result.append(Move(parent.epoch, reopened))
        parent = reopened
    result += [_follow(runs[place], Event.ADMIT, now) for place in follows.admits]
    result += [Move(runs[place].epoch, pass_by(runs[place], now)) for place in follows.passes]
    result += [_follow(runs[place], Event.SKIP, now, Reason.DEPENDENCY) for place in skips]
    if follows.end is not None:
        result.append(Move(parent.epoch, ended(parent, follows.end, now), frees_slot=True))
    return result


def _follow(run: Run, event: Event, now: datetime, reason: Reason | None = None) -> Move:
    return Move(run.epoch, advance(run, event, now, due_at=now, reason=reason))


_ENDS = {State.SUCCESS: Event.SUCCEED, State.FAILED: Event.FAIL, State.CANCELED: Event.CANCEL}


def ended(parent: Run, end: State, now: datetime, error: str = "") -> Run:
    """The run as its children's end leaves it; one that was asked to stop ends for that."""
    reason = Reason.OPERATOR if parent.state is State.STOPPING else Reason.CHILDREN
    return advance(parent, _ENDS[end], now, reason=reason, error=error)
