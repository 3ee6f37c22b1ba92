"""What a queue may do: whether it is open, how many of its items may be held at once, and how many handed out in a
while, for all of it and for each key of its items."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec


class Rate(msgspec.Struct, frozen=True):
    """At most `count` at once, and as many in every stretch this long after that, one after the other."""

    count: int
    per: timedelta

    @property
    def step(self) -> timedelta:
        """What each of them takes up."""
        # Rounded down, so that as many as were promised fit in.
        return max(self.per // self.count, timedelta.resolution)


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody has set for a queue; `queue` is its name as it is stored. What is None has no limit."""

    queue: str
    version: int = 1
    is_paused: bool = False
    reason: str = ""
    concurrency: int | None = None
    rate: Rate | None = None
    key_concurrency: int | None = None
    key_rate: Rate | None = None
    updated_at: datetime


def has_room(rate: Rate, busy_until: datetime | None, now: datetime) -> bool:
    """Whether one more may be handed out. A bucket is full while it is busy for longer than all but one take up."""
    return busy_until is None or busy_until - (rate.per - rate.step) <= now


def taken(rate: Rate, busy_until: datetime | None, now: datetime) -> datetime:
    """Until when a bucket is busy after one more was handed out."""
    return max(busy_until or now, now) + rate.step
