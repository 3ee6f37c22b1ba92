"""How much an HTTP target may take: of memory per answer, of connections, of plans, of names."""

from __future__ import annotations

from datetime import timedelta

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds that hold whatever the other side does.

    Of a longer answer the first `max_response_bytes` are kept; the rest is not read, the connection closed.
    Unused connections are kept for `idle_timeout`, at most `idle_per_host` to a place and `max_idle` in all.
    """

    max_response_bytes: int = 5 * 1024 * 1024
    max_redirects: int = 5
    max_names: int = 4096
    max_plans: int = 1024
    name_ttl: timedelta = timedelta(seconds=10)
    idle_per_host: int = 100
    max_idle: int = 1000
    idle_timeout: timedelta = timedelta(seconds=90)
