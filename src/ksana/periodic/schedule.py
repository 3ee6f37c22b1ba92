"""The values of this room: a schedule as code registers it, its state as Redis keeps it, and the job it leads to."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec


class JobPriority(StrEnum):
    """How urgent a job is to its queue."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A job to enqueue whenever a cron expression fires. `cron` has five fields or is an alias such as `@daily`;
    `job` is the name under which the workers know what to do; `payload` is JSON."""

    id: str = ""
    cron: str
    job: str
    payload: bytes = b""
    priority: JobPriority = JobPriority.NORMAL
    timezone: str = "UTC"
    enabled: bool = True
    description: str = ""


class ScheduleState(msgspec.Struct, frozen=True, kw_only=True):
    """What Redis knows of a schedule; None and "" where there was nothing yet."""

    id: str
    last_run: datetime | None = None
    next_run: datetime | None = None
    run_count: int = 0
    last_error: str = ""
    last_success: datetime | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What is put into the queue. `id` is the same whenever the same slot of a schedule is enqueued again, so a queue
    that keeps an id once keeps a slot once."""

    id: str
    name: str
    payload: bytes
    priority: JobPriority
    metadata: dict[str, str]
