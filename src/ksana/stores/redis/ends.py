"""Ends by success as scripts take them, in lots: nothing of such a run need be sent but its name, and nothing of it be
looked at but whether it is still what its node claimed."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from ksana.domain.items import KIND as ITEM
from ksana.domain.moves import Move
from ksana.domain.runs import Trigger
from ksana.domain.states import State
from ksana.domain.times import to_micros
from ksana.stores.redis.attempt_values import attempt_to_parts
from ksana.stores.redis.codes import STATES
from ksana.stores.redis.values import NOBODY, NONE

# What the value of a run begins with: all that moves.
_MOVING = struct.Struct("<ccqiqqqq")
_RUNNING, _ENDED = STATES[State.RUNNING].encode(), STATES[State.SUCCESS].encode()
_NO_REASON = b"-"


class Alike(NamedTuple):
    """What the ends of one lot have in common."""

    epoch: int
    attempt: int
    node_id: int
    started_at: datetime
    ended_at: datetime
    surface: str
    kind: str
    frees_slot: bool


Lots = dict[Alike, list[Move]]


def in_lots(moves: Iterable[Move]) -> tuple[Lots, list[Move]]:
    """The ends that can go in lots, and the other moves."""
    lots: Lots = {}
    others: list[Move] = []
    for move in moves:
        alike = _alike(move)
        if alike is None:
            others.append(move)
        elif (lot := lots.get(alike)) is None:
            lots[alike] = [move]
        else:
            lot.append(move)
    return lots, others


def _alike(move: Move) -> Alike | None:
    """What the lot of a move goes by; None if it is not the end by success of a node's attempt at a run of a job.
    Whoever made an attempt at an epoch had claimed the run at that epoch, so it is known how the run stood; and success
    changes nothing else about it (`moves.advance`)."""
    run, attempt = move.run, move.attempt
    if run.state is not State.SUCCESS or attempt is None or attempt.exchange is not None:
        return None
    if run.started_at is None or run.ended_at is None or attempt.node_id is None or attempt.epoch != move.epoch:
        return None
    if run.parent_id is not None or run.job_id is None or run.kind == ITEM or run.trigger is Trigger.APART:
        return None
    if run.reason is not None or run.error or run.epoch != move.epoch + 1 or attempt.number != run.attempt:
        return None
    if (move.taken_from, move.branch, move.artifact, move.checkpoint, move.input) != _NOTHING_ELSE:
        return None
    return Alike(
        move.epoch,
        run.attempt,
        attempt.node_id,
        run.started_at,
        run.ended_at,
        run.surface,
        run.kind,
        move.frees_slot,
    )


_NOTHING_ELSE = (None, None, None, None, None)


def lots_args(lots: Lots) -> list[Any]:
    args: list[Any] = [len(lots)]
    for alike, moves in lots.items():
        args += _alike_args(alike, moves)
        for move in moves:
            assert move.attempt is not None
            _, told, _, _ = attempt_to_parts(move.attempt)
            args += (move.run.id, told)
    return args


def _alike_args(alike: Alike, moves: Sequence[Move]) -> Sequence[Any]:
    started, ended = to_micros(alike.started_at), to_micros(alike.ended_at)
    late = sum(max(0, started - to_micros(move.run.due_at)) for move in moves)
    return (
        _MOVING.pack(_RUNNING, _NO_REASON, alike.epoch, alike.attempt, alike.node_id, started, NONE, NONE),
        _MOVING.pack(_ENDED, _NO_REASON, alike.epoch + 1, alike.attempt, NOBODY, started, NONE, ended),
        alike.epoch,
        alike.surface,
        alike.kind,
        _ENDED,
        alike.node_id,
        ended,
        len(moves) * (ended - started),
        late,
        int(alike.frees_slot),
        len(moves),
    )
