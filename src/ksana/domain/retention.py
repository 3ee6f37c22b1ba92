"""Retention: what a store may forget."""

from __future__ import annotations

from datetime import datetime

import msgspec


class Retention(msgspec.Struct, frozen=True):
    """What may be forgotten at `now`: runs that ended before `before`, except the newest `keep_last` of each job, and
    other things of that age; `limit` of each kind in a step."""

    now: datetime
    before: datetime
    keep_last: int
    limit: int
