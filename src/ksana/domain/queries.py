"""What one may ask a store for: filters, sorting and paging as values, the same for every store."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from ksana.domain.states import Reason, State

T = TypeVar("T")


class JobSort(StrEnum):
    ID = "id"
    NAME = "name"
    UPDATED = "updated_at"
    NEXT = "next_fire_at"


class RunSort(StrEnum):
    ID = "id"
    DUE = "due_at"
    ENDED = "ended_at"


class JobQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs, in which order, which page. `name` matches any part of the name, without regard to case."""

    surface: str | None = None
    name: str = ""
    exact_name: str | None = None
    ref: str | None = None
    kind: str | None = None
    tag: str | None = None
    enabled: bool | None = None
    sort: JobSort = JobSort.ID
    descending: bool = False
    offset: int = 0
    limit: int = 50


class RunQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs, in which order, which page.

    `since` and `until` bound the instant a run ended, or was due while it has not ended, so that a search for what
    failed today finds what ended today. `planned_since` and `planned_until`, both included, bound the instant it stands
    for. `reasons` narrows down, None among them standing for no reason. `before_id` continues a newest-first list
    without counting from the start, `after_id` one that begins with the oldest. What is not `counted` may have a total
    of no more than is shown. With `is_child` False, runs that are children of others are left out. `queue` is the name
    as it is stored, `subject` what items are about; `error` matches any part of the error, as it is written.
    """

    surface: str | None = None
    job_id: int | None = None
    job_name: str = ""
    parent_id: int | None = None
    is_child: bool | None = None
    states: frozenset[State] = frozenset()
    reasons: frozenset[Reason | None] = frozenset()
    kind: str | None = None
    tag: str | None = None
    queue: str | None = None
    steps: frozenset[str] = frozenset()
    holder: str | None = None
    subject: str | None = None
    error: str = ""
    since: datetime | None = None
    until: datetime | None = None
    planned_since: datetime | None = None
    planned_until: datetime | None = None
    before_id: int | None = None
    after_id: int | None = None
    counted: bool = True
    sort: RunSort = RunSort.ID
    descending: bool = True
    offset: int = 0
    limit: int = 50


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page and the number of all that match."""

    items: list[T]
    total: int


class FireRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a job's fire log: a planned instant (or a stretch of them), what was decided and why."""

    job_id: int
    from_at: datetime
    to_at: datetime
    count: int
    decision: str
    reason: Reason | None
    run_id: int | None
    recorded_at: datetime


class Minute(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs ended in one minute, by how they ended and what kind they were, and how long they took in all."""

    minute_at: datetime
    kind: str
    state: State
    count: int
    busy_ms: int
    late_ms: int


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is, for gauges. Jobs that are not deleted are counted by surface and whether they are enabled."""

    jobs: dict[tuple[str, bool], int]
    unfinished: dict[State, int]
    due: int
    oldest_due_at: datetime | None
    dead_letters: int


class QueueCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How a queue that is pulled from stands: items that wait for a worker, those of them that are due and the oldest
    of these, items that a worker holds, and dead letters."""

    queue: str
    queued: int = 0
    due: int = 0
    oldest_due_at: datetime | None = None
    running: int = 0
    dead_letters: int = 0


class ErrorGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of one queue that ended by the same error: how many, since when and until when, and the newest."""

    queue: str
    error: str
    count: int
    first_at: datetime
    last_at: datetime
    run_id: int
