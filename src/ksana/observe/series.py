"""Every series of a node but those of schedules: names, types and labels. They are a promise to dashboards, and no
label ever names a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ksana.observe.exposition import Histogram, Table

# Each spans what it must: a function call to an hour's work, and a commit to an outage.
RUN_BOUNDS: Final = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
DELAY_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 30.0, 300.0)


class Series:
    """The tables of one node. Those per job have room for `max_jobs` of them, and for `other`."""

    def __init__(self, max_jobs: int) -> None:
        self._tables: list[Table | Histogram] = []
        counter, gauge, histogram, per_job = self._counter, self._gauge, self._histogram, max_jobs + 1
        self.tasks = gauge("cronjob_task_total", "Tasks, by whether they are enabled.", "status")
        self.ended = counter("cronjob_run_total", "Runs that ended, by how.", "status")
        self.durations = histogram(
            "cronjob_run_duration_seconds",
            "From the first attempt of a run to its end.",
            RUN_BOUNDS,
            "task_id",
            limit=per_job,
        )
        self.retries = counter(
            "cronjob_run_retries_total", "Attempts that failed and are tried again.", "task_id", limit=per_job
        )
        self.requests = counter(
            "cronjob_http_request_total", "HTTP requests, by status; error if none came.", "method", "code"
        )
        self.callbacks = gauge("cronjob_callback_pending", "Runs that wait for their callback.")
        self.scans = histogram(
            "cronjob_scheduler_scan_latency", "Seconds from looking for due slots to their runs stored.", DELAY_BOUNDS
        )
        self.misfires = counter(
            "cronjob_misfire_total",
            "Planned instants found too late, whatever became of them.",
            "task_id",
            limit=per_job,
        )

        self.due = gauge("jobs_due_count", "Runs that are due and not begun.")
        self.lag = gauge("jobs_lag_seconds", "How long the oldest due run has waited.")
        self.success_rate = gauge("job_success_rate", "Successes among runs that succeeded or failed, since the start.")
        self.retry_rate = gauge("job_retry_rate", "Attempts tried again among all that ended, since the start.")
        self.dead_letters = gauge("dead_letter_count", "Runs that are dead letters.")

        self.jobs = gauge(
            "ksana_jobs", "Jobs, by how they were made and whether they are enabled.", "surface", "status"
        )
        self.runs = counter("ksana_runs_total", "Runs that ended.", "state", "kind")
        self.run_seconds = histogram(
            "ksana_run_seconds", "From the first attempt of a run to its end.", RUN_BOUNDS, "kind"
        )
        self.lateness = histogram(
            "ksana_lateness_seconds", "From the instant an attempt was due to its begin.", DELAY_BOUNDS
        )
        self.fires = counter("ksana_fires_total", "Planned instants, by what was decided.", "decision")
        self.fenced = counter("ksana_fenced_results_total", "Results that came too late: the run had moved on already.")
        self.store_up = gauge("ksana_store_up", "Whether the store answers.")
        self.outages = counter("ksana_store_outages_total", "How often the store went away.")
        self.clock_jumps = counter("ksana_clock_jumps_total", "How often the wall clock was set.")
        self.executing = gauge("ksana_executing", "Attempts under way on this node.")
        self.build = gauge("ksana_build_info", "Which program this is.", "version", "python")
        self.counted = (self.tasks, self.jobs, self.callbacks, self.due, self.lag, self.dead_letters)

    def text(self) -> str:
        return "".join([table.text() for table in self._tables])

    def forget_task(self, task_id: str) -> None:
        for table in (self.durations, self.retries, self.misfires):
            table.drop(task_id)

    def _counter(self, name: str, help: str, *labels: str, limit: int = 1000) -> Table:
        return self._kept(Table(name, "counter", help, labels, limit=limit))

    def _gauge(self, name: str, help: str, *labels: str, limit: int = 1000) -> Table:
        return self._kept(Table(name, "gauge", help, labels, limit=limit))

    def _kept(self, table: Table) -> Table:
        self._tables.append(table)
        return table

    def _histogram(self, name: str, help: str, bounds: Sequence[float], *labels: str, limit: int = 1000) -> Histogram:
        histogram = Histogram(name, help, bounds, labels, limit=limit)
        self._tables.append(histogram)
        return histogram
