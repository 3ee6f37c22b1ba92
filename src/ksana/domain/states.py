"""The one transition table of runs. Nothing else in the project decides which state may follow which."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a run stands."""

    WAITING = "WAITING"
    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    RETRYING = "RETRYING"
    CALLBACK_PENDING = "CALLBACK_PENDING"
    STOPPING = "STOPPING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    CANCELED = "CANCELED"
    SKIPPED = "SKIPPED"
    MISSED = "MISSED"
    DEAD_LETTER = "DEAD_LETTER"

    @property
    def is_final(self) -> bool:
        return self in FINAL


class Event(StrEnum):
    """What can happen to a run."""

    ADMIT = "admit"
    CLAIM = "claim"
    SUCCEED = "succeed"
    ACCEPT = "accept"
    RETRY = "retry"
    FAIL = "fail"
    TIME_OUT = "time_out"
    BURY = "bury"
    RECLAIM = "reclaim"
    CANCEL = "cancel"
    SKIP = "skip"
    DO_NOTHING = "do_nothing"
    RERUN = "rerun"
    BRANCH = "branch"
    STOP = "stop"
    REOPEN = "reopen"
    COMPLETE = "complete"
    RESUME = "resume"
    REFUSE = "refuse"
    DISCARD = "discard"


class Reason(StrEnum):
    """Why a run is where it is, when the state alone does not say."""

    SLOT = "slot"
    DEPENDENCY = "dependency"
    OVERLAP = "overlap"
    MISFIRE = "misfire"
    CATCH_UP_LIMIT = "catch_up_limit"
    PAUSED = "paused"
    DELETED = "deleted"
    OPERATOR = "operator"
    CALLBACK = "callback"
    CALLBACK_TIMEOUT = "callback_timeout"
    LEASE_LAPSED = "lease_lapsed"
    UNCERTAIN = "uncertain"
    MAX_RECLAIMS = "max_reclaims"
    SHUTDOWN = "shutdown"
    CONDITION = "condition"
    CHILDREN = "children"
    RELEASED = "released"
    GATE = "gate"
    BUDGET = "budget"


FINAL = frozenset(
    {
        State.SUCCESS,
        State.FAILED,
        State.TIMEOUT,
        State.CANCELED,
        State.SKIPPED,
        State.MISSED,
        State.DEAD_LETTER,
    }
)
UNFINISHED = frozenset(State) - FINAL

TABLE: dict[tuple[State, Event], State] = {
    (State.WAITING, Event.ADMIT): State.SCHEDULED,
    (State.WAITING, Event.SKIP): State.SKIPPED,
    (State.WAITING, Event.CANCEL): State.CANCELED,
    (State.SCHEDULED, Event.CLAIM): State.RUNNING,
    (State.SCHEDULED, Event.CANCEL): State.CANCELED,
    (State.RETRYING, Event.CLAIM): State.RUNNING,
    (State.RETRYING, Event.CANCEL): State.CANCELED,
    # An item about an object that must not be seen to any more.
    (State.SCHEDULED, Event.REFUSE): State.FAILED,
    (State.RETRYING, Event.REFUSE): State.FAILED,
    (State.RUNNING, Event.SUCCEED): State.SUCCESS,
    (State.RUNNING, Event.ACCEPT): State.CALLBACK_PENDING,
    (State.RUNNING, Event.RETRY): State.RETRYING,
    (State.RUNNING, Event.FAIL): State.FAILED,
    (State.RUNNING, Event.TIME_OUT): State.TIMEOUT,
    (State.RUNNING, Event.BURY): State.DEAD_LETTER,
    (State.RUNNING, Event.RECLAIM): State.RETRYING,
    (State.RUNNING, Event.CANCEL): State.CANCELED,
    (State.CALLBACK_PENDING, Event.SUCCEED): State.SUCCESS,
    (State.CALLBACK_PENDING, Event.FAIL): State.FAILED,
    (State.CALLBACK_PENDING, Event.TIME_OUT): State.TIMEOUT,
    (State.CALLBACK_PENDING, Event.CANCEL): State.CANCELED,
    (State.FAILED, Event.RERUN): State.RETRYING,
    (State.TIMEOUT, Event.RERUN): State.RETRYING,
    (State.CANCELED, Event.RERUN): State.RETRYING,
    (State.DEAD_LETTER, Event.RERUN): State.RETRYING,
    # A run whose work is done by others: it branches into children, and follows from what becomes of them.
    (State.RUNNING, Event.BRANCH): State.RUNNING,
    (State.WAITING, Event.STOP): State.STOPPING,
    (State.SCHEDULED, Event.STOP): State.STOPPING,
    (State.RETRYING, Event.STOP): State.STOPPING,
    (State.RUNNING, Event.STOP): State.STOPPING,
    (State.STOPPING, Event.CANCEL): State.CANCELED,
    (State.FAILED, Event.REOPEN): State.RUNNING,
    (State.TIMEOUT, Event.REOPEN): State.RUNNING,
    (State.CANCELED, Event.REOPEN): State.RUNNING,
    # A step of a chain that does nothing is done as soon as it may start.
    (State.WAITING, Event.DO_NOTHING): State.SUCCESS,
    # A step of a chain: its condition may not hold, and one that was skipped may yet come.
    (State.RUNNING, Event.SKIP): State.SKIPPED,
    (State.SKIPPED, Event.RESUME): State.WAITING,
    # A person may call anything done that was begun.
    (State.RUNNING, Event.COMPLETE): State.SUCCESS,
    (State.CALLBACK_PENDING, Event.COMPLETE): State.SUCCESS,
    (State.FAILED, Event.COMPLETE): State.SUCCESS,
    (State.TIMEOUT, Event.COMPLETE): State.SUCCESS,
    (State.CANCELED, Event.COMPLETE): State.SUCCESS,
    (State.DEAD_LETTER, Event.COMPLETE): State.SUCCESS,
    # Nobody wants it any more.
    (State.DEAD_LETTER, Event.DISCARD): State.CANCELED,
    # One that is to be tried again, and has to wait for what it needs or for room.
    (State.FAILED, Event.RESUME): State.WAITING,
    (State.TIMEOUT, Event.RESUME): State.WAITING,
    (State.CANCELED, Event.RESUME): State.WAITING,
    (State.DEAD_LETTER, Event.RESUME): State.WAITING,
}

CLAIMABLE = frozenset(state for state, event in TABLE if event is Event.CLAIM)
"""States in which a run waits for nothing but its due instant and a free worker."""

UNSTARTED = frozenset({State.WAITING, State.SCHEDULED})
"""States in which nothing was sent yet: pausing a job cancels these at once."""

UNDER_WAY = UNFINISHED - {State.WAITING}
"""States in which a step of a chain is being seen to, or about to be."""

FAILURES = frozenset({State.FAILED, State.TIMEOUT, State.DEAD_LETTER})
"""Ends that mean the work was tried and is not done."""

AT_REST = UNSTARTED | {State.RETRYING}
"""States in which no attempt is under way: deleting a job cancels these at once."""
