"""Spans as text in Go's notation (`1m30s`, `300ms`), read strictly and kept exact to the microsecond."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from ksana.domain.errors import InvalidArgument

MAX_DURATION: Final = timedelta(days=36525)
"""One hundred years; a longer span is a mistake in the unit."""

_NANOS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_TERM: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_BARE_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_LONGEST: Final = 128
_MICROSECOND: Final = timedelta(microseconds=1)


def parse_duration(text: str, field: str = "duration") -> timedelta:
    """Read a Go duration; anything else is refused with the name of `field`."""
    if not isinstance(text, str):
        raise InvalidArgument.of(field, f'expected text such as "5s" or "1m30s", got {type(text).__name__}')
    body = text.removeprefix("+")
    if body == "0":
        return timedelta(0)
    if body.startswith("-"):
        raise InvalidArgument.of(field, f"{_shown(text)} is negative; a duration is zero or more")
    if _BARE_NUMBER.fullmatch(body):
        raise InvalidArgument.of(field, f'{_shown(text)} has no unit; write for example "{body[:20]}s"')
    nanos = _nanos(body)
    if nanos is None:
        raise InvalidArgument.of(
            field, f'{_shown(text)} is not a duration; write for example "300ms", "5s", "1m30s" or "1.5h"'
        )
    micros = nanos // 1_000
    if nanos and not micros:
        raise InvalidArgument.of(field, f"{_shown(text)} is shorter than one microsecond")
    if micros > MAX_DURATION // _MICROSECOND:
        raise InvalidArgument.of(field, f"{_shown(text)} is longer than 100 years")
    return timedelta(microseconds=micros)


def format_duration(span: timedelta) -> str:
    """Write a span the way people do: units that are zero are left out, so it is `5m` and not `5m0s`."""
    micros = span // _MICROSECOND
    if micros == 0:
        return "0s"
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    if micros < 1_000:
        return f"{sign}{micros}µs"
    if micros < 1_000_000:
        return f"{sign}{_decimal(micros, 3)}ms"
    minutes, rest = divmod(micros, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    parts = (
        f"{hours}h" if hours else "",
        f"{minutes}m" if minutes else "",
        f"{_decimal(rest, 6)}s" if rest else "",
    )
    return sign + "".join(parts)


def _nanos(body: str) -> int | None:
    if not body or len(body) > _LONGEST:
        return None
    total = at = 0
    while at < len(body):
        term = _TERM.match(body, at)
        if term is None:
            return None
        whole, fraction, unit = term[1], term[2] or "", term[3]
        if not whole and not fraction:
            return None
        size = _NANOS[unit]
        total += int(whole or "0") * size + int(fraction or "0") * size // 10 ** len(fraction)
        at = term.end()
    return total


def _decimal(value: int, places: int) -> str:
    whole, fraction = divmod(value, 10**places)
    return f"{whole}.{fraction:0{places}d}".rstrip("0").rstrip(".") if fraction else str(whole)


def _shown(text: str) -> str:
    return f'"{text}"' if len(text) <= 40 else f'"{text[:40]}…"'
