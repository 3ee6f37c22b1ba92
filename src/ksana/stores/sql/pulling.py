"""Items of the queue: enqueued once, handed out to one worker at a time."""

from __future__ import annotations

from collections.abc import Sequence

from ksana.domain.items import SCOPE, Enqueued, Pull, first_of, pulled
from ksana.domain.runs import Run
from ksana.domain.times import to_micros
from ksana.stores.sql.claiming import BY_PRIORITY
from ksana.stores.sql.rows import record_to_row, run_from_row, run_to_row
from ksana.stores.sql.statements import (
    ANSWERS_TO_KEYS,
    DUE_ITEMS,
    DUE_ITEMS_OF_TYPES,
    IDEMPOTENCY,
    PULL_ITEMS,
    RUNS,
)
from ksana.stores.sql.tx import Tx


async def enqueue(tx: Tx, items: Sequence[Enqueued]) -> list[int]:
    """Add items whose key is new; answer for each the run that stands for it."""
    earlier = await _earlier(tx, items)
    runs = [item.run for item in items if _stands_for(item, earlier) == item.run.id]
    await tx.insert(RUNS, [run_to_row(run) for run in runs])
    return [_stands_for(item, earlier) for item in items]


def _stands_for(item: Enqueued, earlier: dict[str, int]) -> int:
    return item.run.id if item.record is None else earlier.get(item.record.key, item.run.id)


async def _earlier(tx: Tx, items: Sequence[Enqueued]) -> dict[str, int]:
    """The runs by which keys were used, in this batch or before."""
    records = {item.record.key: item.record for item in reversed(items) if item.record is not None}
    if not records:
        return {}
    added = await tx.insert_new(IDEMPOTENCY, [record_to_row(record) for record in records.values()])
    if added == len(records):
        return {key: int(record.body) for key, record in records.items()}
    return {key: int(body) for key, body in await tx.rows(ANSWERS_TO_KEYS, scope=SCOPE, keys=list(records))}


async def pull(tx: Tx, pull: Pull) -> list[Run]:
    """Hand out the next due items."""
    due: list[Run] = []
    for priority in BY_PRIORITY:
        wanted = {"queue": pull.queue, "priority": priority.value, "now": to_micros(pull.now), "limit": pull.limit}
        if pull.types:
            rows = await tx.rows(DUE_ITEMS_OF_TYPES, **wanted, types=list(pull.types))
        else:
            rows = await tx.rows(DUE_ITEMS, **wanted)
        due += [run_from_row(row) for row in rows]
    if not (chosen := first_of(due, pull)):
        return []
    await tx.run(
        PULL_ITEMS,
        ids=[run.id for run in chosen],
        holder=pull.holder,
        until=to_micros(pull.until),
        now=to_micros(pull.begun_at),
    )
    return [pulled(run, pull) for run in chosen]
