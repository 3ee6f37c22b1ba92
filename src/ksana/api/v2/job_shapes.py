"""How jobs look on the wire, in and out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from ksana.api.kit import Input, Timestamp, timestamp
from ksana.api.services import JobDefaults
from ksana.api.v2.run_shapes import RunView, show_run
from ksana.api.v2.schedule_shapes import Duration, Problems, ScheduleShape, ScheduleView, read_schedule, show_schedule
from ksana.domain.durations import format_duration
from ksana.domain.errors import InvalidArgument
from ksana.domain.jobs import Job, JobSpec, TargetSpec
from ksana.domain.policies import (
    Misfire,
    MisfireRule,
    OnUncertain,
    Overlap,
    OverlapRule,
    Priority,
    Retry,
    RetryStrategy,
    Timeouts,
)
from ksana.domain.runs import Run
from ksana.domain.schedules import Every, Schedule

PriorityName = Literal["low", "normal", "high"]
Count = Annotated[int, msgspec.Meta(ge=0, le=2_147_483_647)]


class TargetShape(Input, frozen=True):
    """Which target, and what it is told. `/api/v2/targets` lists the kinds."""

    kind: str
    config: dict[str, Any] = msgspec.field(default_factory=dict)


class RetryShape(Input, frozen=True):
    """How often a failed run is tried in all, and how long it rests in between."""

    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    strategy: RetryStrategy | None = None
    initial_delay: Duration | None = None
    multiplier: Annotated[float, msgspec.Meta(ge=1, le=100)] | None = None
    max_delay: Duration | None = None


class OverlapShape(Input, frozen=True):
    """What happens when a run is due while others of the job are unfinished."""

    rule: OverlapRule | None = None
    max_concurrency: Count | None = None


class MisfireShape(Input, frozen=True):
    """What happens to slots found too late; `limit` is for catch_up."""

    rule: MisfireRule | None = None
    limit: Annotated[int, msgspec.Meta(ge=0, le=1000)] | None = None


class TimeoutsShape(Input, frozen=True):
    """How long an attempt, its connecting, and its callback may take."""

    total: Duration | None = None
    connect: Duration | None = None
    callback: Duration | None = None


class _Optional(Input, frozen=True):
    """What a new job may leave out and a change need not touch."""

    description: str | None = None
    tags: list[str] | None = None
    enabled: bool | None = None
    queue: str | None = None
    priority: PriorityName | None = None
    retry: RetryShape | None = None
    overlap: OverlapShape | None = None
    misfire: MisfireShape | None = None
    timeouts: TimeoutsShape | None = None
    on_uncertain: OnUncertain | None = None


class JobInput(_Optional, frozen=True, kw_only=True):
    """A new job."""

    name: str
    target: TargetShape
    schedule: ScheduleShape | None = None


class JobPatch(_Optional, frozen=True, kw_only=True):
    """A change: what is absent or null stays. `schedule` and `target` are replaced whole, policies are changed field by
    field; `"schedule": null` takes the schedule away."""

    version: Annotated[int, msgspec.Meta(ge=1)] | None = None
    name: str | None = None
    target: TargetShape | None = None
    schedule: ScheduleShape | msgspec.UnsetType | None = msgspec.UNSET


class RetryView(msgspec.Struct, frozen=True):
    max_attempts: int
    strategy: RetryStrategy
    initial_delay: str
    multiplier: float
    max_delay: str


class OverlapView(msgspec.Struct, frozen=True):
    rule: OverlapRule
    max_concurrency: int


class MisfireView(msgspec.Struct, frozen=True):
    rule: MisfireRule
    limit: int


class TimeoutsView(msgspec.Struct, frozen=True):
    total: str
    connect: str
    callback: str


class TargetView(msgspec.Struct, frozen=True):
    kind: str
    config: dict[str, Any]


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A job."""

    id: int
    surface: str
    ref: str
    name: str
    description: str
    tags: list[str]
    enabled: bool
    version: int
    target: TargetView
    schedule: ScheduleView | None
    queue: str
    priority: PriorityName
    retry: RetryView
    overlap: OverlapView
    misfire: MisfireView
    timeouts: TimeoutsView
    on_uncertain: OnUncertain | None
    created_at: Timestamp
    updated_at: Timestamp
    paused_at: Timestamp | None
    next_slot_at: Timestamp | None
    next_fire_at: Timestamp | None
    last_run: RunView | None


Check = Callable[[JobSpec], object]
"""Raises InvalidArgument if a job cannot be stored; asked only once something is wrong, to tell all of it."""


def read_new_job(body: JobInput, defaults: JobDefaults, now: datetime, check: Check) -> JobSpec:
    """The job a request asks for."""
    problems = Problems()
    spec = JobSpec(
        name=body.name,
        target=TargetSpec(body.target.kind, body.target.config),
        schedule=None if body.schedule is None else read_schedule(body.schedule, now, defaults, problems),
        retry=defaults.retry,
        timeouts=defaults.timeouts,
        on_uncertain=defaults.on_uncertain,
    )
    spec = _with_options(spec, body, problems)
    _refuse_any(problems, spec, check)
    return spec


