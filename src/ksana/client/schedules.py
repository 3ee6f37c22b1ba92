"""Schedules: when one would fire, before anything is stored."""

from __future__ import annotations

from typing import Final, TypeVar, Unpack

import msgspec

from ksana.client.asking import Instant, ScheduleWords, refuse_unknown, schedule_of, written
from ksana.client.calls import Call, json_body
from ksana.client.results import Preview
from ksana.client.rooms import Room, Verb
from ksana.client.wires import Wire

W = TypeVar("W", bound=Wire)

_read: Final = msgspec.json.Decoder(Preview).decode


def preview(*, from_at: Instant | None = None, count: int = 5, **words: Unpack[ScheduleWords]) -> Call[Preview]:
    """The next slots of a schedule: `every="5m"`, `cron="0 6 * * *"` with `tz`, or `at`."""
    refuse_unknown(words, ScheduleWords.__optional_keys__)
    fields = {"schedule": schedule_of(words), "from_at": written(from_at), "count": count}
    return Call(method="POST", path="/api/v2/schedules/preview", decode=_read, body=json_body(fields))


class Schedules(Room[W]):
    """What schedules mean."""

    preview = Verb(preview)
