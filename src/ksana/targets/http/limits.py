"""How much an HTTP target may take: of memory per answer, of clients, of plans, of time for a name."""

from __future__ import annotations

from datetime import timedelta

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds that hold whatever the other side does.

    Of a longer answer the first `max_response_bytes` are kept; the rest is not read, the connection closed.
    `idle_per_host` connections are kept for `idle_timeout`; each of `max_clients` hosts costs about 250 KiB.
    """

    max_response_bytes: int = 5 * 1024 * 1024
    max_redirects: int = 5
    max_clients: int = 256
    max_names: int = 4096
    max_plans: int = 1024
    name_ttl: timedelta = timedelta(seconds=10)
    idle_per_host: int = 100
    idle_timeout: timedelta = timedelta(seconds=90)
