"""What a request about a timer may say. One shape serves creating and changing: what is absent or null is not said.

Fields nobody knows are ignored, and so are those that only the service writes: a job that was read may be sent back.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Duration = Annotated[
    str, msgspec.Meta(description="numbers with units: ms, s, m, h; empty for the default", examples=["1m30s"])
]
Instant = Annotated[
    str,
    msgspec.Meta(description="RFC 3339, with Z or an offset; empty for none", examples=["2030-01-01T08:00:00+08:00"]),
]
Kind = Literal["once", "every", "cron"]

MOST_RETRIES = 999


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what a request says."""


class HttpShape(Said, frozen=True):
    """The call to make. `body` is sent as it is, but for `<filled-by-service>` and `{{run_id}}`."""

    method: str | None = None
    url: str | None = None
    headers: dict[str, str] | None = None
    body: str | None = None


class ScheduleShape(Said, frozen=True):
    """When: `once` needs `run_at`, `every` needs `every`, `cron` needs `expr`."""

    kind: Kind | None = None
    run_at: Instant | None = None
    every: Duration | None = None
    start_at: Instant | None = None
    jitter: Duration | None = None
    expr: str | None = None
    timezone: str | None = None


class JobShape(Said, frozen=True):
    """A timer, or a change of one."""

    id: str | None = None
    name: str | None = None
    enabled: bool | None = None
    type: str | None = None
    http: HttpShape | None = None
    schedule: ScheduleShape | None = None
    timeout: Duration | None = None
    max_retries: Annotated[int, msgspec.Meta(ge=0, le=MOST_RETRIES)] | None = None
    retry_backoff: Duration | None = None


class RunsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs, newest first; `before` goes on behind the last one of an earlier answer."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50
    before: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] | None = None
