"""What moves do to the rows of runs, so that those which do the same can be written together."""

from __future__ import annotations

from typing import Any, NamedTuple

from ksana.domain.moves import Move
from ksana.stores.sql.attempt_rows import is_result_the_answer
from ksana.stores.sql.rows import micros_or_none


class Change(NamedTuple):
    """What a move does to a row, beside raising its epoch. Results of one turn mostly do the same."""

    epoch: int
    state: str
    reason: str | None
    failures: int
    reclaims: int
    due_at: int | None
    deadline_at: int | None
    began_at: int | None
    ended_at: int | None
    error: str
    is_told: bool


About = tuple[Any, ...]
"""What a move does, as values that are cheap to compare; `change_of` makes a Change of it."""


def about(move: Move) -> About:
    run, attempt = move.run, move.attempt
    ended_at = run.ended_at
    # Only a run that nobody attempted begins by a move, the one that ends it.
    began_at = None if run.attempt else run.started_at
    return (
        move.epoch,
        run.state._value_,
        None if run.reason is None else run.reason._value_,
        run.failures,
        run.reclaims,
        run.due_at if ended_at is None or began_at is not None else None,
        run.deadline_at,
        began_at,
        ended_at,
        run.error,
        # The run's own row tells of the attempt if it was the last one and has no result to keep.
        attempt is not None and ended_at is not None and (attempt.result is None or is_result_the_answer(attempt)),
    )


def change_of(about: About) -> Change:
    epoch, state, reason, failures, reclaims, due_at, deadline_at, began_at, ended_at, error, is_told = about
    return Change(
        epoch,
        state,
        reason,
        failures,
        reclaims,
        micros_or_none(due_at),
        micros_or_none(deadline_at),
        micros_or_none(began_at),
        micros_or_none(ended_at),
        error,
        is_told,
    )
