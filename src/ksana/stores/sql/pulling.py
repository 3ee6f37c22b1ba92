"""Items of the queue: enqueued once, handed out to one worker at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from ksana.domain.handing_out import Pulled
from ksana.domain.items import HEAD_STARTS, SCOPE, Enqueued, Pull, PullOrder, first_of, pulled
from ksana.domain.policies import Priority
from ksana.domain.times import to_micros
from ksana.stores.sql.due_items import DueItems
from ksana.stores.sql.handing_out import hand, hand_out
from ksana.stores.sql.item_statements import PULL_FREE_ITEMS, PULL_FREE_ITEMS_OF_TYPES, head_start_of
from ksana.stores.sql.limits import Limits, lock_limits, read_settings
from ksana.stores.sql.rows import record_to_row
from ksana.stores.sql.run_rows import item_to_row, runs_from_rows
from ksana.stores.sql.statements import ANSWERS_TO_KEYS
from ksana.stores.sql.tables import FRESH_ITEMS, IDEMPOTENCY
from ksana.stores.sql.tx import Tx

_NO_TIME = timedelta(0)
_MICROSECOND = timedelta(microseconds=1)


async def enqueue(tx: Tx, items: Sequence[Enqueued]) -> list[int]:
    """Add items whose key is new; answer for each the run that stands for it."""
    earlier = await _earlier(tx, items)
    runs = [item.run for item in items if _stands_for(item, earlier) == item.run.id]
    await tx.insert(FRESH_ITEMS, [item_to_row(run) for run in runs])
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


async def pull_free(tx: Tx, pull: Pull) -> Pulled | None:
    """Hand out the next due items in one statement; None if something governs them, and then nothing is changed."""
    starts = HEAD_STARTS if pull.order is PullOrder.AGE else {}
    rows = await tx.rows(
        PULL_FREE_ITEMS_OF_TYPES if pull.types else PULL_FREE_ITEMS,
        queue=pull.queue,
        now=to_micros(pull.now),
        limit=pull.limit,
        holder=pull.holder,
        until=to_micros(pull.until),
        at=to_micros(pull.begun_at),
        types=list(pull.types),
        **{head_start_of(one): starts.get(one, _NO_TIME) // _MICROSECOND for one in Priority},
    )
    if rows[0][0]:
        return None
    # A row without an id says that nothing is due.
    return Pulled(first_of(runs_from_rows([row[1:] for row in rows if row[1] is not None]), pull))


async def pull(tx: Tx, set_queues: set[str], pull: Pull) -> Pulled:
    """Hand out the next due items. `set_queues` remembers for which queues something was set, so that others are not
    asked for it."""
    limits: Limits | None = None
    # Asked once: another pull may learn of it while this one waits.
    is_known = pull.queue in set_queues
    if is_known:
        # Before any item is locked: who waits for the queue then keeps none from others.
        limits = await _limits(tx, pull.queue)
        if limits is not None and limits.settings.is_paused:
            return Pulled([])
    items = DueItems(tx, pull)
    page = await items.page()
    if items.is_queue_set and not is_known:
        set_queues.add(pull.queue)
        limits = await _limits(tx, pull.queue)
    chosen = page[: pull.limit]
    if limits is None and all(run.subject is None for run in chosen):
        await hand(tx, pull, chosen)
        return Pulled([pulled(run, pull) for run in chosen])
    return await hand_out(tx, pull, limits, items, page)


async def _limits(tx: Tx, queue: str) -> Limits | None:
    """What keeps items of a queue back, if anything does. Nobody else hands any out from here on, unless it is paused:
    then there is nothing to hand out."""
    settings = await read_settings(tx, queue)
    if settings is None:
        return None
    if settings.is_paused:
        return Limits(settings, None)
    limits = (settings.concurrency, settings.rate, settings.key_concurrency, settings.key_rate)
    return await lock_limits(tx, queue) if any(limit is not None for limit in limits) else None
