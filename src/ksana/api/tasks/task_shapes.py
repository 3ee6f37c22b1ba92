"""How tasks look on the wire, in and out."""

from __future__ import annotations

from datetime import timedelta
from math import ceil
from typing import Annotated, Any, Literal

import msgspec

from ksana.api.kit import encode
from ksana.api.tasks import words
from ksana.api.tasks.moments import Moment, moment
from ksana.api.tasks.spellings import TASK_KEYS, both
from ksana.domain.jobs import Job
from ksana.domain.policies import Retry, RetryStrategy
from ksana.domain.schedules import CronSchedule

Strategy = Literal["fixed", "exponential"]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
CronText = Annotated[
    str, msgspec.Meta(min_length=1, max_length=64, description="five fields, or six with seconds first")
]
Url = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
Version = Annotated[int, msgspec.Meta(ge=1)]
Delay = Annotated[float, msgspec.Meta(ge=0, le=2_592_000, description="seconds")]
CALLBACK_METHOD = "callback_method"
RETRY_POLICY = "retry_policy"
"""What a task keeps of its own in the extras of its job: the method, and whether it was given a policy."""

_DAY = 86_400
_MONTH = 30 * _DAY


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often a failed run is tried again, and how many seconds it rests before."""

    max_retries: Annotated[int, msgspec.Meta(ge=0, le=999)] | None = None
    initial_delay: Delay | None = None
    strategy: Strategy | None = None
    max_delay: Delay | None = None


class _Optional(msgspec.Struct, frozen=True, kw_only=True):
    """What a new task may leave out and a change need not touch; null says as little as nothing."""

    description: Annotated[str, msgspec.Meta(max_length=512)] | None = None
    timezone: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    exec_type: words.ExecType | None = None
    http_method: Annotated[str, msgspec.Meta(max_length=8)] | None = None
    headers: dict[str, str] | None = None
    body_template: str | None = None
    timeout_seconds: Annotated[int, msgspec.Meta(ge=1, le=_DAY)] | None = None
    retry_policy: RetryPolicy | None = None
    max_concurrency: Annotated[int, msgspec.Meta(ge=0, le=2_147_483_647)] | None = None
    concurrency_policy: words.ConcurrencyPolicy | None = None
    misfire_policy: words.MisfirePolicy | None = None
    catchup_limit: Annotated[int, msgspec.Meta(ge=0, le=1000)] | None = None
    callback_method: words.CallbackMethod | None = None
    callback_timeout_sec: Annotated[int, msgspec.Meta(ge=1, le=_MONTH)] | None = None
    status: words.TaskStatus | None = None


class TaskInput(_Optional, frozen=True, kw_only=True):
    """A task, whole. Keys may be written in snake_case or in PascalCase; unknown ones are passed over."""

    name: Name
    cron_expr: CronText
    target_url: Url


class TaskReplacement(TaskInput, frozen=True, kw_only=True):
    """A task to take the place of another; with `version`, only if that is still the stored one."""

    version: Version | None = None


class TaskPatch(_Optional, frozen=True, kw_only=True):
    """A change: what is absent stays. With `version`, only if that is still the stored one."""

    version: Version | None = None
    name: Name | None = None
    cron_expr: CronText | None = None
    target_url: Url | None = None


class Created(msgspec.Struct, frozen=True):
    id: int
    name: str


class Updated(msgspec.Struct, frozen=True):
    updated: bool


class Switched(msgspec.Struct, frozen=True):
    status: words.TaskStatus


class Deleted(msgspec.Struct, frozen=True):
    deleted: bool


class RetryPolicyView(msgspec.Struct, frozen=True):
    max_retries: int
    initial_delay: int | float
    strategy: Strategy
    max_delay: int | float


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """A task, under the keys of the document's answers and under those of its requests."""

    ID: int
    Name: str
    Description: str
    CronExpr: str
    Timezone: str
    ExecType: words.ExecType
    HTTPMethod: str
    TargetURL: str
    HeadersJSON: str
    BodyTemplate: str
    TimeoutSeconds: int
    RetryPolicyJSON: str
    MaxConcurrency: int
    ConcurrencyPolicy: words.ConcurrencyPolicy
    MisfirePolicy: words.MisfirePolicy
    CatchupLimit: int
    CallbackMethod: words.CallbackMethod
    CallbackTimeoutSec: int
    Status: words.TaskStatus
    Version: int
    CreatedAt: Moment
    UpdatedAt: Moment
    id: int
    name: str
    description: str
    cron_expr: str
    timezone: str
    exec_type: words.ExecType
    http_method: str
    target_url: str
    headers: dict[str, str]
    body_template: str
    timeout_seconds: int
    retry_policy: RetryPolicyView
    max_concurrency: int
    concurrency_policy: words.ConcurrencyPolicy
    misfire_policy: words.MisfirePolicy
    catchup_limit: int
    callback_method: words.CallbackMethod
    callback_timeout_sec: int
    status: words.TaskStatus
    version: int
    created_at: Moment
    updated_at: Moment
    next_run_time: Moment | None


