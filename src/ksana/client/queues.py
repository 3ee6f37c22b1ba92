"""Queues from outside: how they stand, what lies in them, and the dead letters that wait for a person."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from ksana.client.calls import Call, Pages, Repeat, json_body, numbered, query_of
from ksana.client.queue import Item
from ksana.client.queue_settings import limit, pause, resume, settings
from ksana.client.results import Page
from ksana.client.rooms import Listing, Room, Verb
from ksana.client.wires import Wire

W = TypeVar("W", bound=Wire)

_DEAD: Final = "/scheduler/dead-letters"
_read_page: Final = msgspec.json.Decoder(Page[Item]).decode


class QueueStats(msgspec.Struct, frozen=True, kw_only=True):
    """How one queue stands."""

    queue: str
    queued: int
    due: int
    running: int
    lag_seconds: float
    dead_letters: int


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """How all queues stand, and how items fared on the server since its start."""

    jobs_due_count: int
    jobs_lag_seconds: float
    job_success_rate: float
    job_retry_rate: float
    dead_letter_count: int
    queues: list[QueueStats]


class ErrorGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of one queue that say the same error; `job_id` is the newest of them."""

    queue: str
    error: str
    count: int
    first_at: datetime
    last_at: datetime
    job_id: str


class Redriven(msgspec.Struct, frozen=True, kw_only=True):
    """What was put back, or would be; `results` has a status for each."""

    dry_run: bool
    count: int
    results: list[dict[str, Any]] = []


class _Groups(msgspec.Struct):
    groups: list[ErrorGroup]


_read_stats: Final = msgspec.json.Decoder(Stats).decode
_read_groups: Final = msgspec.json.Decoder(_Groups).decode
_read_redriven: Final = msgspec.json.Decoder(Redriven).decode


def stats() -> Call[Stats]:
    """How the queues stand."""
    return Call(method="GET", path="/scheduler/stats", decode=_read_stats)


def items(
    *, queue: str | None = None, status: str | None = None, worker: str | None = None, page_size: int = 100
) -> Pages[Item]:
    """Items, page after page."""
    return numbered("/scheduler/jobs", _items, query_of(queue=queue, status=status, worker_id=worker), page_size)


def dead_letters(*, queue: str | None = None, error: str | None = None, page_size: int = 100) -> Pages[Item]:
    """Dead letters, page after page; `error` matches any part of theirs."""
    return numbered(_DEAD, _items, query_of(queue=queue, error=error), page_size)


def groups(*, queue: str | None = None, limit: int | None = None) -> Call[list[ErrorGroup]]:
    """Dead letters by what went wrong, the largest groups first: fifty, or up to 200 if `limit` says so."""
    query = query_of(queue=queue, limit=limit)
    return Call(method="GET", path=f"{_DEAD}/groups", query=query, decode=lambda data: _read_groups(data).groups)


def redrive(
    *,
    ids: Sequence[str] | None = None,
    queue: str | None = None,
    error: str | None = None,
    limit: int | None = None,
    rate: float | None = None,
    dry_run: bool = False,
) -> Call[Redriven]:
    """Put dead letters back with all their attempts before them: by `ids`, or the oldest `limit` of a queue or error.
    With `rate` they come due one after the other, so many a second."""
    fields = {
        "job_ids": None if ids is None else list(ids),
        "queue": queue,
        "error": error,
        "limit": limit,
        "rate_per_sec": rate,
        "dry_run": dry_run or None,
    }
    return Call(
        method="POST",
        path=f"{_DEAD}/redrive",
        decode=_read_redriven,
        body=json_body(fields),
        repeat=Repeat.IF_NOT_DONE,
    )


class Queues(Room[W]):
    """Queues, looked at from outside."""

    stats = Verb(stats)
    items = Listing(items)
    dead_letters = Listing(dead_letters)
    groups = Verb(groups)
    redrive = Verb(redrive)
    settings = Verb(settings)
    pause = Verb(pause)
    resume = Verb(resume)
    limit = Verb(limit)


def _items(data: bytes) -> list[Item]:
    return _read_page(data).items
