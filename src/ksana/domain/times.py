"""Instants as text and as integers: strict RFC 3339 in, UTC out, and zones by name.

Inside the program an instant is always an aware UTC datetime; this is where it becomes one.
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, Literal

from ksana.domain.errors import InvalidArgument

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
UTC_MIN: Final = datetime.min.replace(tzinfo=UTC)
UTC_MAX: Final = datetime.max.replace(tzinfo=UTC)

_INSTANT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:([0-9]{2})(?:\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})?"
)
_OFFSET: Final = re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9])")
# Links to the machine's own zone and the leap-second tables: neither means the same on every machine.
_NOT_NAMES: Final = frozenset({"localtime", "posixrules", "Factory"})
_NOT_FOLDERS: Final = ("posix/", "right/")
_LONGEST: Final = 64


def parse_instant(text: str, field: str) -> datetime:
    """Read an RFC 3339 instant. Digits beyond the microsecond are cut off."""
    if not isinstance(text, str):
        raise InvalidArgument.of(field, f"expected RFC 3339 text, got {type(text).__name__}")
    matched = _INSTANT.fullmatch(text)
    if matched is None:
        raise InvalidArgument.of(
            field, f'{_shown(text)} is not an RFC 3339 instant; write for example "2026-03-01T09:00:00Z"'
        )
    seconds, offset = matched.groups()
    if offset is None:
        raise InvalidArgument.of(field, f'{_shown(text)} has no zone; add Z or an offset such as "+08:00"')
    if seconds == "60":
        raise InvalidArgument.of(field, f"{_shown(text)} is a leap second, which has no place on this clock")
    if len(offset) == 6 and not _OFFSET.fullmatch(offset):
        raise InvalidArgument.of(field, f'{_shown(text)} has an impossible offset; use "-23:59" to "+23:59"')
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidArgument.of(field, f"{_shown(text)} is not a date on the calendar") from error


def format_instant(instant: datetime, precision: Literal["seconds", "millis", "micros"] = "millis") -> str:
    """Write an instant in UTC, ending in Z; finer digits are cut off, never rounded up into the future."""
    if instant.tzinfo is not UTC:
        instant = instant.astimezone(UTC)
    return instant.isoformat(timespec=_TIMESPEC[precision])[:-6] + "Z"


_TIMESPEC: Final = {"seconds": "seconds", "millis": "milliseconds", "micros": "microseconds"}


def to_micros(instant: datetime) -> int:
    """Microseconds since 1970, exact."""
    elapsed = instant - EPOCH
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds


def from_micros(micros: int) -> datetime:
    """The instant that many microseconds after 1970."""
    return EPOCH + timedelta(0, 0, micros)


def zone(name: str, field: str = "timezone") -> tzinfo:
    """The zone of an IANA name, `UTC`, or a fixed offset such as `+08:00`."""
    if not isinstance(name, str):
        raise InvalidArgument.of(field, f"expected a zone name, got {type(name).__name__}")
    found = _zone(name)
    if found is None:
        raise InvalidArgument.of(field, f"unknown zone {_shown(name)}{_did_you_mean(name)}")
    return found


@lru_cache(maxsize=1024)
def _zone(name: str) -> tzinfo | None:
    if name == "UTC":
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        span = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(span if offset[1] == "+" else -span) if span else UTC
    if name and len(name) <= _LONGEST and name not in _NOT_NAMES and not name.startswith(_NOT_FOLDERS):
        try:
            return zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            return None
    return None


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """Every name by how it looks in lower case. Kept: to list them, each file of the database is opened."""
    return {name.lower(): name for name in sorted(zoneinfo.available_timezones()) if name not in _NOT_NAMES}


def _did_you_mean(name: str) -> str:
    known = _names()
    cities = {zone_name.rpartition("/")[2]: zone_name for zone_name in sorted(known)}
    wanted = name[:_LONGEST].strip().lower().replace(" ", "_")
    close = get_close_matches(wanted, known, n=1, cutoff=0.7)
    close = close or [cities[city] for city in get_close_matches(wanted, cities, n=1, cutoff=0.8)]
    if close:
        return f"; did you mean {known[close[0]]}?"
    return '; write an IANA name such as "Asia/Shanghai", "UTC" or an offset such as "+08:00"'


def _shown(text: str) -> str:
    return f'"{text}"' if len(text) <= 40 else f'"{text[:40]}…"'
