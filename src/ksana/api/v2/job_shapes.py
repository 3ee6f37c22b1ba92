"""How jobs look on the wire, in and out."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ksana.api.kit import Input, Timestamp, timestamp
from ksana.api.v2.run_shapes import RunView, show_run
from ksana.api.v2.schedule_shapes import Duration, ScheduleShape, ScheduleView, WordsView, show_schedule, show_words
from ksana.domain.durations import format_duration
from ksana.domain.explain import words_of
from ksana.domain.jobs import Job
from ksana.domain.policies import MisfireRule, OnUncertain, OverlapRule, Priority, RetryStrategy
from ksana.domain.runs import Run

PriorityName = Literal["low", "normal", "high"]
Until = Annotated[
    str, msgspec.Meta(description="RFC 3339, or so long from now", examples=["2h", "2026-11-16T09:00:00+08:00"])
]
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


class PauseInput(Input, frozen=True):
    """Why a job is paused, and until when if the pause is to end by itself."""

    reason: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    until: Until | None = None


class JobOptions(Input, frozen=True):
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


class JobInput(JobOptions, frozen=True, kw_only=True):
    """A new job."""

    name: str
    target: TargetShape
    schedule: ScheduleShape | None = None


class JobPatch(JobOptions, frozen=True, kw_only=True):
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
    schedule_words: WordsView | None
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
    paused_until: Timestamp | None
    pause_reason: str
    next_slot_at: Timestamp | None
    next_fire_at: Timestamp | None
    last_run: RunView | None


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
        schedule_words=None if job.schedule is None else show_words(words_of(job.schedule)),
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
        paused_until=timestamp(job.resumes_at),
        pause_reason=job.pause_reason,
        next_slot_at=timestamp(job.next_slot_at),
        next_fire_at=timestamp(job.next_fire_at),
        last_run=None if last_run is None else show_run(last_run, job),
    )
