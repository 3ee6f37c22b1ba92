"""Runs to rows and back, and due runs to what a claim makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from ksana.domain.policies import Priority
from ksana.domain.runs import Run, Trigger
from ksana.domain.states import Reason, State
from ksana.domain.times import from_micros, to_micros
from ksana.stores.sql.rows import Row, micros_or_none

_STATES = {state.value: state for state in State}
_REASONS: dict[str | None, Reason | None] = {None: None} | {reason.value: reason for reason in Reason}
_TRIGGERS = {trigger.value: trigger for trigger in Trigger}
_PRIORITIES = {priority.value: priority for priority in Priority}


# `_value_` is what an enum's `value` answers, without the detour that makes it the dearest part of a row.


def run_to_row(run: Run) -> tuple[Any, ...]:
    return (
        run.id,
        run.job_id,
        run.job_version,
        run.surface,
        run.kind,
        run.queue,
        run.trigger._value_,
        None if run.slot_at is None else to_micros(run.slot_at),
        run.state._value_,
        run.epoch,
        run.attempt,
        run.priority._value_,
        to_micros(run.due_at),
        run.node_id,
        to_micros(run.created_at),
        None if run.started_at is None else to_micros(run.started_at),
        None if run.reason is None else run.reason._value_,
        run.failures,
        run.reclaims,
        micros_or_none(run.deadline_at),
        micros_or_none(run.ended_at),
        run.error,
        run.callback_token,
        run.parent_id,
        run.step,
        run.input,
        run.holder,
        run.subject,
    )


def item_to_row(run: Run) -> tuple[Any, ...]:
    """The row of a new item, with the columns of FRESH_ITEMS."""
    return (
        run.id,
        run.surface,
        run.kind,
        run.queue,
        run.trigger._value_,
        run.state._value_,
        run.priority._value_,
        to_micros(run.due_at),
        to_micros(run.created_at),
        run.parent_id,
        run.step,
        run.input,
        run.subject,
    )


FRESH = (None, 0, 0, None, None, "", None, None, None, None, None, None)
"""The end of the row of a run to which nothing has happened yet."""


def run_from_row(row: Row) -> Run:
    [run] = runs_from_rows([row])
    return run


def runs_from_rows(rows: Iterable[Row]) -> list[Run]:
    instant = _instants()
    return [
        Run(
            id,
            instant(due_at),
            instant(created_at),
            job_id,
            job_version,
            surface,
            kind,
            queue,
            _TRIGGERS[made_by],
            None if slot_at is None else instant(slot_at),
            _STATES[state],
            _REASONS[reason],
            epoch,
            attempt,
            failures,
            reclaims,
            _PRIORITIES[priority],
            None if deadline_at is None else instant(deadline_at),
            node_id,
            None if started_at is None else instant(started_at),
            None if ended_at is None else instant(ended_at),
            error,
            callback_token,
            parent_id,
            step,
            input,
            holder,
            subject,
        )
        for (
            id,
            job_id,
            job_version,
            surface,
            kind,
            queue,
            made_by,
            slot_at,
            state,
            epoch,
            attempt,
            priority,
            due_at,
            node_id,
            created_at,
            started_at,
            reason,
            failures,
            reclaims,
            deadline_at,
            ended_at,
            error,
            callback_token,
            parent_id,
            step,
            input,
            holder,
            subject,
        ) in rows
    ]


def _instants() -> Callable[[int], datetime]:
    """Makes instants of numbers. Runs that are read together mostly have theirs in common."""
    known: dict[int, datetime] = {}

    def instant(micros: int) -> datetime:
        found = known.get(micros)
        if found is None:
            found = known[micros] = from_micros(micros)
        return found

    return instant


def claimed_from_rows(rows: Iterable[Row], node_id: int, now: datetime) -> list[Run]:
    """What Event.CLAIM makes of due runs, built in one go."""
    instant = _instants()
    return [
        Run(
            id,
            instant(due_at),
            instant(created_at),
            job_id,
            job_version,
            surface,
            kind,
            queue,
            _TRIGGERS[made_by],
            None if slot_at is None else instant(slot_at),
            State.RUNNING,
            None,
            epoch + 1,
            attempt + 1,
            failures,
            reclaims,
            _PRIORITIES[priority],
            None,
            node_id,
            now if started_at is None else instant(started_at),
            None,
            "",
            callback_token,
            parent_id,
            step,
            input,
        )
        for (
            id,
            job_id,
            job_version,
            surface,
            kind,
            queue,
            made_by,
            slot_at,
            _,
            epoch,
            attempt,
            priority,
            due_at,
            created_at,
            started_at,
            failures,
            reclaims,
            callback_token,
            parent_id,
            step,
            input,
        ) in rows
    ]
