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
    RERUN = "rerun"


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
}

CLAIMABLE = frozenset(state for state, event in TABLE if event is Event.CLAIM)
"""States in which a run waits for nothing but its due instant and a free worker."""

UNSTARTED = frozenset({State.WAITING, State.SCHEDULED})
"""States in which nothing was sent yet: pausing a job cancels these at once."""

AT_REST = UNSTARTED | {State.RETRYING}
"""States in which no attempt is under way: deleting a job cancels these at once."""
