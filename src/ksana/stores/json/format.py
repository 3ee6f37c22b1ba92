"""How a job stands in `jobs.json`: the documented fields, and under `core` what they cannot say.

Whoever edits the file by hand edits the documented fields; `entries.py` reads them back.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, TypeVar
from zlib import crc32

import msgspec

from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.policies import Misfire, MisfireRule, OnUncertain, Overlap, OverlapRule, Priority, Retry, Timeouts
from ksana.domain.runs import DEFAULT_QUEUE
from ksana.domain.schedules import Every, Once, Schedule
from ksana.domain.standing import Standing
from ksana.domain.times import format_instant

SURFACE = "jobs"
KIND = "http"
OVERLAP = Overlap(OverlapRule.SKIP, 1)
MISFIRE = Misfire(MisfireRule.SKIP)
RETRY = Retry()
TIMEOUTS = Timeouts()
MAX_RETRIES = 3

T = TypeVar("T")

_replace = msgspec.structs.replace
_encode = msgspec.json.Encoder().encode
# Editors and tools may write the same object in another order.
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_HTTP = ("method", "url", "headers", "body")
# What is beside the documented fields in the config of every timer.
_USUAL = {"mode": "sync"}


class Core(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the documented fields do not say of a job. What is None is as it is for every timer.

    `seal` is a sum over the schedule as it was shown: where it no longer fits, somebody has edited the schedule.
    """

    id: int
    version: int = 1
    seal: str
    enabled: bool = True
    origin_at: datetime | None = None
    end_at: datetime | None = None
    next_slot_at: datetime | None = None
    next_fire_at: datetime | None = None
    created_at: datetime
    updated_at: datetime
    paused_at: datetime | None = None
    paused_until: datetime | None = None
    pause_reason: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    queue: str = DEFAULT_QUEUE
    priority: Priority = Priority.NORMAL
    retry: Retry | None = None
    overlap: Overlap | None = None
    misfire: Misfire | None = None
    timeouts: Timeouts | None = None
    on_uncertain: OnUncertain | None = OnUncertain.RETRY
    awaits_callback: bool = False
    extras: dict[str, Any] = {}
    config: dict[str, Any] | None = None
    has_body: bool = True


# What is the same in a job and in its core.
_SAME = (
    *("id", "version", "enabled", "next_slot_at", "created_at", "updated_at", "paused_at", "description", "tags"),
    *("paused_until", "pause_reason", "queue", "priority", "on_uncertain", "awaits_callback", "extras"),
)


def is_documented(job: Job) -> bool:
    """Whether the documented fields can show this job: a scheduled HTTP call that was made on that surface."""
    config = job.target.config
    return (
        job.surface == SURFACE
        and job.target.kind == KIND
        and job.ref != ""
        and not job.unique_name
        and job.schedule is not None
        and (job.next_slot_at is None) == (job.next_fire_at is None)
        and "json" not in config
        and isinstance(config.get("method"), str)
        and isinstance(config.get("url"), str)
        and isinstance(config.get("headers"), dict)
        and isinstance(config.get("body", ""), str)
    )


def core_of(job: Job) -> Core:
    config, schedule = job.target.config, job.schedule
    assert schedule is not None
    rest = {name: value for name, value in config.items() if name not in _HTTP}
    # How often and how long is said by the documented fields; only what stands beside it is kept here.
    retry = _replace(job.retry, max_attempts=1, initial_delay=RETRY.initial_delay)
    timeouts = _replace(job.timeouts, total=TIMEOUTS.total)
    return Core(
        **{name: getattr(job, name) for name in _SAME},
        seal=seal_of(shown_schedule(schedule, job.extras)),
        origin_at=schedule.origin_at if isinstance(schedule, Every) else None,
        end_at=None if isinstance(schedule, Once) else schedule.end_at,
        next_fire_at=None if job.next_fire_at == job.next_slot_at else job.next_fire_at,
        retry=_unless(retry, RETRY),
        overlap=_unless(job.overlap, OVERLAP),
        misfire=_unless(job.misfire, MISFIRE),
        timeouts=_unless(timeouts, TIMEOUTS),
        config=_unless(rest, _USUAL),
        has_body="body" in config,
    )


def _unless(value: T, usual: T) -> T | None:
    return None if value == usual else value


def seal_of(schedule: dict[str, str]) -> str:
    return f"{crc32(_encode_sorted(schedule)):08x}"


def shown(job: Job, standing: Standing) -> dict[str, Any]:
    """The documented fields of a job, just as its surface shows them."""
    config = job.target.config
    assert job.schedule is not None
    return {
        "id": job.ref,
        "name": job.name,
        "enabled": job.enabled,
        "type": KIND,
        "http": {
            "method": config["method"],
            "url": config["url"],
            "headers": config["headers"],
            "body": config.get("body", ""),
        },
        "schedule": shown_schedule(job.schedule, job.extras),
        "timeout": shown_span(job.extras, "timeout", job.timeouts.total),
        "max_retries": job.retry.max_attempts - 1,
        "retry_backoff": shown_span(job.extras, "retry_backoff", job.retry.initial_delay),
        "last_run_at": shown_instant(standing.last_run_at),
        "next_run_at": shown_instant(standing.next_run_at),
        "last_status": standing.last_status,
        "last_error": standing.last_error,
    }


def shown_schedule(schedule: Schedule, extras: dict[str, Any]) -> dict[str, str]:
    if isinstance(schedule, Once):
        return {"kind": "once", "run_at": exact_instant(schedule.run_at)}
    shown = (
        {"kind": "every", "every": shown_span(extras, "every", schedule.every)}
        if isinstance(schedule, Every)
        else {"kind": "cron", "expr": schedule.expr, "timezone": schedule.timezone}
    )
    jitter = shown_span(extras, "jitter", schedule.jitter)
    return {**shown, "start_at": exact_instant(schedule.start_at), "jitter": jitter}


def shown_span(extras: dict[str, Any], name: str, span: timedelta) -> str:
    """A span as somebody wrote it, as long as it still is that."""
    text = extras.get(name, "")
    return text if text and parse_duration(text) == span else format_duration(span)


def shown_instant(instant: datetime | None) -> str:
    """An instant the service chose: to the second; the exact one is in `core`."""
    return "" if instant is None else format_instant(instant, "seconds")


def exact_instant(instant: datetime | None) -> str:
    """An instant somebody gave, with the fraction it had."""
    if instant is None or not instant.microsecond:
        return shown_instant(instant)
    return format_instant(instant, "micros").removesuffix("Z").rstrip("0") + "Z"


def entry(fields: dict[str, Any], core: Core | None = None) -> bytes:
    """A job in the file: one field a line, for people, and behind them in one line what is not for them."""
    lines = [b'"%s": %s' % (name.encode(), _encode(value)) for name, value in fields.items()]
    if core is not None:
        lines.append(b'"core": %s' % _encode(core))
    return b"{\n      %s\n    }" % b",\n      ".join(lines)


def target_of(core: Core | None, http: dict[str, Any]) -> TargetSpec:
    """The target that the `http` of an entry and its core say."""
    config = dict(http)
    if config["body"] == "" and (core is None or not core.has_body):
        del config["body"]
    return TargetSpec(KIND, {**config, **(_USUAL if core is None or core.config is None else core.config)})
