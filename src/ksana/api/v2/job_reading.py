"""From what requests say of jobs to jobs: new ones, and changes of those there are."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ksana.api.services import JobDefaults
from ksana.api.v2.job_shapes import (
    JobInput,
    JobOptions,
    JobPatch,
    MisfireShape,
    OverlapShape,
    RetryShape,
    TimeoutsShape,
)
from ksana.api.v2.schedule_shapes import Problems, read_schedule
from ksana.domain.durations import parse_duration
from ksana.domain.errors import InvalidArgument
from ksana.domain.jobs import Job, JobSpec, TargetSpec
from ksana.domain.policies import Misfire, Overlap, Priority, Retry, Timeouts
from ksana.domain.schedules import Every, Schedule
from ksana.domain.times import UTC_MAX, parse_instant

_DATE = re.compile(r"[0-9]{4}-")

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


def _with_options(spec: JobSpec, body: JobOptions, problems: Problems) -> JobSpec:
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


def read_until(text: str | None, now: datetime) -> datetime | None:
    """The instant at which a pause is to end, which is one to come."""
    if text is None:
        return None
    until = parse_instant(text, "until") if _DATE.match(text) else _later(now, parse_duration(text, "until"))
    if until <= now:
        raise InvalidArgument.of("until", f"{text} has passed; name an instant to come")
    return until


def _later(now: datetime, span: timedelta) -> datetime:
    return now + min(span, UTC_MAX - now)
