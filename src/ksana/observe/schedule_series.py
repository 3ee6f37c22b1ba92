"""The series of schedules, whoever fires them: the engine of a node, or a scheduler that code has registered."""

from __future__ import annotations

from datetime import datetime

from ksana.observe.exposition import CONTENT_TYPE, Histogram, Table
from ksana.observe.series import DELAY_BOUNDS

MAX_SCHEDULES = 5000


class ScheduleSeries:
    """Six series by `schedule_id`, with room for `max_schedules` of them, and for `other`."""

    def __init__(self, max_schedules: int = MAX_SCHEDULES) -> None:
        each = max_schedules + 1
        self._runs = Table(
            "scheduler_runs_total",
            "counter",
            "Planned instants that became runs, or failed to.",
            ("schedule_id", "status"),
            limit=2 * each,
        )
        self._durations = Histogram(
            "scheduler_run_duration_seconds",
            "Seconds from finding a slot due to its run stored.",
            DELAY_BOUNDS,
            ("schedule_id",),
            limit=each,
        )
        self._last_run = Table(
            "scheduler_last_run_timestamp", "gauge", "When a schedule last fired.", ("schedule_id",), limit=each
        )
        self._next_run = Table(
            "scheduler_next_run_timestamp", "gauge", "When a schedule fires next.", ("schedule_id",), limit=each
        )
        self._lock_failures = Table(
            "scheduler_lock_failures_total",
            "counter",
            "Errors while locking a schedule, other than that somebody holds it.",
            ("schedule_id",),
            limit=each,
        )
        self._lock_contended = Table(
            "scheduler_lock_contended_total",
            "counter",
            "Locks of a schedule that somebody else held.",
            ("schedule_id",),
            limit=each,
        )
        self._tables = (
            self._runs,
            self._durations,
            self._last_run,
            self._next_run,
            self._lock_failures,
            self._lock_contended,
        )

    def ran(self, schedule_id: str, took: float, at: datetime) -> None:
        """A slot became a run, after so many seconds."""
        self._runs.add(schedule_id, "success")
        self._durations.observe(self._durations.child(schedule_id), took)
        self._last_run.set(schedule_id, to=at.timestamp())

    def failed(self, schedule_id: str, took: float | None = None) -> None:
        """A due slot could not be made a run; how long the try took counts where it is known."""
        self._runs.add(schedule_id, "error")
        if took is not None:
            self._durations.observe(self._durations.child(schedule_id), took)

    def planned(self, schedule_id: str, next_at: datetime | None) -> None:
        """When it fires next, if ever."""
        if next_at is None:
            self._next_run.drop(schedule_id)
        else:
            self._next_run.set(schedule_id, to=next_at.timestamp())

    def lock_failed(self, schedule_id: str) -> None:
        """The lock could not be asked for."""
        self._lock_failures.add(schedule_id)

    def lock_contended(self, schedule_id: str) -> None:
        """Somebody else held the lock."""
        self._lock_contended.add(schedule_id)

    def forget(self, schedule_id: str) -> None:
        """Drop all of a schedule that is gone."""
        for table in (self._durations, self._last_run, self._next_run, self._lock_failures, self._lock_contended):
            table.drop(schedule_id)
        for status in ("success", "error"):
            self._runs.drop(schedule_id, status)

    def text(self) -> str:
        return "".join([table.text() for table in self._tables])

    def render(self) -> tuple[bytes, str]:
        """These series alone as text, and its content type: for a program that has no others."""
        return self.text().encode(), CONTENT_TYPE
