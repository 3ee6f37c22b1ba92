"""Instants as this surface writes them: UTC, to the second."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, overload

import msgspec

from ksana.domain.times import format_instant

Moment = Annotated[
    str,
    msgspec.Meta(
        description="UTC, RFC 3339, seconds",
        examples=["2025-10-14T10:05:00Z"],
        extra_json_schema={"format": "date-time"},
    ),
]


@overload
def moment(at: datetime) -> str: ...
@overload
def moment(at: None) -> None: ...
def moment(at: datetime | None) -> str | None:
    """An instant as the wire has it: `2025-10-14T10:05:00Z`; digits below a second are cut."""
    return None if at is None else format_instant(at, "seconds")
