"""The words of this surface for what the core calls otherwise."""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import Final, Literal, get_args

from ksana.domain.errors import NotFound
from ksana.domain.policies import Priority
from ksana.domain.states import State
from ksana.domain.times import format_instant

SURFACE: Final = "queue"
GOVERNANCE: Final = "governance"
"""The queue of items that are about an object, unless they say another."""

ObjectType = Literal["memory", "experience", "cognition"]
Action = Literal["verify", "revalidate", "decay", "archive", "reinstate-check"]
PriorityWord = Literal["low", "medium", "high"]
Status = Literal["queued", "running", "succeeded", "failed", "dead_letter"]

OBJECT_TYPES: Final[tuple[ObjectType, ...]] = get_args(ObjectType)
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)

PRIORITIES: Final[dict[PriorityWord, Priority]] = {
    "low": Priority.LOW,
    "medium": Priority.NORMAL,
    "high": Priority.HIGH,
}
PRIORITY_WORDS: Final = {priority: word for word, priority in PRIORITIES.items()}

STATUS: Final[dict[State, Status]] = {
    State.WAITING: "queued",
    State.SCHEDULED: "queued",
    State.RETRYING: "queued",
    State.RUNNING: "running",
    State.CALLBACK_PENDING: "running",
    State.STOPPING: "running",
    State.SUCCESS: "succeeded",
    State.FAILED: "failed",
    State.TIMEOUT: "failed",
    # Ended without having been done: by hand, or with the chain it was a step of.
    State.CANCELED: "failed",
    State.SKIPPED: "failed",
    State.MISSED: "failed",
    State.DEAD_LETTER: "dead_letter",
}

_JOB_ID: Final = re.compile(r"job_([1-9][0-9]{0,17})")


def states_of(status: Status) -> frozenset[State]:
    """The states a filter by this status finds."""
    return frozenset(state for state, shown in STATUS.items() if shown == status)


def types_of(object_type: ObjectType | None, action: Action | None) -> list[str]:
    """The types of items about an object that fit; none if nothing is said."""
    if object_type is None and action is None:
        return []
    kinds = OBJECT_TYPES if object_type is None else (object_type,)
    return [f"{kind}.{one}" for kind in kinds for one in (ACTIONS if action is None else (action,))]


def job_id_of(run_id: int) -> str:
    return f"job_{run_id}"


def run_id_of(job_id: str) -> int:
    """The run of an item. NotFound if no item could ever be called like this."""
    matched = _JOB_ID.fullmatch(job_id)
    if matched is None:
        raise NotFound(f'there is no job "{job_id[:60]}"')
    return int(matched[1])


@lru_cache(maxsize=1024)
def instant(at: datetime) -> str:
    """An instant somebody gave: whole seconds, or with the fraction it had."""
    if not at.microsecond:
        return format_instant(at, "seconds")
    return format_instant(at, "micros").removesuffix("Z").rstrip("0") + "Z"


def key_of(object_id: str, action: str, run_at: datetime) -> str:
    """The key of an item about an object, if its sender gives it none."""
    return f"{object_id}:{action}:{format_instant(run_at, 'seconds')}"
