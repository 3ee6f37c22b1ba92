"""Counts what the engine says happened, and writes it out for Prometheus.

Series per job end when their job does; beyond `max_jobs` jobs, further ones share the label value `other`.
"""

from __future__ import annotations

import asyncio
import platform
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from ksana.domain.claims import Claimed
from ksana.domain.errors import StoreUnavailable
from ksana.domain.fires import Gap
from ksana.domain.jobs import Job
from ksana.domain.moves import Move
from ksana.domain.plans import CHAIN
from ksana.domain.ports import Store
from ksana.domain.queries import Counts
from ksana.domain.runs import Run, Trigger
from ksana.domain.states import Reason, State
from ksana.observe.chain_series import ChainSeries
from ksana.observe.exposition import CONTENT_TYPE, OTHER, Distribution
from ksana.observe.schedule_series import ScheduleSeries
from ksana.observe.series import DELAY_BOUNDS, RUN_BOUNDS, Series

MAX_JOBS: Final = 5000

_FRESH: Final = timedelta(seconds=1)
# How many jobs are looked up per scrape to see whether they still exist, in turn.
_LOOKED_UP: Final = 500
_REMEMBERED_GONE: Final = 10_000

_FAILURES: Final = frozenset({State.FAILED, State.TIMEOUT, State.DEAD_LETTER})
_LATE_GAPS: Final = frozenset({Reason.MISFIRE, Reason.CATCH_UP_LIMIT})
# A run that goes back for one of these did not fail.
_NO_RETRY: Final = frozenset({Reason.OPERATOR, Reason.SHUTDOWN, Reason.RELEASED})
_DECISIONS: Final = {State.SKIPPED: "skipped", State.MISSED: "missed"}
# The document that names cronjob_run_total has words of its own for how a run ends.
_ENDS: Final = {
    State.SUCCESS: "SUCCESS",
    State.FAILED: "FAILED",
    State.TIMEOUT: "TIMEOUT",
    State.CANCELED: "CANCELED",
    State.SKIPPED: "SKIPPED",
    State.MISSED: "SKIPPED",
    State.DEAD_LETTER: "FAILED",
}
_ENDS_BY_CALLBACK: Final = {
    (State.SUCCESS, Reason.CALLBACK): "CALLBACK_SUCCESS",
    (State.TIMEOUT, Reason.CALLBACK_TIMEOUT): "FAILED_TIMEOUT",
}
# The surface whose document names cronjob_task_total.
_TASKS: Final = "tasks"
_STATUS: Final = {True: "ENABLED", False: "DISABLED"}
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


class _JobSeries:
    """Where the numbers of one job go: its labels, and its durations at hand."""

    __slots__ = ("durations", "schedule_id", "task_id")

    def __init__(self, task_id: str, durations: Distribution) -> None:
        self.task_id = task_id
        self.schedule_id = ""
        self.durations = durations


