"""The words of this surface for what the core calls otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final, Literal

from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.runs import Trigger
from ksana.domain.standing import END_STATUS
from ksana.domain.states import State
from ksana.domain.times import format_instant

SURFACE: Final = "jobs"

RunStatus = Literal["success", "failed", "timeout", "skipped", "missed", "scheduled", "running", "retrying"]

_UNFINISHED: Final[dict[State, RunStatus]] = {
    State.WAITING: "scheduled",
    State.SCHEDULED: "scheduled",
    State.RUNNING: "running",
    # The call was made; how it ends is not known yet.
    State.CALLBACK_PENDING: "running",
    State.STOPPING: "running",
    State.RETRYING: "retrying",
}
RUN_STATUS: Final[dict[State, RunStatus]] = {**_UNFINISHED, **END_STATUS}

PLANNED: Final = frozenset({Trigger.SCHEDULE, Trigger.CATCH_UP})

_FIELDS: Final = {
    "ref": "id",
    "timeouts.total": "timeout",
    "retry.max_attempts": "max_retries",
    "retry.initial_delay": "retry_backoff",
}
_TARGET: Final = "target."


@contextmanager
def in_these_words() -> Iterator[None]:
    """The core names the fields of its jobs; whoever wrote the request knows them by other names."""
    try:
        yield
    except InvalidArgument as error:
        raise InvalidArgument(renamed(problem) for problem in error.problems) from None


def renamed(problem: Problem) -> Problem:
    """A problem of the core under the name the field has here."""
    field, message = problem
    if field.startswith(_TARGET):
        return Problem(f"http.{field.removeprefix(_TARGET)}", message.replace(_TARGET, "http."))
    return Problem(_FIELDS.get(field, field), message)


def instant(at: datetime | None) -> str:
    """An instant the service chose: whole seconds, empty for none."""
    return "" if at is None else format_instant(at, "seconds")


def exact_instant(at: datetime | None) -> str:
    """An instant somebody gave, with the fraction it had, so that sending it back changes nothing."""
    if at is None or not at.microsecond:
        return instant(at)
    return format_instant(at, "micros").removesuffix("Z").rstrip("0") + "Z"
