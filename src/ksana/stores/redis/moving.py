"""Moves as scripts take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ksana.domain.alerts import Alert
from ksana.domain.moves import Branch, Move
from ksana.domain.runs import Run
from ksana.stores.redis.alert_values import alert_args
from ksana.stores.redis.attempt_values import attempt_to_parts
from ksana.stores.redis.values import run_to_value

_NOTHING = (b"",)
_NO_MORE = (0,)
_NONE = (None, None, None, None)


def in_order(moves: Sequence[Move]) -> list[Move]:
    """The moves to try. One offered again after an unclear answer may share a batch with the next move of its run: the
    first of two alike counts, and those of one run follow each other by epoch."""
    tried = {(move.run.id, move.epoch): move for move in reversed(moves)}
    return sorted(tried.values(), key=_epoch)


def _epoch(move: Move) -> int:
    return move.epoch


def won(moves: Iterable[Move], epochs: Mapping[int, int]) -> list[Move]:
    """Those of the moves that count, if the runs are at these epochs."""
    at, found = dict(epochs), list[Move]()
    for move in moves:
        if at.get(move.run.id) == move.epoch:
            at[move.run.id] = move.run.epoch
            found.append(move)
    return found


def moves_args(moves: Sequence[Move]) -> list[Any]:
    args: list[Any] = [len(moves)]
    for move in moves:
        taken_from = b"" if move.taken_from is None else move.taken_from
        args += (move.epoch, run_to_value(stored_run(move)), int(move.frees_slot), taken_from)
        args += _NOTHING if move.attempt is None else attempt_to_parts(move.attempt)
        more = (move.branch, move.artifact, move.checkpoint, move.input)
        args += _NO_MORE if more == _NONE else _more_args(move)
    return args


def stored_run(move: Move) -> Run:
    """The run as the move leaves it: nobody holds it, and a branch takes the place of its input."""
    run = move.run
    if move.branch is not None:
        return msgspec.structs.replace(run, node_id=None, input=move.branch.plan)
    return run if run.node_id is None else msgspec.structs.replace(run, node_id=None)


def _more_args(move: Move) -> list[Any]:
    args: list[Any] = [1]
    for given in (move.artifact, move.checkpoint, move.input):
        args += (0,) if given is None else (1, given)
    args += (0,) if move.branch is None else (1, *_branch_args(move.branch))
    return args


def _branch_args(branch: Branch) -> list[Any]:
    args: list[Any] = [branch.plan, len(branch.children)]
    for child in branch.children:
        args += (run_to_value(child), child.input or b"")
    return args


def alerts_args(alerts: Sequence[Alert]) -> list[Any]:
    args: list[Any] = [len(alerts)]
    for alert in alerts:
        args += alert_args(alert)
    return args
