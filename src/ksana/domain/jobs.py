"""A job says what to do and when: a target, a schedule (or none) and policies. It is versioned."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ksana.domain.policies import Misfire, OnUncertain, Overlap, Priority, Retry, Timeouts
from ksana.domain.runs import DEFAULT_QUEUE
from ksana.domain.schedules import Schedule


class TargetSpec(msgspec.Struct, frozen=True):
    """Which target carries the job out, and what it is told."""

    kind: str
    config: dict[str, Any] = {}


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for: all of a job that is theirs to say. `ref` is the id a surface shows for the number, and
    no other job of the surface has the same. With `unique_name` that holds for the name: the ref then follows it, and
    the surface shows the number.

    `on_uncertain` is None for a job that leaves it to the node which finds its run without a worker. `extras` is what
    the surface keeps with the job for itself; the core does not read it.
    """

    name: str
    target: TargetSpec
    ref: str = ""
    unique_name: bool = False
    description: str = ""
    tags: tuple[str, ...] = ()
    enabled: bool = True
    schedule: Schedule | None = None
    queue: str = DEFAULT_QUEUE
    priority: Priority = Priority.NORMAL
    retry: Retry = Retry()
    overlap: Overlap = Overlap()
    misfire: Misfire = Misfire()
    timeouts: Timeouts = Timeouts()
    on_uncertain: OnUncertain | None = OnUncertain.RETRY
    extras: dict[str, Any] = {}


class Job(JobSpec, frozen=True, kw_only=True):
    """What to do, when, and how to behave, as it is stored.

    `next_slot_at` is the planned instant on the grid, `next_fire_at` the same with its jitter; both are None when
    nothing more is planned. `awaits_callback` is what the target says of its config. A pause may have a reason, and an
    instant at which it ends by itself.
    """

    id: int
    surface: str
    version: int = 1
    awaits_callback: bool = False
    paused_at: datetime | None = None
    paused_until: datetime | None = None
    pause_reason: str = ""
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None = None
    next_slot_at: datetime | None = None
    next_fire_at: datetime | None = None

    @property
    def shown_id(self) -> str:
        """The id by which its surface knows the job."""
        return self.ref if self.ref and not self.unique_name else str(self.id)

    @property
    def resumes_at(self) -> datetime | None:
        """When its pause ends by itself."""
        return None if self.enabled or self.deleted_at is not None else self.paused_until
