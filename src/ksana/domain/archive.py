"""Everything a store holds that must survive a move to another store, as values: what `ksana store copy` carries.

Things of a section are ordered by their key, and a place in a section is the key of a thing spelt out; both mean the
same in every store, so a copy cut short goes on behind the last thing that arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import msgspec

from ksana.domain.times import to_micros

Key = tuple[int | str, ...]


class Section(StrEnum):
    """The kinds of lasting things, in the order in which they are copied.

    Nodes, leases and what nodes have yet to hear are not among them: a node does not move with the data.
    """

    STANDING = "standing"
    KEYS = "keys"
    JOBS = "jobs"
    RUNS = "runs"
    ATTEMPTS = "attempts"
    CALLBACKS = "callbacks"
    PROGRESS = "progress"
    KEPT = "kept"
    ALERTS = "alerts"
    GAPS = "gaps"
    MINUTES = "minutes"
    RECORDS = "records"
    OBJECTS = "objects"
    QUEUES = "queues"
    AUDIT = "audit"


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Who a store is, the next id of each sequence, and how far its minutes are summed up (None: not at all).

    A store that is being filled by a copy of another has the other's identity turned over (`~identity`, which is
    negative), so that nobody takes it for a whole one.
    """

    identity: int
    next_ids: dict[str, int]
    rolled_until: datetime | None = None


class Exported(msgspec.Struct, frozen=True):
    """Things of a section in the order of their keys, and where to go on; None at the end."""

    items: list[Any]
    after: str | None


class Extent(msgspec.Struct, frozen=True):
    """How many things a section holds, and the place behind the last of them; None if there is none."""

    count: int
    last: str | None


_KEYS: Final[dict[Section, Callable[[Any], Key]]] = {
    Section.STANDING: lambda standing: (),
    Section.KEYS: lambda key: (key.id,),
    Section.JOBS: lambda job: (job.id,),
    Section.RUNS: lambda run: (run.id,),
    Section.ATTEMPTS: lambda attempt: (attempt.run_id, attempt.epoch),
    Section.CALLBACKS: lambda record: (record.id,),
    Section.PROGRESS: lambda progress: (progress.run_id,),
    Section.KEPT: lambda kept: (kept.run_id,),
    Section.ALERTS: lambda alert: (alert.run_id, alert.epoch, alert.hook),
    Section.GAPS: lambda gap: (gap.job_id, to_micros(gap.from_at), gap.reason.value),
    Section.MINUTES: lambda minute: (to_micros(minute.minute_at), minute.kind, minute.state.value),
    Section.RECORDS: lambda record: (record.scope, record.key),
    Section.OBJECTS: lambda governed: (governed.type, governed.id),
    Section.QUEUES: lambda settings: (settings.queue,),
    Section.AUDIT: lambda entry: (entry.id,),
}


def key_of(section: Section, item: Any) -> Key:
    """What a thing is found by in its section. Keys compare like tuples; text compares by code point."""
    return _KEYS[section](item)


def place_of(key: Key) -> str:
    """A key spelt out, as `after` has it."""
    return msgspec.json.encode(key).decode()


def key_at(place: str) -> Key:
    """The key that a place spells out."""
    return msgspec.json.decode(place, type=Key)
