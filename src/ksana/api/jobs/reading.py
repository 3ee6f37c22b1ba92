"""From a request about a timer to what the engine stores. Everything that is wrong is said at once."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from ksana.api.jobs.schedules import read_schedule
from ksana.api.jobs.shapes import MOST_RETRIES, HttpShape, JobShape
from ksana.api.jobs.spans import read_span
from ksana.api.jobs.words import renamed
from ksana.api.services import JobDefaults
from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.jobs import Job, JobSpec, TargetSpec
from ksana.domain.policies import Misfire, MisfireRule, Overlap, OverlapRule, Retry
from ksana.domain.standing import INVALID

Check = Callable[[JobSpec], object]
"""Raises InvalidArgument if a job cannot be stored; asked only once something is wrong, to tell all of it."""

DEFAULT_RETRIES: Final = 3
METHODS: Final = ("GET", "POST")

# It stands in paths and in headers, where little else needs no escaping.
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~:@-]{0,127}")
_replace: Final = msgspec.structs.replace


def read_new_job(body: JobShape, defaults: JobDefaults, now: datetime, check: Check) -> JobSpec:
    """The job a request asks for."""
    problems: list[Problem] = []
    blank = _blank(_ref(body.id, problems), defaults)
    if body.schedule is None:
        problems.append(Problem("schedule", 'is required; for example {"kind": "every", "every": "5m"}'))
    return _checked(_said(blank, body, defaults, now, problems), problems, check)


def read_change(body: JobShape, job: Job, defaults: JobDefaults, now: datetime, check: Check) -> JobSpec:
    """The job as a change would have it: what is absent or null stays, what is empty is the default again."""
    problems: list[Problem] = []
    if body.id and body.id != job.ref:
        problems.append(Problem("id", "cannot be changed; leave it out"))
    return _checked(_said(job, body, defaults, now, problems), problems, check)


def _ref(id: str | None, problems: list[Problem]) -> str:
    if id and _ID.fullmatch(id):
        return id
    if id:
        problems.append(Problem("id", "use up to 128 letters, digits and . _ ~ : @ -, with a letter or digit in front"))
    return uuid.uuid4().hex


def _blank(ref: str, defaults: JobDefaults) -> JobSpec:
    """A timer that says nothing yet. One run at a time, and nothing is made up for: both as the document has it."""
    return JobSpec(
        name=ref,
        ref=ref,
        target=TargetSpec("http", {}),
        retry=_retry(defaults),
        timeouts=defaults.timeouts,
        overlap=Overlap(OverlapRule.SKIP, 1),
        misfire=Misfire(MisfireRule.SKIP),
        on_uncertain=defaults.on_uncertain,
    )


def _retry(defaults: JobDefaults) -> Retry:
    retries = DEFAULT_RETRIES if defaults.max_retries is None else defaults.max_retries
    return Retry(
        1 + min(retries, MOST_RETRIES), initial_delay=defaults.retry.initial_delay, max_delay=defaults.retry.max_delay
    )


def _said(spec: JobSpec, body: JobShape, defaults: JobDefaults, now: datetime, problems: list[Problem]) -> JobSpec:
    extras = {name: text for name, text in spec.extras.items() if name != INVALID}
    fields: dict[str, Any] = {"extras": extras}
    if body.name is not None:
        fields["name"] = body.name or spec.ref
    if body.enabled is not None:
        fields["enabled"] = body.enabled
    if body.type:
        _require_http(body.type, problems)
    if body.http is not None:
        fields["target"] = _target(body.http, spec.target, problems)
    if body.schedule is not None:
        fields["schedule"] = read_schedule(body.schedule, spec, extras, defaults, now, problems)
    if body.timeout is not None:
        total = read_span(body.timeout, "timeout", extras, problems, default=defaults.timeouts.total)
        fields["timeouts"] = _replace(spec.timeouts, total=total)
    retry = spec.retry
    if body.max_retries is not None:
        retry = _replace(retry, max_attempts=1 + body.max_retries)
    if body.retry_backoff is not None:
        rest = read_span(body.retry_backoff, "retry_backoff", extras, problems, default=defaults.retry.initial_delay)
        retry = _replace(retry, initial_delay=rest)
    return _replace(spec, **fields, retry=retry)


def _require_http(kind: str, problems: list[Problem]) -> None:
    if kind != "http":
        problems.append(Problem("type", 'must be "http"; other targets are created by /api/v2/jobs'))


def _target(shape: HttpShape, old: TargetSpec, problems: list[Problem]) -> TargetSpec:
    """The call with what is said of it; headers are replaced as a whole."""
    config = dict(old.config) if old.kind == "http" else {}
    if shape.method is not None:
        config["method"] = _method(shape.method, problems)
    if shape.url is not None:
        config["url"] = shape.url
    if shape.headers is not None:
        config["headers"] = shape.headers
    if shape.body is not None:
        config.pop("json", None)
        config["body"] = shape.body or None
    return TargetSpec("http", config)


def _method(method: str, problems: list[Problem]) -> str:
    if method and method.upper() not in METHODS:
        problems.append(Problem("http.method", f"must be one of {', '.join(METHODS)}"))
        return "POST"
    return method.upper() or "POST"


def _checked(spec: JobSpec, problems: list[Problem], check: Check) -> JobSpec:
    if not problems:
        return spec
    try:
        check(spec)
    except InvalidArgument as error:
        problems += map(renamed, error.problems)
    raise InvalidArgument(problems)
