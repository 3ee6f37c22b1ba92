"""Handing out items that are governed: by what was set for their queue, or by the objects they are about."""

from __future__ import annotations

from collections.abc import Sequence

from ksana.domain.handing_out import HandingOut, Known, Pulled
from ksana.domain.items import Pull
from ksana.domain.limits import QueueSettings
from ksana.domain.runs import Run
from ksana.domain.times import from_micros, to_micros
from ksana.stores.sql.due_items import DueItems
from ksana.stores.sql.governed_statements import BUCKETS_OF_QUEUE
from ksana.stores.sql.item_statements import HELD_BY_SUBJECT, HELD_ITEMS, PULL_ITEMS
from ksana.stores.sql.limits import Limits, fill_buckets
from ksana.stores.sql.objects import get_objects, lock_objects, write_objects
from ksana.stores.sql.tx import Tx


async def hand(tx: Tx, pull: Pull, runs: Sequence[Run]) -> None:
    """Write that runs are handed out."""
    if runs:
        await tx.run(
            PULL_ITEMS,
            ids=[run.id for run in runs],
            holder=pull.holder,
            until=to_micros(pull.until),
            at=to_micros(pull.begun_at),
        )


async def hand_out(tx: Tx, pull: Pull, limits: Limits | None, items: DueItems, page: list[Run]) -> Pulled:
    """Hand out what may be of this page and those behind it. What the queue has limits for is locked already."""
    step = _Step(tx, pull, limits, items, page)
    handing = await step.decide()
    # Objects are looked at page by page and locked together, in one order, so that nobody waits in a circle. What has
    # changed in between is decided anew; what is locked then stays as it is.
    while not await step.holds(handing):
        handing = await step.decide()
    await hand(tx, pull, handing.handed)
    await write_objects(tx, handing.objects.values())
    await fill_buckets(tx, pull.queue, handing.buckets)
    return Pulled(handing.handed, handing.refused, handing.blocked)


class _Step:
    """One transaction that hands out."""

    def __init__(self, tx: Tx, pull: Pull, limits: Limits | None, items: DueItems, page: list[Run]) -> None:
        self._tx = tx
        self._pull = pull
        self._settings = None if limits is None else limits.settings
        self._busy_until = None if limits is None else limits.busy_until
        self._items = items
        self._pages = [page]
        self._known: dict[str, Known] = {}

    async def decide(self) -> HandingOut:
        """Who is handed out, as things are now."""
        handing = HandingOut(self._pull, self._settings, await self._held(), self._busy_until)
        self._known = {}
        shown = 0
        while not handing.is_over:
            if shown == len(self._pages):
                self._pages.append(await self._items.page(handing.full))
            page = self._pages[shown]
            if not page:
                break
            shown += 1
            known = await _known(self._tx, self._pull.queue, self._settings, handing.unknown(page))
            self._known |= known
            handing.learn(known)
            handing.offer(page)
        return handing

    async def _held(self) -> int:
        if self._settings is None or self._settings.concurrency is None:
            return 0
        [(held,)] = await self._tx.rows(HELD_ITEMS, queue=self._pull.queue)
        return int(held)

    async def holds(self, handing: HandingOut) -> bool:
        """Whether the objects of what is handed out are what they were, now that nobody else can change them."""
        subjects = {run.subject for run in handing.handed if run.subject is not None}
        seen = {subject: known for subject in subjects if (known := self._known[subject]).governed is not None}
        locked = await lock_objects(self._tx, seen)
        if any(locked.get(subject) != known.governed for subject, known in seen.items()):
            return False
        # Under limits, those who hand out from this queue take turns anyway; else they do from here on.
        alone = [subject for subject, governed in locked.items() if governed.is_one_at_a_time]
        if not alone or self._settings is not None:
            return True
        held = dict(await self._tx.rows(HELD_BY_SUBJECT, queue=self._pull.queue, subjects=alone))
        return all(held.get(subject, 0) <= seen[subject].held for subject in alone)


async def _known(tx: Tx, queue: str, settings: QueueSettings | None, subjects: list[str]) -> dict[str, Known]:
    """What is known of subjects, as far as it matters to what was set for the queue."""
    if not subjects:
        return {}
    objects = await get_objects(tx, subjects)
    if settings is not None and settings.key_concurrency is not None:
        counted = subjects
    else:
        counted = [subject for subject, governed in objects.items() if governed.is_one_at_a_time]
    held = dict(await tx.rows(HELD_BY_SUBJECT, queue=queue, subjects=counted)) if counted else {}
    busy = {}
    if settings is not None and settings.key_rate is not None:
        rows = await tx.rows(BUCKETS_OF_QUEUE, queue=queue, subjects=subjects)
        busy = {subject: from_micros(until) for subject, until in rows}
    return {subject: Known(objects.get(subject), held.get(subject, 0), busy.get(subject)) for subject in subjects}
