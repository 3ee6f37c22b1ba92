"""What a queue may do: whether it is open, how many of its items may be held at once, and how many handed out in a
while, for all of it and for each key of its items."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

_CLOCKS_DIFFER: Final = timedelta(seconds=10)
"""By how much the clocks of two nodes may differ without a bucket looking fuller than it can be."""


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
    return _busy_until(rate, busy_until, now) - (rate.per - rate.step) <= now


def taken(rate: Rate, busy_until: datetime | None, now: datetime) -> datetime:
    """Until when a bucket is busy after one more was handed out."""
    return _busy_until(rate, busy_until, now) + rate.step


def _busy_until(rate: Rate, said: datetime | None, now: datetime) -> datetime:
    """Until when a bucket is busy by this rate. One that is busy for longer than the rate can make it was filled by
    another that was set before; that must not keep anybody waiting who has just been allowed more."""
    if said is None or said > now + rate.per + _CLOCKS_DIFFER:
        return now
    return max(said, now)
