"""The words of this surface for what the core calls otherwise: states of runs, policies, switches."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from ksana.domain.policies import MisfireRule, OverlapRule
from ksana.domain.runs import Run
from ksana.domain.states import Reason, State


class ExecType(StrEnum):
    """Whether the answer of the target ends a run, or a callback that comes later."""

    SYNC = "SYNC"
    ASYNC = "ASYNC"


class TaskStatus(StrEnum):
    ENABLED = "ENABLED"
    DISABLED = "DISABLED"


class ConcurrencyPolicy(StrEnum):
    QUEUE = "QUEUE"
    SKIP = "SKIP"
    PARALLEL = "PARALLEL"


class MisfirePolicy(StrEnum):
    FIRE_NOW = "FIRE_NOW"
    SKIP = "SKIP"
    CATCH_UP_LIMITED = "CATCH_UP_LIMITED"


class CallbackMethod(StrEnum):
    """Methods a callback may come by: those that carry a body."""

    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"


class RunStatus(StrEnum):
    """Where a run stands, in the document's words; there is no other value on the wire."""

    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    RETRYING = "RETRYING"
    CALLBACK_PENDING = "CALLBACK_PENDING"
    CALLBACK_SUCCESS = "CALLBACK_SUCCESS"
    FAILED_TIMEOUT = "FAILED_TIMEOUT"
    CANCELED = "CANCELED"
    SKIPPED = "SKIPPED"


OVERLAP_RULES: Final = {policy: OverlapRule(policy.value.lower()) for policy in ConcurrencyPolicy}
CONCURRENCY_POLICIES: Final = {rule: policy for policy, rule in OVERLAP_RULES.items()}
MISFIRE_RULES: Final = {
    MisfirePolicy.FIRE_NOW: MisfireRule.FIRE_ONCE,
    MisfirePolicy.SKIP: MisfireRule.SKIP,
    MisfirePolicy.CATCH_UP_LIMITED: MisfireRule.CATCH_UP,
}
MISFIRE_POLICIES: Final = {rule: policy for policy, rule in MISFIRE_RULES.items()}

_STATUSES: Final = {
    State.WAITING: RunStatus.SCHEDULED,
    State.SCHEDULED: RunStatus.SCHEDULED,
    State.RUNNING: RunStatus.RUNNING,
    State.RETRYING: RunStatus.RETRYING,
    State.CALLBACK_PENDING: RunStatus.CALLBACK_PENDING,
    State.STOPPING: RunStatus.RUNNING,
    State.SUCCESS: RunStatus.SUCCESS,
    State.FAILED: RunStatus.FAILED,
    State.TIMEOUT: RunStatus.TIMEOUT,
    State.CANCELED: RunStatus.CANCELED,
    State.SKIPPED: RunStatus.SKIPPED,
    State.MISSED: RunStatus.SKIPPED,
    State.DEAD_LETTER: RunStatus.FAILED,
}
_BY_CALLBACK: Final = {
    (State.SUCCESS, Reason.CALLBACK): RunStatus.CALLBACK_SUCCESS,
    (State.TIMEOUT, Reason.CALLBACK_TIMEOUT): RunStatus.FAILED_TIMEOUT,
}


def status_of(run: Run) -> RunStatus:
    """The status of a run as its owner sees it."""
    if run.reason is not None and (found := _BY_CALLBACK.get((run.state, run.reason))):
        return found
    return _STATUSES[run.state]


def final_status_of(run: Run) -> RunStatus:
    """The same as whoever called back is told it: a success is a success, whatever brought it about."""
    status = status_of(run)
    return RunStatus.SUCCESS if status is RunStatus.CALLBACK_SUCCESS else status


def states_of(status: RunStatus) -> tuple[frozenset[State], frozenset[Reason | None]]:
    """The states, and the reasons if not all, a filter by this status finds. SUCCESS finds both kinds of success."""
    for (state, reason), by_callback in _BY_CALLBACK.items():
        if status is by_callback:
            return frozenset({state}), frozenset({reason})
    states = frozenset(state for state, shown in _STATUSES.items() if shown is status)
    others = frozenset({None, *Reason}) - {Reason.CALLBACK_TIMEOUT}
    return states, others if status is RunStatus.TIMEOUT else frozenset()
