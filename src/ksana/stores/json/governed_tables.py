"""The tables of what governs the queue: objects, buckets, and the audit of all changes."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ksana.domain.audit import AuditEntry
from ksana.domain.objects import GovernedObject
from ksana.stores.json.ordered import Grouped, Ordered
from ksana.stores.json.table import Table

# What an entry takes in the history beside what it shows of before and after; close enough.
_ENTRY_LENGTH = 300

ObjectKey = tuple[str, str]


class ObjectTable(Table[ObjectKey, GovernedObject]):
    """Objects by (type, id)."""

    def __init__(self) -> None:
        super().__init__()
        self.by_subject: dict[str, GovernedObject] = {}

    def _enter(self, key: ObjectKey, governed: GovernedObject) -> None:
        self.by_subject[governed.subject] = governed

    def _leave(self, key: ObjectKey, governed: GovernedObject) -> None:
        self.by_subject.pop(governed.subject, None)


class Bucket(msgspec.Struct, frozen=True):
    """Until when the bucket of a queue, or with a subject that of one of its keys, is busy."""

    queue: str
    subject: str
    busy_until: datetime


BucketKey = tuple[str, str]


class BucketTable(Table[BucketKey, Bucket]):
    """Buckets by (queue, subject); the empty subject is the queue itself."""

    def __init__(self) -> None:
        super().__init__()
        self.busy: Ordered[tuple[datetime, BucketKey]] = Ordered()

    def busy_until(self, queue: str, subject: str = "") -> datetime | None:
        bucket = self.get((queue, subject))
        return None if bucket is None else bucket.busy_until

    def _enter(self, key: BucketKey, bucket: Bucket) -> None:
        self.busy.add((bucket.busy_until, key))

    def _leave(self, key: BucketKey, bucket: Bucket) -> None:
        self.busy.discard((bucket.busy_until, key))


class AuditTable(Table[int, AuditEntry]):
    """Entries of the audit by id."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: Ordered[int] = Ordered()
        self.of: Grouped[tuple[str, str], int] = Grouped()
        self.made: Ordered[tuple[datetime, int]] = Ordered()
        self.length = 0

    def _enter(self, key: int, entry: AuditEntry) -> None:
        self.ids.add(key)
        self.of.add((entry.subject, entry.subject_id), key)
        self.made.add((entry.at, key))
        self.length += length_of(entry)

    def _leave(self, key: int, entry: AuditEntry) -> None:
        self.ids.discard(key)
        self.of.discard((entry.subject, entry.subject_id), key)
        self.made.discard((entry.at, key))
        self.length -= length_of(entry)


def length_of(entry: AuditEntry) -> int:
    return _ENTRY_LENGTH + len(entry.before or b"") + len(entry.after or b"")