def read_change(body: JobPatch, job: Job, defaults: JobDefaults, now: datetime, check: Check) -> JobSpec:
    """The job as a change would have it."""
    problems = Problems()
    fields: dict[str, Any] = {}
    if body.name is not None:
        fields["name"] = body.name
    if body.target is not None:
        fields["target"] = TargetSpec(body.target.kind, body.target.config)
    if body.schedule is None:
        fields["schedule"] = None
    elif body.schedule is not msgspec.UNSET:
        schedule = read_schedule(body.schedule, now, defaults, problems)
        fields["schedule"] = _on_its_grid(schedule, job.schedule)
    spec = _with_options(msgspec.structs.replace(job, **fields), body, problems)
    _refuse_any(problems, spec, check)
    return spec


def _on_its_grid(schedule: Schedule, old: Schedule | None) -> Schedule:
    """An interval that stays as long as it was keeps counting from where it began, so saying it again moves nothing."""
    if isinstance(schedule, Every) and isinstance(old, Every) and schedule.every == old.every:
        return msgspec.structs.replace(schedule, origin_at=old.origin_at)
    return schedule


def _refuse_any(problems: Problems, spec: JobSpec, check: Check) -> None:
    if not problems.any:
        return
    try:
        check(spec)
    except InvalidArgument as error:
        problems.collect(error)
    problems.raise_any()


def _with_options(spec: JobSpec, body: _Optional, problems: Problems) -> JobSpec:
    simple = {"description": body.description, "enabled": body.enabled, "queue": body.queue}
    fields: dict[str, Any] = {name: value for name, value in simple.items() if value is not None}
    if body.tags is not None:
        fields["tags"] = tuple(dict.fromkeys(body.tags))
    if body.priority is not None:
        fields["priority"] = Priority[body.priority.upper()]
    if body.on_uncertain is not None:
        fields["on_uncertain"] = body.on_uncertain
    if body.retry is not None:
        fields["retry"] = _retry(body.retry, spec.retry, problems)
    if body.overlap is not None:
        fields["overlap"] = _overlap(body.overlap, spec.overlap)
    if body.misfire is not None:
        fields["misfire"] = _misfire(body.misfire, spec.misfire)
    if body.timeouts is not None:
        fields["timeouts"] = _timeouts(body.timeouts, spec.timeouts, problems)
    return msgspec.structs.replace(spec, **fields)


def _retry(shape: RetryShape, old: Retry, problems: Problems) -> Retry:
    return Retry(
        max_attempts=old.max_attempts if shape.max_attempts is None else shape.max_attempts,
        strategy=shape.strategy or old.strategy,
        initial_delay=problems.duration(shape.initial_delay, "retry.initial_delay", old.initial_delay),
        multiplier=old.multiplier if shape.multiplier is None else shape.multiplier,
        max_delay=problems.duration(shape.max_delay, "retry.max_delay", old.max_delay),
    )


def _overlap(shape: OverlapShape, old: Overlap) -> Overlap:
    limit = old.max_concurrency if shape.max_concurrency is None else shape.max_concurrency
    return Overlap(shape.rule or old.rule, limit)


def _misfire(shape: MisfireShape, old: Misfire) -> Misfire:
    return Misfire(shape.rule or old.rule, old.limit if shape.limit is None else shape.limit)


def _timeouts(shape: TimeoutsShape, old: Timeouts, problems: Problems) -> Timeouts:
    return Timeouts(
        total=problems.duration(shape.total, "timeouts.total", old.total),
        connect=problems.duration(shape.connect, "timeouts.connect", old.connect),
        callback=problems.duration(shape.callback, "timeouts.callback", old.callback),
    )


_PRIORITIES: dict[Priority, PriorityName] = {
    Priority.LOW: "low",
    Priority.NORMAL: "normal",
    Priority.HIGH: "high",
}


def priority_name(priority: Priority) -> PriorityName:
    return _PRIORITIES[priority]


def show_job(job: Job, last_run: Run | None = None) -> JobView:
    retry, timeouts = job.retry, job.timeouts
    return JobView(
        id=job.id,
        surface=job.surface,
        ref=job.ref,
        name=job.name,
        description=job.description,
        tags=list(job.tags),
        enabled=job.enabled,
        version=job.version,
        target=TargetView(job.target.kind, job.target.config),
        schedule=show_schedule(job.schedule),
        queue=job.queue,
        priority=priority_name(job.priority),
        retry=RetryView(
            retry.max_attempts,
            retry.strategy,
            format_duration(retry.initial_delay),
            retry.multiplier,
            format_duration(retry.max_delay),
        ),
        overlap=OverlapView(job.overlap.rule, job.overlap.max_concurrency),
        misfire=MisfireView(job.misfire.rule, job.misfire.limit),
        timeouts=TimeoutsView(
            format_duration(timeouts.total), format_duration(timeouts.connect), format_duration(timeouts.callback)
        ),
        on_uncertain=job.on_uncertain,
        created_at=timestamp(job.created_at),
        updated_at=timestamp(job.updated_at),
        paused_at=timestamp(job.paused_at),
        next_slot_at=timestamp(job.next_slot_at),
        next_fire_at=timestamp(job.next_fire_at),
        last_run=None if last_run is None else show_run(last_run, job),
    )
