"""How the queues stand that are pulled from, counted by the database."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ksana.domain.items import QUEUES
from ksana.domain.queries import ErrorGroup, QueueCounts
from ksana.domain.times import from_micros, to_micros
from ksana.stores.sql.item_statements import COUNT_DEAD_ITEMS, COUNT_HELD, COUNT_QUEUED, DEAD_BY_ERROR
from ksana.stores.sql.tx import Tx

_ALL = dict(zip(("first", "last"), QUEUES, strict=True))


async def queue_counts(tx: Tx, now: datetime) -> list[QueueCounts]:
    found: dict[str, dict[str, Any]] = {}
    for queue, queued, due, oldest in await tx.rows(COUNT_QUEUED, **_ALL, now=to_micros(now)):
        found[queue] = {"queued": queued, "due": int(due), "oldest_due_at": from_micros(oldest) if due else None}
    for queue, running in await tx.rows(COUNT_HELD, **_ALL):
        found.setdefault(queue, {})["running"] = running
    for queue, dead in await tx.rows(COUNT_DEAD_ITEMS, **_ALL):
        found.setdefault(queue, {})["dead_letters"] = dead
    return [QueueCounts(queue=queue, **counted) for queue, counted in sorted(found.items())]


async def dead_by_error(tx: Tx, queue: str | None, limit: int) -> list[ErrorGroup]:
    # Names are printable, so that between one and the same with a space behind it there is no other.
    span = _ALL if queue is None else {"first": queue, "last": f"{queue} "}
    return [
        ErrorGroup(
            queue=queue,
            error=error,
            count=count,
            first_at=from_micros(first),
            last_at=from_micros(last),
            run_id=run_id,
        )
        for queue, error, count, first, last, run_id in await tx.rows(DEAD_BY_ERROR, **span, limit=limit)
    ]
