"""From a request about a task to what the engine stores, and back to the request's words for what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import msgspec

from ksana.api.services import JobDefaults
from ksana.api.tasks.cron_text import normalized
from ksana.api.tasks.task_shapes import (
    CALLBACK_METHOD,
    RETRY_POLICY,
    RetryPolicy,
    TaskInput,
    TaskPatch,
    retry_policy_of,
)
from ksana.api.tasks.words import MISFIRE_RULES, OVERLAP_RULES, CallbackMethod, TaskStatus
from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.jobs import Job, JobSpec, TargetSpec
from ksana.domain.policies import (
    DEFAULT_CALLBACK_TIMEOUT,
    Misfire,
    MisfireRule,
    Overlap,
    Retry,
    RetryStrategy,
    Timeouts,
)
from ksana.domain.schedules import CronSchedule, Schedule

Check = Callable[[JobSpec], object]
"""Raises InvalidArgument if a job cannot be stored; asked once something is wrong, to tell all of it."""

_replace: Final = msgspec.structs.replace
_HARMLESS: Final = "0 0 0 1 1 *"

_FIELDS: Final = {
    "schedule.expr": "cron_expr",
    "schedule.timezone": "timezone",
    "target.url": "target_url",
    "target.method": "http_method",
    "target.body": "body_template",
    "target.mode": "exec_type",
    "timeouts.total": "timeout_seconds",
    "timeouts.callback": "callback_timeout_sec",
    "retry.max_attempts": "retry_policy.max_retries",
    "retry.initial_delay": "retry_policy.initial_delay",
    "retry.max_delay": "retry_policy.max_delay",
    "overlap.max_concurrency": "max_concurrency",
    "misfire.limit": "catchup_limit",
}
_HEADERS: Final = "target.headers"


def read_new_task(body: TaskInput, defaults: JobDefaults, check: Check) -> JobSpec:
    """The job a request asks for."""
    return _read(body, blank_task(defaults), defaults, check)


def read_replacement(body: TaskInput, job: Job, defaults: JobDefaults, check: Check) -> JobSpec:
    """The job as a full update would have it: what it leaves out is the default again, but for the switch."""
    blank = blank_task(defaults)
    fields = {name: getattr(blank, name) for name in JobSpec.__struct_fields__ if name != "enabled"}
    return _read(body, _replace(job, **fields), defaults, check)


def read_change(body: TaskPatch, job: Job, defaults: JobDefaults, check: Check) -> JobSpec:
    """The job as a change would have it."""
    return _read(body, job, defaults, check)


def blank_task(defaults: JobDefaults) -> JobSpec:
    """A task that says nothing yet."""
    return JobSpec(
        name="",
        unique_name=True,
        target=TargetSpec("http", {"method": "GET", "url": "", "headers": {}, "mode": "sync"}),
        schedule=CronSchedule(_HARMLESS, defaults.timezone),
        retry=defaults.retry,
        overlap=Overlap(),
        misfire=Misfire(MisfireRule.FIRE_ONCE, 0),
        timeouts=_replace(defaults.timeouts, callback=DEFAULT_CALLBACK_TIMEOUT),
        # As `recovery.running` says when it comes to that, so that a restart with another setting counts.
        on_uncertain=None,
    )


@contextmanager
def naming_task_fields() -> Iterator[None]:
    """The core names the fields of a job; whoever wrote the request knows them by other names."""
    try:
        yield
    except InvalidArgument as error:
        raise InvalidArgument(Problem(_task_field(field), message) for field, message in error.problems) from None


def _task_field(field: str) -> str:
    if field == _HEADERS or field.startswith(f"{_HEADERS}."):
        return field.removeprefix("target.")
    return _FIELDS.get(field, field)


def _read(body: TaskInput | TaskPatch, spec: JobSpec, defaults: JobDefaults, check: Check) -> JobSpec:
    problems: list[Problem] = []
    fields: dict[str, Any] = {
        "schedule": _schedule(body, spec, defaults, problems),
        "target": _target(body, spec),
        "timeouts": _timeouts(body, spec.timeouts),
        "overlap": _overlap(body, spec.overlap),
        "misfire": _misfire(body, spec.misfire),
    }
    if body.name is not None:
        fields["name"] = body.name
    if body.description is not None:
        fields["description"] = body.description
    if body.status is not None:
        fields["enabled"] = body.status is TaskStatus.ENABLED
    extras = dict(spec.extras)
    if body.callback_method is CallbackMethod.POST:
        extras.pop(CALLBACK_METHOD, None)
    elif body.callback_method is not None:
        extras[CALLBACK_METHOD] = body.callback_method.value
    if body.retry_policy is not None:
        fields["retry"] = _retry(body.retry_policy, spec.retry)
        extras[RETRY_POLICY] = msgspec.to_builtins(retry_policy_of(fields["retry"]))
    fields["extras"] = extras
    read = _replace(spec, **fields)
    if problems:
        try:
            check(read)
        except InvalidArgument as error:
            problems += error.problems
        raise InvalidArgument(problems)
    return read


def _schedule(
    body: TaskInput | TaskPatch, spec: JobSpec, defaults: JobDefaults, problems: list[Problem]
) -> Schedule | None:
    if body.cron_expr is None and body.timezone is None:
        return spec.schedule
    # A schedule of another kind can only come from /api/v2; a new expression takes its place.
    old = spec.schedule if isinstance(spec.schedule, CronSchedule) else CronSchedule("", defaults.timezone)
    expr = old.expr
    if body.cron_expr is not None:
        try:
            expr = normalized(body.cron_expr, seconds_field=defaults.seconds_field)
        except InvalidArgument as error:
            problems += error.problems
            expr = _HARMLESS
    return _replace(old, expr=expr, timezone=body.timezone or old.timezone)


def _target(body: TaskInput | TaskPatch, spec: JobSpec) -> TargetSpec:
    said = {
        "method": body.http_method or None,
        "url": body.target_url,
        "headers": body.headers,
        "body": body.body_template,
        "mode": None if body.exec_type is None else body.exec_type.value.lower(),
    }
    config = spec.target.config | {name: value for name, value in said.items() if value is not None}
    if body.body_template is not None:
        config.pop("json", None)
    if config.get("body") == "":
        del config["body"]
    return TargetSpec(spec.target.kind, config)


def _timeouts(body: TaskInput | TaskPatch, old: Timeouts) -> Timeouts:
    total = old.total if body.timeout_seconds is None else timedelta(seconds=body.timeout_seconds)
    callback = old.callback if body.callback_timeout_sec is None else timedelta(seconds=body.callback_timeout_sec)
    return _replace(old, total=total, callback=callback)


def _overlap(body: TaskInput | TaskPatch, old: Overlap) -> Overlap:
    rule = old.rule if body.concurrency_policy is None else OVERLAP_RULES[body.concurrency_policy]
    return Overlap(rule, old.max_concurrency if body.max_concurrency is None else body.max_concurrency)


def _misfire(body: TaskInput | TaskPatch, old: Misfire) -> Misfire:
    rule = old.rule if body.misfire_policy is None else MISFIRE_RULES[body.misfire_policy]
    return Misfire(rule, old.limit if body.catchup_limit is None else body.catchup_limit)


def _retry(policy: RetryPolicy, old: Retry) -> Retry:
    return _replace(
        old,
        max_attempts=old.max_attempts if policy.max_retries is None else 1 + policy.max_retries,
        strategy=old.strategy if policy.strategy is None else RetryStrategy(policy.strategy),
        initial_delay=_span(policy.initial_delay, old.initial_delay),
        max_delay=_span(policy.max_delay, old.max_delay),
    )


def _span(seconds: float | None, old: timedelta) -> timedelta:
    return old if seconds is None else timedelta(seconds=seconds)
