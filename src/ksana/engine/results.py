"""Results: what came of the runs a node holds, on its way to the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

import msgspec

from ksana.domain.claims import Claimed
from ksana.domain.jobs import Job
from ksana.domain.moves import Move, hand_back
from ksana.domain.policies import OnUncertain
from ksana.domain.runs import Attempt
from ksana.domain.states import State

Result = tuple[Move, Job | None]


def handed_back(claimed: Claimed, on_uncertain: OnUncertain, now: datetime) -> Result:
    """A run that this node gives up."""
    moved = hand_back(claimed.run, on_uncertain, now)
    return Move(claimed.run.epoch, moved, frees_slot=moved.ended_at is not None), claimed.job


def without_baggage(result: Result) -> Result | None:
    """The same without its attempt, for a store that choked on it; None if it has none."""
    move, job = result
    if (attempt := move.attempt) is None:
        return None
    said = f"the outcome ({attempt.verdict}) could not be stored; see the log of the node"
    run = msgspec.structs.replace(move.run, error=said)
    return Move(move.epoch, run, None, move.frees_slot, move.taken_from), job


def done_at_birth(results: Iterable[Result], lost: Collection[int]) -> list[Result]:
    """Steps that do nothing and were done when their chain began."""
    return [
        (Move(child.epoch - 1, child), None)
        for move, _ in results
        if move.branch is not None and move.run.id not in lost
        for child in move.branch.children
        if child.state is State.SUCCESS
    ]


def overtaken(results: Iterable[Result], lost: Collection[int]) -> list[Attempt]:
    """The attempts that ended after the callback for their runs had come."""
    late = [move.attempt for move, _ in results if move.run.id in lost and move.run.callback_token is not None]
    return [attempt for attempt in late if attempt is not None]
