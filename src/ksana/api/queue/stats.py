"""How the queues stand, in a few figures."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ksana.api.kit import Call, Route, Scope
from ksana.api.services import Services
from ksana.domain.items import shown_queue
from ksana.domain.queries import QueueCounts


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """A queue: what waits, what of it is due and since when, what workers hold, what is dead."""

    queue: str
    queued: int
    due: int
    lag_seconds: float
    running: int
    dead_letters: int


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """All queues together, and each of them. The rates are of this node, since it started."""

    jobs_due_count: int
    jobs_lag_seconds: float
    job_success_rate: float
    job_retry_rate: float
    dead_letter_count: int
    queues: list[QueueView]


async def stats(call: Call[None, None]) -> Stats:
    """The figures of the queue."""
    services: Services = call.services
    now = services.engine.clock.now()
    queues = [_show(one, now) for one in await services.engine.store.queue_counts(now)]
    rates = services.queue_rates()
    return Stats(
        jobs_due_count=sum(queue.due for queue in queues),
        jobs_lag_seconds=max((queue.lag_seconds for queue in queues), default=0.0),
        job_success_rate=rates.success,
        job_retry_rate=rates.retry,
        dead_letter_count=sum(queue.dead_letters for queue in queues),
        queues=queues,
    )


def _show(counted: QueueCounts, now: datetime) -> QueueView:
    oldest = counted.oldest_due_at
    return QueueView(
        queue=shown_queue(counted.queue),
        queued=counted.queued,
        due=counted.due,
        lag_seconds=0.0 if oldest is None else max(0.0, (now - oldest).total_seconds()),
        running=counted.running,
        dead_letters=counted.dead_letters,
    )


def routes() -> list[Route[Any, Any]]:
    path = "/scheduler/stats"
    return [Route("GET", path, stats, Scope.QUEUE_READ, response=Stats, summary="How the queues stand")]