def show_task(job: Job) -> TaskView:
    """A task; a retry policy it was never given is the empty text in the document's answer.

    `/api/v2` may have given it a schedule or a target this surface has no words for; then those fields are empty.
    """
    config, schedule = job.target.config, job.schedule
    cron = schedule if isinstance(schedule, CronSchedule) else None
    headers: dict[str, str] = config.get("headers") or {}
    policy = retry_policy_of(job.retry)
    values: dict[str, Any] = {
        "id": job.id,
        "name": job.name,
        "description": job.description,
        "cron_expr": cron.expr if cron else "",
        "timezone": cron.timezone if cron else "UTC",
        "exec_type": words.ExecType(str(config.get("mode", "sync")).upper()),
        "http_method": config.get("method", ""),
        "target_url": config.get("url", ""),
        "body_template": _body_template(config),
        "timeout_seconds": _whole(job.timeouts.total),
        "max_concurrency": job.overlap.max_concurrency,
        "concurrency_policy": words.CONCURRENCY_POLICIES[job.overlap.rule],
        "misfire_policy": words.MISFIRE_POLICIES[job.misfire.rule],
        "catchup_limit": job.misfire.limit,
        "callback_method": callback_method_of(job),
        "callback_timeout_sec": _whole(job.timeouts.callback),
        "status": status_of(job),
        "version": job.version,
        "created_at": moment(job.created_at),
        "updated_at": moment(job.updated_at),
    }
    return TaskView(
        **both(values, TASK_KEYS),
        headers=headers,
        HeadersJSON=encode(headers).decode() if headers else "",
        retry_policy=policy,
        RetryPolicyJSON=encode(policy).decode() if RETRY_POLICY in job.extras else "",
        next_run_time=moment(job.next_fire_at),
    )


def status_of(job: Job) -> words.TaskStatus:
    return words.TaskStatus.ENABLED if job.enabled else words.TaskStatus.DISABLED


def callback_method_of(job: Job) -> words.CallbackMethod:
    return words.CallbackMethod(job.extras.get(CALLBACK_METHOD, words.CallbackMethod.POST))


def _body_template(config: dict[str, Any]) -> str:
    json = config.get("json")
    return config.get("body") or "" if json is None else encode(json).decode()


def retry_policy_of(retry: Retry) -> RetryPolicyView:
    """A policy in the document's words."""
    strategy: Strategy = "exponential" if retry.strategy is RetryStrategy.EXPONENTIAL else "fixed"
    return RetryPolicyView(retry.max_attempts - 1, _seconds(retry.initial_delay), strategy, _seconds(retry.max_delay))


def _seconds(span: timedelta) -> int | float:
    seconds = span.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def _whole(span: timedelta) -> int:
    """Whole seconds; a default from the settings may have less than one, and 0 would say that there is no time."""
    return ceil(span.total_seconds())
