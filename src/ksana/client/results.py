"""What the server answers, as values. A field that a newer server adds is left out, not an error."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

import msgspec

from ksana.domain.outcomes import Verdict
from ksana.domain.policies import MisfireRule, OnUncertain, OverlapRule, RetryStrategy
from ksana.domain.runs import Trigger
from ksana.domain.states import Reason, State

T = TypeVar("T")
PriorityName = Literal["low", "normal", "high"]


class Progress(msgspec.Struct, frozen=True):
    """How far a run has come, as its target last said."""

    fraction: float | None
    message: str
    reported_at: datetime


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run, as it stood when the server answered."""

    id: int
    job_id: int | None
    job_name: str | None
    surface: str
    kind: str
    queue: str
    trigger: Trigger
    planned_at: datetime
    state: State
    reason: Reason | None
    attempt: int
    failures: int
    reclaims: int
    fence: int
    priority: PriorityName
    due_at: datetime
    deadline_at: datetime | None
    node_id: int | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    duration_ms: int | None
    error: str
    progress: Progress | None = None
    parent_id: int | None = None
    step: str | None = None
    input: Any = None

    @property
    def is_over(self) -> bool:
        return self.state.is_final

    @property
    def ok(self) -> bool:
        """Whether it ended well."""
        return self.state is State.SUCCESS


class Once(msgspec.Struct, frozen=True, tag="once", tag_field="kind"):
    """One slot."""

    run_at: datetime


class Every(msgspec.Struct, frozen=True, tag="every", tag_field="kind"):
    """A slot every so often."""

    every: str
    origin_at: datetime
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter: str = "0s"


class Cron(msgspec.Struct, frozen=True, tag="cron", tag_field="kind"):
    """A slot whenever an expression fires."""

    expr: str
    timezone: str
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter: str = "0s"


class Target(msgspec.Struct, frozen=True):
    """What a run calls."""

    kind: str
    config: dict[str, Any]


class Retry(msgspec.Struct, frozen=True):
    """How often, and after which pauses."""

    max_attempts: int
    strategy: RetryStrategy
    initial_delay: str
    multiplier: float
    max_delay: str


class Overlap(msgspec.Struct, frozen=True):
    """What happens when it is still running."""

    rule: OverlapRule
    max_concurrency: int


class Misfire(msgspec.Struct, frozen=True):
    """What happens when nobody was there in time."""

    rule: MisfireRule
    limit: int


class Timeouts(msgspec.Struct, frozen=True):
    """How long an attempt may take."""

    total: str
    connect: str
    callback: str


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job, as it stood when the server answered."""

    id: int
    surface: str
    ref: str
    name: str
    description: str
    tags: list[str]
    enabled: bool
    version: int
    target: Target
    schedule: Once | Every | Cron | None
    queue: str
    priority: PriorityName
    retry: Retry
    overlap: Overlap
    misfire: Misfire
    timeouts: Timeouts
    on_uncertain: OnUncertain | None
    created_at: datetime
    updated_at: datetime
    paused_at: datetime | None
    next_slot_at: datetime | None
    next_fire_at: datetime | None
    last_run: Run | None = None


class Body(msgspec.Struct, frozen=True):
    """A body as text, or in base64 where it is no text."""

    text: str | None
    base64: str | None
    bytes: int


class Sent(msgspec.Struct, frozen=True):
    """What an attempt sent."""

    line: str
    headers: dict[str, str]
    body: Body


class Received(msgspec.Struct, frozen=True):
    """What came back."""

    code: int | None
    headers: dict[str, str]
    body: Body
    truncated: bool


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try at a run."""

    number: int
    fence: int
    node_id: int | None
    started_at: datetime
    ended_at: datetime
    duration_ms: int
    verdict: Verdict
    timed_out: bool
    code: int | None
    error: str
    result: Any = None
    request: Sent | None = None
    response: Received | None = None


class Preview(msgspec.Struct, frozen=True):
    """When a schedule would fire; `notes` tell what about it tends to surprise."""

    normalized: str | None
    next: list[datetime]
    notes: list[str]


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A part of a list."""

    items: list[T]
    total: int
    page: int
    page_size: int
