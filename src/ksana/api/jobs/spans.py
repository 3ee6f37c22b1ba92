"""Spans and instants of a request. What cannot be read becomes a problem, and something harmless stands in for it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.times import parse_instant

_NO_TIME: Final = timedelta(0)


def read_span(
    text: str,
    field: str,
    extras: dict[str, Any],
    problems: list[Problem],
    *,
    default: timedelta = _NO_TIME,
    instead: timedelta | None = None,
) -> timedelta:
    """A span, its writing kept in `extras` if it is not the usual one; an empty one is the default.

    `instead` stands in for one that cannot be read.
    """
    name = field.rpartition(".")[2]
    extras.pop(name, None)
    if not text:
        return default
    try:
        span = parse_duration(text, field)
    except InvalidArgument as error:
        problems += error.problems
        return default if instead is None else instead
    if text != format_duration(span):
        extras[name] = text
    return span


def read_instant(text: str | None, field: str, problems: list[Problem]) -> datetime | None:
    """An instant; None for an empty text."""
    if not text:
        return None
    try:
        return parse_instant(text, field)
    except InvalidArgument as error:
        problems += error.problems
        return None
