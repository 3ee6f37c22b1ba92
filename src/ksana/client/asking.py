"""What callers may say, and how it is written on the wire: spans, instants, schedules, targets."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypedDict

from ksana.client.results import Job, PriorityName, Run
from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.times import parse_instant

Span = str | timedelta
Instant = str | datetime
JobRef = int | Job
RunRef = int | Run


class RetryRules(TypedDict, total=False):
    max_attempts: int
    strategy: Literal["fixed", "exponential"]
    initial_delay: Span
    multiplier: float
    max_delay: Span


class OverlapRules(TypedDict, total=False):
    rule: Literal["queue", "skip", "parallel"]
    max_concurrency: int


class MisfireRules(TypedDict, total=False):
    rule: Literal["skip", "fire_once", "catch_up"]
    limit: int


class TimeoutRules(TypedDict, total=False):
    total: Span
    connect: Span
    callback: Span


class JobRules(TypedDict, total=False):
    """What a job may be told besides what and when. What is absent is the server's default, or stays."""

    description: str
    tags: Sequence[str]
    enabled: bool
    queue: str
    priority: PriorityName
    retry: RetryRules
    overlap: OverlapRules
    misfire: MisfireRules
    timeouts: TimeoutRules
    on_uncertain: Literal["retry", "fail"]


class ScheduleWords(TypedDict, total=False):
    """When: one of `every`, `cron` and `at`; `tz` is for cron, the bounds and the jitter not for `at`."""

    every: Span
    cron: str
    at: Instant
    tz: str
    start_at: Instant
    end_at: Instant
    jitter: Span


class JobWords(JobRules, ScheduleWords, total=False):
    """All that may be said of a job besides its name and target."""


_KINDS = {"every": ("every", "every"), "cron": ("cron", "expr"), "at": ("once", "run_at")}
_NAMES = {"tz": "timezone"}


def schedule_of(words: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schedule these words ask for, taken from among others; None if they ask for none."""
    said = {name: words[name] for name in ScheduleWords.__optional_keys__ if words.get(name) is not None}
    kinds = [name for name in _KINDS if name in said]
    if not said:
        return None
    if len(kinds) != 1:
        raise InvalidArgument.of("schedule", "say one of every, cron and at")
    kind, field = _KINDS[kinds[0]]
    rest = {_NAMES.get(name, name): written(value) for name, value in said.items() if name != kinds[0]}
    return {"kind": kind, field: written(said[kinds[0]]), **rest}


def refuse_unknown(words: Mapping[str, Any], known: frozenset[str]) -> None:
    """A word nobody knows would be a wish that is not heard."""
    if unknown := sorted(words.keys() - known):
        raise InvalidArgument(Problem(name, f"is none of {', '.join(sorted(known))}") for name in unknown)


def rules_of(words: Mapping[str, Any]) -> dict[str, Any]:
    """The rules among these words."""
    return {name: written(words[name]) for name in JobRules.__optional_keys__ if words.get(name) is not None}


def target_of(target: Mapping[str, Any] | None, http: str | None, json: Any, headers: Any) -> dict[str, Any] | None:
    """The target, given whole or as `POST https://…`."""
    if http is None:
        if json is not None or headers is not None:
            raise InvalidArgument.of("http", 'json and headers go with it: http="POST https://…"')
        return None if target is None else dict(target)
    if target is not None:
        raise InvalidArgument.of("target", "say either target or http")
    method, _, url = http.strip().partition(" ")
    config = {"method": method, "url": url.strip(), "json": json, "headers": headers}
    if not config["url"]:
        raise InvalidArgument.of("http", f'say the method and the address: "POST {http}"')
    return {"kind": "http", "config": {name: value for name, value in config.items() if value is not None}}


def written(value: Any) -> Any:
    """Spans and instants as text, wherever they stand."""
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, Mapping):
        return {name: written(inner) for name, inner in value.items()}
    return value


def instant_text(instant: Instant) -> str:
    if isinstance(instant, str):
        return instant
    if instant.tzinfo is None:
        raise InvalidArgument.of("instant", f"{instant} has no zone; say datetime(…, tzinfo=UTC)")
    return instant.isoformat()


def moment(said: Instant | timedelta | None, field: str) -> str | None:
    """An instant, or how long ago: `"24h"`."""
    if said is None:
        return None
    if isinstance(said, str) and "T" in said.upper():
        return parse_instant(said, field).isoformat()
    if isinstance(said, datetime):
        return instant_text(said)
    ago = parse_duration(said, field) if isinstance(said, str) else said
    return (datetime.now(UTC) - ago).isoformat()


def later(said: Instant | timedelta | None) -> str | None:
    """An instant, or how long from now: `"2h"`, which the server counts by its own clock."""
    if isinstance(said, timedelta):
        return format_duration(said)
    return instant_text(said) if isinstance(said, datetime) else said


def seconds(span: Span | float, field: str) -> float:
    if isinstance(span, str):
        span = parse_duration(span, field)
    return span.total_seconds() if isinstance(span, timedelta) else float(span)


def id_of(ref: int | Job | Run) -> int:
    return ref if isinstance(ref, int) else ref.id


def key_header(key: str | None) -> dict[str, str]:
    """The same request is done once, however often it is sent."""
    return {"Idempotency-Key": key or uuid.uuid4().hex}
