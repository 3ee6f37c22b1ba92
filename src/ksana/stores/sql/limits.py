"""What was set for queues. Its row is the lock under which a queue with limits hands out."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ksana.domain.audit import AuditEntry
from ksana.domain.errors import VersionConflict
from ksana.domain.items import shown_queue
from ksana.domain.limits import QueueSettings
from ksana.domain.times import to_micros
from ksana.stores.sql.audit import add_audit
from ksana.stores.sql.governed_rows import settings_from_row, settings_to_row
from ksana.stores.sql.governed_statements import (
    ALL_QUEUES,
    BUCKETS,
    EMPTY_BUCKETS,
    FILL_QUEUE_BUCKET,
    LOCK_QUEUE,
    QUEUES,
    READ_QUEUE,
)
from ksana.stores.sql.rows import instant_or_none
from ksana.stores.sql.tx import Tx


class Limits(NamedTuple):
    """What was set for a queue that is locked now, and until when its bucket is busy."""

    settings: QueueSettings
    busy_until: datetime | None


async def queue_settings(tx: Tx) -> list[QueueSettings]:
    return [settings_from_row(row) for row in await tx.rows(ALL_QUEUES)]


async def set_queue(tx: Tx, settings: QueueSettings, entry: AuditEntry) -> None:
    locked = await lock_limits(tx, settings.queue)
    version = 0 if locked is None else locked.settings.version
    if settings.version != version + 1:
        raise _conflict(settings, version)
    row = settings_to_row(settings)
    if locked is not None:
        await tx.update(QUEUES, [row])
    elif await tx.insert_new(QUEUES, [row]) == 0:
        raise _conflict(settings, settings.version)
    await add_audit(tx, [entry])


def _conflict(settings: QueueSettings, version: int) -> VersionConflict:
    return VersionConflict(
        f"the settings of {shown_queue(settings.queue)} are at version {version}, not {settings.version - 1};"
        " read them again and repeat the change"
    )


async def read_settings(tx: Tx, queue: str) -> QueueSettings | None:
    rows = await tx.rows(READ_QUEUE, queue=queue)
    return settings_from_row(rows[0]) if rows else None


async def lock_limits(tx: Tx, queue: str) -> Limits | None:
    """What was set for a queue, held until the transaction ends."""
    rows = await tx.rows(LOCK_QUEUE, queue=queue)
    return Limits(settings_from_row(rows[0]), instant_or_none(rows[0][-1])) if rows else None


async def fill_buckets(tx: Tx, queue: str, busy: dict[str, datetime]) -> None:
    """Say until when buckets of a locked queue are busy, the empty subject standing for the queue itself."""
    rows = [(queue, subject, to_micros(until)) for subject, until in sorted(busy.items())]
    for _, subject, until in rows:
        if not subject:
            await tx.run(FILL_QUEUE_BUCKET, queue=queue, busy_until=until)
    if keyed := [row for row in rows if row[1]]:
        await tx.run(EMPTY_BUCKETS, queue=queue, subjects=[subject for _, subject, _ in keyed])
        await tx.insert(BUCKETS, keyed)
