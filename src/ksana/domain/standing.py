"""Where a timer stands: its next fire, and how it went last. Nothing of it is stored; cursor and runs tell."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

import msgspec

from ksana.domain.fires import Lateness
from ksana.domain.jobs import Job
from ksana.domain.runs import Run
from ksana.domain.schedules import Once
from ksana.domain.states import FINAL, State

EndStatus = Literal["success", "failed", "timeout", "skipped", "missed"]
LastStatus = Literal["", "success", "failed", "timeout", "skipped", "missed", "paused"]

END_STATUS: Final[dict[State, EndStatus]] = {
    State.SUCCESS: "success",
    State.FAILED: "failed",
    State.DEAD_LETTER: "failed",
    State.TIMEOUT: "timeout",
    State.MISSED: "missed",
    State.CANCELED: "skipped",
    State.SKIPPED: "skipped",
}

RESULTS: Final = FINAL - {State.SKIPPED}
"""How a run may end and have the last word. A tick that was dropped has it only while there is no other: it says
nothing of how the job does."""

INVALID: Final = "invalid"
"""Among the extras of a job: why it cannot be used as somebody wrote it. It stays off until it is put right."""

_NEVER_RAN: Final = frozenset({State.MISSED, State.SKIPPED})


class Standing(msgspec.Struct, frozen=True):
    """What a timer says of itself."""

    last_run_at: datetime | None = None
    next_run_at: datetime | None = None
    last_status: LastStatus = ""
    last_error: str = ""


def standing_of(job: Job, last: Run | None, is_untouched: bool, now: datetime, lateness: Lateness) -> Standing:
    """Where a timer stands. `last` is its newest run in one of RESULTS, or else its newest dropped tick; `is_untouched`
    says of a spent job that it has no run at all."""
    last_run_at = None if last is None or last.state in _NEVER_RAN else last.created_at
    if problem := job.extras.get(INVALID):
        return Standing(last_run_at, None, "paused", problem)
    if _is_missed(job, is_untouched, now, lateness):
        return Standing(last_run_at, None, "missed")
    if _has_paused_since(job, last):
        return Standing(last_run_at, None, "paused")
    if last is None:
        return Standing(None, job.next_fire_at)
    return Standing(last_run_at, job.next_fire_at, END_STATUS[last.state], last.error)


def is_spent(job: Job) -> bool:
    """Switched on, and nothing is planned: a `once` that ran, runs, or was too late when it was switched on."""
    return job.enabled and isinstance(job.schedule, Once) and job.next_slot_at is None


def _is_missed(job: Job, is_untouched: bool, now: datetime, lateness: Lateness) -> bool:
    if job.next_slot_at is not None and isinstance(job.schedule, Once):
        # Nobody has looked at it yet, and whoever does will be too late.
        return lateness.misses(job.next_slot_at, now)
    return is_spent(job) and is_untouched


def _has_paused_since(job: Job, last: Run | None) -> bool:
    """Whether the pause is the newest there is to tell: what ended after it, ended after all."""
    return job.paused_at is not None and (last is None or last.ended_at is None or last.ended_at <= job.paused_at)