class MetricsObserver:
    """Counts what the engine says happened. One per node; nothing is shared between two of them.

    `now` reads the clock by which the engine plans: what has passed since a batch was begun is how long it took.
    """

    def __init__(self, now: Callable[[], datetime], *, version: str, max_jobs: int = MAX_JOBS) -> None:
        self._now = now
        self._max_jobs = max_jobs
        self._jobs: dict[int, _JobSeries] = {}
        self._gone: dict[int, None] = {}
        self._refreshed_at: datetime | None = None
        self._refreshing = asyncio.Lock()
        self._executing_now: Callable[[], int] | None = None
        self._succeeded = self._failed = self._requeued = self._attempts = 0
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        self._tables = tables = Series(max_jobs)
        self.schedules = ScheduleSeries(max_jobs)
        self._chains = ChainSeries()

        # Series that exist from the start make the first event visible as a rise.
        tables.build.set(version, platform.python_version(), to=1)
        tables.store_up.set(to=1)
        for table in (tables.fenced, tables.outages, tables.clock_jumps):
            table.add(amount=0)
        for decision in ("fired", "skipped", "missed", "left_out"):
            tables.fires.add(decision, amount=0)
        for status in (*_ENDS.values(), *_ENDS_BY_CALLBACK.values()):
            tables.ended.add(status, amount=0)
        self._scanned = tables.scans.child()
        self._late = tables.lateness.child()
        self._by_kind: dict[str, Distribution] = {}
        self._other = _JobSeries(OTHER, Distribution(len(RUN_BOUNDS)))
        self._other.schedule_id = OTHER

    # What the engine says

    def on_fired(self, runs: Sequence[Claimed], gaps: Sequence[Gap], now: datetime) -> None:
        looked_at = runs[0].run.created_at if runs else gaps[0].recorded_at
        took = max(0.0, (now - looked_at).total_seconds())
        self._tables.scans.observe(self._scanned, took)
        fired = 0
        for one in runs:
            run, job = one.run, one.job
            is_late = run.trigger is Trigger.CATCH_UP or run.state is State.MISSED
            if is_late and run.job_id is not None:
                self._tables.misfires.add(self._series(run.job_id).task_id)
            if run.ended_at is not None:
                self._tables.fires.add(_DECISIONS.get(run.state, "fired"))
                self._count_ended(run.kind, run.state, run.reason, 1)
                continue
            fired += 1
            if job is not None:
                self._count_enqueued(job, took, looked_at)
        self._tables.fires.add("fired", amount=fired)
        for gap in gaps:
            self._tables.fires.add("left_out", amount=gap.count)
            if gap.reason in _LATE_GAPS:
                self._tables.misfires.add(self._series(gap.job_id).task_id, amount=gap.count)

    def on_started(self, claimed: Sequence[Claimed], now: datetime) -> None:
        late = self._late
        counts, total = late.counts, 0.0
        # Runs that start together mostly came due together: then there is nothing to work out anew.
        due_at, seconds, bucket = None, 0.0, 0
        for one in claimed:
            run = one.run
            if run.due_at is not due_at:
                due_at = run.due_at
                seconds = max(0.0, (now - due_at).total_seconds())
                bucket = bisect_left(DELAY_BOUNDS, seconds)
            counts[bucket] += 1
            total += seconds
            if run.parent_id is not None:
                self._chains.started(run)
        late.total += total

    def on_moved(self, moves: Sequence[tuple[Move, Job | None]], now: datetime) -> None:
        # The hottest loop of this room: numbers go straight into lists, and only what is rare costs a call.
        ended: dict[tuple[str, State, Reason | None], int] = {}
        exchanged: dict[tuple[str, int | None], int] = {}
        by_kind, jobs = self._by_kind, self._jobs
        # Runs that were claimed together and are stored together took equally long.
        began_at, over_at, seconds, bucket = None, None, 0.0, 0
        for move, _ in moves:
            run = move.run
            attempt = move.attempt
            if attempt is not None and (exchange := attempt.exchange) is not None:
                call = (exchange.request_line, exchange.response_code)
                exchanged[call] = exchanged.get(call, 0) + 1
            kind = run.kind
            if run.parent_id is not None or kind == CHAIN:
                self._chains.moved(run)
            ended_at = run.ended_at
            if ended_at is None:
                self._count_unfinished(run)
                continue
            key = (kind, run.state, run.reason)
            ended[key] = ended.get(key, 0) + 1
            started_at = run.started_at
            if started_at is None:
                continue
            if started_at is not began_at or ended_at is not over_at:
                began_at, over_at = started_at, ended_at
                seconds = (ended_at - started_at).total_seconds()
                bucket = bisect_left(RUN_BOUNDS, seconds)
            of_kind = by_kind.get(kind) or self._of_kind(kind)
            of_kind.counts[bucket] += 1
            of_kind.total += seconds
            job_id = run.job_id
            if job_id is not None:
                of_job = (jobs.get(job_id) or self._series(job_id)).durations
                of_job.counts[bucket] += 1
                of_job.total += seconds
        for (kind, state, reason), count in ended.items():
            self._count_ended(kind, state, reason, count)
        for (line, code), count in exchanged.items():
            self._count_exchanges(line, code, count)

    def on_lost(self, run_ids: Iterable[int], now: datetime) -> None:
        lost = list(run_ids)
        self._chains.lost(lost)
        self._tables.fenced.add(amount=len(lost))

    def on_changed(self, jobs: Sequence[Job], runs: Sequence[Claimed], now: datetime) -> None: ...

    def on_store(self, available: bool, error: str) -> None:
        self._tables.store_up.set(to=int(available))
        if not available:
            self._tables.outages.add()

    def on_clock_jump(self, jump: timedelta) -> None:
        self._tables.clock_jumps.add()

    # What others say

    def watch_executing(self, executing: Callable[[], int]) -> None:
        """Ask `executing` at each scrape how many attempts are under way."""
        self._executing_now = executing

    def forget_job(self, job_id: int) -> None:
        """Drop the series of a job that was deleted."""
        # A run of it may still be under way, and its end must not bring the series back.
        self._gone[job_id] = None
        if len(self._gone) > _REMEMBERED_GONE:
            del self._gone[next(iter(self._gone))]
        series = self._jobs.pop(job_id, None)
        if series is None:
            return
        self._tables.forget_task(series.task_id)
        if series.schedule_id:
            self.schedules.forget(series.schedule_id)

    # Scraping

    async def refresh(self, store: Store, now: datetime) -> None:
        """Read what only the store knows, at most once a second. While it is away, its series are absent, not stale."""
        async with self._refreshing:
            if self._refreshed_at is not None and abs(now - self._refreshed_at) < _FRESH:
                return
            try:
                counts = await store.counts(now)
                await self._look_up_jobs(store)
            except StoreUnavailable:
                for table in self._tables.counted:
                    table.values.clear()
                return
            self._show(counts, now)
            self._refreshed_at = now

    def render(self) -> tuple[bytes, str]:
        """All series as text, and its content type."""
        failed_or_not = self._succeeded + self._failed
        self._tables.success_rate.set(to=self._succeeded / failed_or_not if failed_or_not else 0)
        self._tables.retry_rate.set(to=self._requeued / self._attempts if self._attempts else 0)
        if self._executing_now is not None:
            self._tables.executing.set(to=self._executing_now())
        text = self._tables.text() + self.schedules.text() + self._chains.text()
        return text.encode() + generate_latest(self._process), CONTENT_TYPE

    def _show(self, counts: Counts, now: datetime) -> None:
        self._tables.jobs.values.clear()
        for (surface, enabled), count in sorted(counts.jobs.items()):
            self._tables.jobs.set(surface, _STATUS[enabled], to=count)
        for enabled, status in _STATUS.items():
            self._tables.tasks.set(status, to=counts.jobs.get((_TASKS, enabled), 0))
        self._tables.callbacks.set(to=counts.unfinished.get(State.CALLBACK_PENDING, 0))
        self._tables.due.set(to=counts.due)
        oldest = counts.oldest_due_at
        self._tables.lag.set(to=0 if oldest is None else max(0.0, (now - oldest).total_seconds()))
        self._tables.dead_letters.set(to=counts.dead_letters)

    async def _look_up_jobs(self, store: Store) -> None:
        """See which jobs are gone (maybe deleted on another node) and when the others fire next, some at a time."""
        ids = list(islice(self._jobs, _LOOKED_UP))
        if not ids:
            return
        found = {job.id: job for job in await store.get_jobs(ids)}
        for job_id in ids:
            job = found.get(job_id)
            if job is None or job.deleted_at is not None:
                self.forget_job(job_id)
            elif (series := self._jobs.pop(job_id, None)) is not None:
                self._jobs[job_id] = series
                self._show_next_run(series, job)

    def _show_next_run(self, series: _JobSeries, job: Job) -> None:
        series.schedule_id = job.shown_id
        self.schedules.planned(series.schedule_id, job.next_fire_at)

    # Counting

    def _series(self, job_id: int) -> _JobSeries:
        series = self._jobs.get(job_id)
        if series is not None:
            return series
        if len(self._jobs) >= self._max_jobs or job_id in self._gone:
            self._other.durations = self._tables.durations.child(OTHER)
            return self._other
        task_id = str(job_id)
        series = self._jobs[job_id] = _JobSeries(task_id, self._tables.durations.child(task_id))
        return series

    def _of_kind(self, kind: str) -> Distribution:
        distribution = self._tables.run_seconds.child(kind)
        if (kind,) in self._tables.run_seconds.children:
            self._by_kind[kind] = distribution
        return distribution

    def _count_ended(self, kind: str, state: State, reason: Reason | None, count: int) -> None:
        self._tables.runs.add(state.value, kind, amount=count)
        by_callback = None if reason is None else _ENDS_BY_CALLBACK.get((state, reason))
        self._tables.ended.add(by_callback or _ENDS[state], amount=count)
        if state is State.SUCCESS:
            self._succeeded += count
            self._attempts += count
        elif state in _FAILURES:
            self._failed += count
            self._attempts += count

    def _count_unfinished(self, run: Run) -> None:
        if run.state is State.RETRYING and run.reason not in _NO_RETRY:
            self._requeued += 1
            self._attempts += 1
            if run.job_id is not None:
                self._tables.retries.add(self._series(run.job_id).task_id)

    def _count_exchanges(self, line: str, code: int | None, count: int) -> None:
        method = line.partition(" ")[0]
        shown = method if method in _METHODS else OTHER
        self._tables.requests.add(shown, "error" if code is None else str(code), amount=count)

    def _count_enqueued(self, job: Job, took: float, now: datetime) -> None:
        series = self._series(job.id)
        if not series.schedule_id:
            series.schedule_id = job.shown_id
        self.schedules.ran(series.schedule_id, took, now)
