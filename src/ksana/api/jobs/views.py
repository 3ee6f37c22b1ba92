"""How timers look: the fields of the document, spans as they were written, empty text for what is unset."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from ksana.api.jobs.words import PLANNED, RUN_STATUS, RunStatus, exact_instant, instant
from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.jobs import Job, JobSpec
from ksana.domain.runs import Run
from ksana.domain.schedules import CronSchedule, Every, Once
from ksana.domain.standing import LastStatus, Standing


class HttpView(msgspec.Struct, frozen=True):
    method: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    body: str = ""


class OnceView(msgspec.Struct, frozen=True, tag="once", tag_field="kind"):
    run_at: str


class EveryView(msgspec.Struct, frozen=True, tag="every", tag_field="kind"):
    every: str
    start_at: str
    jitter: str


class CronView(msgspec.Struct, frozen=True, tag="cron", tag_field="kind"):
    expr: str
    timezone: str
    start_at: str
    jitter: str


ScheduleView = OnceView | EveryView | CronView


class JobView(msgspec.Struct, frozen=True):
    """A timer."""

    id: str
    name: str
    enabled: bool
    type: str
    http: HttpView
    schedule: ScheduleView | None
    """null only if somebody took it away by `/api/v2`."""
    timeout: str
    max_retries: int
    retry_backoff: str
    last_run_at: str
    next_run_at: str
    last_status: LastStatus
    last_error: str


class Triggered(msgspec.Struct, frozen=True):
    """A run that was asked for."""

    run_id: str
    job_id: str
    message: str


class RunView(msgspec.Struct, frozen=True):
    """One run of a timer: the instant it stands for, how it went, and how often it was tried."""

    run_id: str
    job_id: str
    trigger: str
    scheduled_at: str
    triggered_at: str
    started_at: str
    ended_at: str
    status: RunStatus
    reason: str
    attempts: int
    latency_ms: int | None
    error: str


def show_job(job: Job, standing: Standing) -> JobView:
    return JobView(
        id=job.ref,
        name=job.name,
        enabled=job.enabled,
        type=job.target.kind,
        http=_http(job),
        schedule=show_schedule(job),
        timeout=_span(job, "timeout", job.timeouts.total),
        max_retries=job.retry.max_attempts - 1,
        retry_backoff=_span(job, "retry_backoff", job.retry.initial_delay),
        last_run_at=instant(standing.last_run_at),
        next_run_at=instant(standing.next_run_at),
        last_status=standing.last_status,
        last_error=standing.last_error,
    )


def show_schedule(job: JobSpec) -> ScheduleView | None:
    """The schedule such that, said again, it is the same."""
    match job.schedule:
        case None:
            return None
        case Once(run_at):
            return OnceView(exact_instant(run_at))
        case Every() as schedule:
            return EveryView(
                _span(job, "every", schedule.every),
                exact_instant(schedule.start_at),
                _span(job, "jitter", schedule.jitter),
            )
        case CronSchedule() as schedule:
            return CronView(
                schedule.expr,
                schedule.timezone,
                exact_instant(schedule.start_at),
                _span(job, "jitter", schedule.jitter),
            )


def show_triggered(run: Run, job: Job) -> Triggered:
    return Triggered(str(run.id), job.ref, "Job triggered")


def show_run(run: Run, job: Job) -> RunView:
    return RunView(
        run_id=str(run.id),
        job_id=job.ref,
        trigger="schedule" if run.trigger in PLANNED else "manual",
        scheduled_at=instant(run.planned_at),
        triggered_at=instant(run.created_at),
        started_at=instant(run.started_at),
        ended_at=instant(run.ended_at),
        status=RUN_STATUS[run.state],
        reason=run.reason.value if run.reason else "",
        attempts=run.attempt,
        latency_ms=_millis(run.started_at, run.ended_at),
        error=run.error,
    )


def _http(job: Job) -> HttpView:
    config = job.target.config
    if job.target.kind != "http":
        # Somebody gave it another target by `/api/v2`.
        return HttpView()
    body = config.get("body")
    if body is None:
        body = msgspec.json.encode(config["json"]).decode() if "json" in config else ""
    return HttpView(config.get("method", ""), config.get("url", ""), config.get("headers", {}), body)


def _span(job: JobSpec, name: str, value: timedelta) -> str:
    """A span as it was written, unless it has been changed since by somebody who does not keep the writing."""
    text = job.extras.get(name, "")
    return text if text and parse_duration(text) == value else format_duration(value)


def _millis(since: datetime | None, until: datetime | None) -> int | None:
    return None if since is None or until is None else round((until - since) / timedelta(milliseconds=1))
