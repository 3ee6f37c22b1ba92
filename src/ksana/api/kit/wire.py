"""How values leave: one JSON encoder, and instants as text.

Reply structs carry instants as `Timestamp` made by `timestamp()`; a `datetime` would be written with six
digits or none depending on its value, so the route table refuses such reply types when the app is built.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Final, overload

import msgspec

Timestamp = Annotated[
    str,
    msgspec.Meta(
        description="UTC, RFC 3339, milliseconds",
        examples=["2026-11-15T02:35:00.000Z"],
        extra_json_schema={"format": "date-time"},
    ),
]

encode: Final = msgspec.json.Encoder().encode


@overload
def timestamp(at: datetime) -> str: ...
@overload
def timestamp(at: None) -> None: ...
def timestamp(at: datetime | None) -> str | None:
    """An instant as the wire has it: `2026-11-15T02:35:00.000Z`; digits below a millisecond are cut."""
    return None if at is None else _written(at)


# What is answered together mostly happened together.
@lru_cache(maxsize=1024)
def _written(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
