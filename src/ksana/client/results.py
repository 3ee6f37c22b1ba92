"""What the server answers, as values. A field that a newer server adds is left out, not an error."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

import msgspec

from ksana.domain.outcomes import Verdict
from ksana.domain.policies import MisfireRule, OnUncertain, OverlapRule, RetryStrategy
from ksana.domain.runs import Trigger
from ksana.domain.states import Reason, State
from ksana.domain.steps import When

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
    schedule_words: Words | None = None
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
    paused_until: datetime | None = None
    pause_reason: str = ""


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


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a chain's run. There is no `run_id` until the chain has begun; `artifact` is what it hands on."""

    id: str
    kind: str
    needs: list[str]
    when: When
    run_id: int | None
    state: State
    reason: Reason | None
    attempt: int
    error: str
    artifact: Any = None
    checkpoint: Any = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


class Fire(msgspec.Struct, frozen=True, kw_only=True):
    """One planned instant, or a stretch of them, and what was decided."""

    from_at: datetime
    to_at: datetime
    count: int
    decision: str
    reason: Reason | None
    run_id: int | None
    recorded_at: datetime


class Words(msgspec.Struct, frozen=True):
    """The same in English and in Chinese."""

    en: str
    zh: str


class Lint(msgspec.Struct, frozen=True):
    """Something that may not be what was meant."""

    code: str
    message: Words


class FireAt(msgspec.Struct, frozen=True):
    """One planned instant, on the clocks of its zone, and what a change of clocks does to it."""

    at: datetime
    local: str
    dst: Words | None = None


class Preview(msgspec.Struct, frozen=True):
    """When a schedule would fire, in instants and in words; `lints` tell what about it tends to surprise, and `notes`
    the same in English alone."""

    normalized: str | None
    next: list[datetime]
    notes: list[str]
    words: Words
    lints: list[Lint]
    fires: list[FireAt]


class OperationError(msgspec.Struct, frozen=True):
    """A job or run it could not be done to, and why."""

    id: int
    message: str


class Subject(msgspec.Struct, frozen=True):
    """A job or run it would be done to."""

    id: int
    name: str | None
    state: State | None


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """Something done to many jobs or runs, as far as it was when the server answered. One that was only tried has no
    id, and a `sample` of what it would be done to; `errors` are the first of those that failed."""

    id: str | None
    action: str
    actor: str
    reason: str
    state: Literal["running", "done", "canceled"] | None
    total: int
    done: int
    failed: int
    errors: list[OperationError]
    sample: list[Subject]
    started_at: datetime | None
    ended_at: datetime | None


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A part of a list."""

    items: list[T]
    total: int
    page: int
    page_size: int
