"""The words of this surface for the states of runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from ksana.domain.runs import Run
from ksana.domain.states import State


class RunStatus(StrEnum):
    """Where a run stands. SKIPPED is a planned instant that was left out, by the chain's own rules."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    SKIPPED = "SKIPPED"


_RUNS: Final = {
    State.WAITING: RunStatus.PENDING,
    State.SCHEDULED: RunStatus.PENDING,
    State.RUNNING: RunStatus.RUNNING,
    State.RETRYING: RunStatus.RUNNING,
    State.CALLBACK_PENDING: RunStatus.RUNNING,
    State.STOPPING: RunStatus.STOPPING,
    State.SUCCESS: RunStatus.SUCCESS,
    State.FAILED: RunStatus.FAILED,
    State.TIMEOUT: RunStatus.FAILED,
    State.DEAD_LETTER: RunStatus.FAILED,
    State.CANCELED: RunStatus.STOPPED,
    State.SKIPPED: RunStatus.SKIPPED,
    State.MISSED: RunStatus.SKIPPED,
}


def run_status_of(run: Run) -> RunStatus:
    return _RUNS[run.state]


def states_of(status: RunStatus) -> frozenset[State]:
    """The states a filter by this status finds."""
    return frozenset(state for state, shown in _RUNS.items() if shown is status)
