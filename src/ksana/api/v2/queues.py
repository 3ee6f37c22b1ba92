"""Queues that are pulled from: how each stands, what is set for it, and who holds its items."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec

from ksana.api.kit import Call, Route, Scope, Timestamp, timestamp
from ksana.api.services import Services
from ksana.domain.durations import format_duration
from ksana.domain.items import KIND, shown_queue, stored_queue
from ksana.domain.limits import QueueSettings, Rate
from ksana.domain.queries import QueueCounts, RunQuery
from ksana.domain.runs import Run
from ksana.domain.states import State

_MOST_HELD: Final = 1000


class RateView(msgspec.Struct, frozen=True, kw_only=True):
    """At most `count` in so long."""

    count: int
    per: str


class LimitsView(msgspec.Struct, frozen=True, kw_only=True):
    """How many items may be held at once and handed out in a while, in all and of each key; null is no limit."""

    concurrency: int | None
    rate: RateView | None
    key_concurrency: int | None
    key_rate: RateView | None


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """A queue: items that wait, those of them that are due and for how long the oldest has been, items that workers
    hold, and dead letters. `limits` is null while none are set."""

    queue: str
    paused: bool
    reason: str
    queued: int
    due: int
    lag_seconds: float
    held: int
    dead_letters: int
    limits: LimitsView | None


class QueuesView(msgspec.Struct, frozen=True, kw_only=True):
    items: list[QueueView]


class HolderView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker, how many items it holds, and when the first of them will be taken from it unless it says more."""

    holder: str
    items: int
    oldest_until: Timestamp | None


class HoldersView(msgspec.Struct, frozen=True, kw_only=True):
    items: list[HolderView]


async def list_queues(call: Call[None, None]) -> QueuesView:
    """The queues in which something waits, is held or is dead, and those for which something was set."""
    services: Services = call.services
    now, store = services.engine.clock.now(), services.engine.store
    counts = {one.queue: one for one in await store.queue_counts(now)}
    settings = {one.queue: one for one in await store.queue_settings()}
    return QueuesView(
        items=[
            _show(counts.get(queue, QueueCounts(queue=queue)), settings.get(queue), now)
            for queue in sorted(counts.keys() | settings.keys())
        ]
    )


async def holders(call: Call[None, None]) -> HoldersView:
    """Who holds items of a queue, those with the most first; of more than 1,000 items, the newest are looked at."""
    wanted = RunQuery(
        queue=stored_queue(call.text("name")),
        kind=KIND,
        states=frozenset({State.RUNNING}),
        limit=_MOST_HELD,
        counted=False,
    )
    found = await call.services.engine.store.find_runs(wanted)
    return HoldersView(items=_by_holder(found.items))


def _by_holder(runs: Iterable[Run]) -> list[HolderView]:
    held: dict[str, list[Run]] = {}
    for run in runs:
        held.setdefault(run.holder or "", []).append(run)
    found = [
        HolderView(
            holder=holder,
            items=len(items),
            oldest_until=timestamp(
                min((run.deadline_at for run in items if run.deadline_at is not None), default=None)
            ),
        )
        for holder, items in held.items()
    ]
    return sorted(found, key=lambda one: (-one.items, one.holder))


def _show(counts: QueueCounts, settings: QueueSettings | None, now: datetime) -> QueueView:
    oldest = counts.oldest_due_at
    return QueueView(
        queue=shown_queue(counts.queue),
        paused=settings is not None and settings.is_paused,
        reason="" if settings is None else settings.reason,
        queued=counts.queued,
        due=counts.due,
        lag_seconds=0.0 if oldest is None else max(0.0, (now - oldest).total_seconds()),
        held=counts.running,
        dead_letters=counts.dead_letters,
        limits=None if settings is None else _limits(settings),
    )


def _limits(settings: QueueSettings) -> LimitsView | None:
    limits = LimitsView(
        concurrency=settings.concurrency,
        rate=_rate(settings.rate),
        key_concurrency=settings.key_concurrency,
        key_rate=_rate(settings.key_rate),
    )
    return limits if any(msgspec.structs.astuple(limits)) else None


def _rate(rate: Rate | None) -> RateView | None:
    return None if rate is None else RateView(count=rate.count, per=format_duration(rate.per))


def routes() -> list[Route[Any, Any]]:
    every = "/api/v2/queues"
    return [
        Route("GET", every, list_queues, Scope.QUEUE_READ, response=QueuesView, summary="List queues"),
        Route(
            "GET",
            every + "/{name}/holders",
            holders,
            Scope.QUEUE_READ,
            response=HoldersView,
            summary="Who holds items of a queue",
        ),
    ]
