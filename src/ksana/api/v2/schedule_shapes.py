"""How schedules look on the wire: durations in Go's way, instants with their zone."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from ksana.api.kit import Input, Timestamp, timestamp
from ksana.api.services import JobDefaults
from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.schedules import CronSchedule, Every, Once, Schedule
from ksana.domain.times import parse_instant
from ksana.domain.words import Words

_NO_TIME = timedelta(0)
_WITH_SECONDS = 6

Instant = Annotated[
    str,
    msgspec.Meta(
        description="RFC 3339, with Z or an offset",
        examples=["2026-11-15T10:35:00+08:00"],
        extra_json_schema={"format": "date-time"},
    ),
]
Duration = Annotated[str, msgspec.Meta(description="numbers with units: ms, s, m, h", examples=["1h30m"])]


class OnceShape(Input, frozen=True, tag="once", tag_field="kind"):
    """One slot, at `run_at`."""

    run_at: Instant


class EveryShape(Input, frozen=True, tag="every", tag_field="kind"):
    """A slot every so often, from `start_at` or from now on."""

    every: Duration
    start_at: Instant | None = None
    end_at: Instant | None = None
    jitter: Duration | None = None


class CronShape(Input, frozen=True, tag="cron", tag_field="kind"):
    """A slot whenever the expression fires: 5 or 6 fields, on the clocks of `timezone`."""

    expr: str
    timezone: str | None = None
    start_at: Instant | None = None
    end_at: Instant | None = None
    jitter: Duration | None = None


ScheduleShape = OnceShape | EveryShape | CronShape


class OnceView(msgspec.Struct, frozen=True, tag="once", tag_field="kind"):
    run_at: Timestamp


class EveryView(msgspec.Struct, frozen=True, tag="every", tag_field="kind"):
    every: str
    origin_at: Timestamp
    start_at: Timestamp | None
    end_at: Timestamp | None
    jitter: str


class CronView(msgspec.Struct, frozen=True, tag="cron", tag_field="kind"):
    expr: str
    timezone: str
    start_at: Timestamp | None
    end_at: Timestamp | None
    jitter: str


ScheduleView = OnceView | EveryView | CronView


class WordsView(msgspec.Struct, frozen=True):
    """The same in English and in Chinese."""

    en: str
    zh: str


class Problems:
    """Collects what is wrong while a request is read, so that everything is said at once."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    def instant(self, text: str | None, field: str) -> datetime | None:
        if text is None:
            return None
        try:
            return parse_instant(text, field)
        except InvalidArgument as error:
            self._found += error.problems
            return None

    def duration(self, text: str | None, field: str, default: timedelta = _NO_TIME) -> timedelta:
        if text is None:
            return default
        try:
            return parse_duration(text, field)
        except InvalidArgument as error:
            self._found += error.problems
            return default

    def add(self, field: str, message: str) -> None:
        self._found.append(Problem(field, message))

    def collect(self, error: InvalidArgument) -> None:
        self._found += error.problems

    @property
    def any(self) -> bool:
        return bool(self._found)

    def raise_any(self) -> None:
        if self._found:
            raise InvalidArgument(self._found)


_SOME_INSTANT = datetime.fromisoformat("2000-01-01T00:00:00+00:00")
# Longer than any jitter, which would otherwise be blamed for an interval that could not be read.
_SOME_SPAN = timedelta(days=365_000)


def read_schedule(shape: ScheduleShape, now: datetime, defaults: JobDefaults, problems: Problems) -> Schedule:
    """The schedule a request asks for; what cannot be read goes into `problems` and a harmless value stands in."""
    if isinstance(shape, OnceShape):
        return Once(problems.instant(shape.run_at, "schedule.run_at") or _SOME_INSTANT)
    start_at = problems.instant(shape.start_at, "schedule.start_at")
    end_at = problems.instant(shape.end_at, "schedule.end_at")
    jitter = problems.duration(shape.jitter, "schedule.jitter")
    if isinstance(shape, EveryShape):
        every = problems.duration(shape.every, "schedule.every", _SOME_SPAN)
        return Every(every, now, start_at, end_at, jitter)
    if shape.expr.startswith("@every "):
        every = problems.duration(shape.expr.removeprefix("@every ").strip(), "schedule.expr", _SOME_SPAN)
        return Every(every, now, start_at, end_at, jitter)
    if len(shape.expr.split()) == _WITH_SECONDS and not defaults.seconds_field:
        problems.add("schedule.expr", "has a field for seconds, which scheduler.enable_seconds_field: false refuses")
    return CronSchedule(shape.expr, shape.timezone or defaults.timezone, start_at, end_at, jitter)


def show_schedule(schedule: Schedule | None) -> ScheduleView | None:
    match schedule:
        case None:
            return None
        case Once():
            return OnceView(timestamp(schedule.run_at))
        case Every():
            return EveryView(
                format_duration(schedule.every),
                timestamp(schedule.origin_at),
                timestamp(schedule.start_at),
                timestamp(schedule.end_at),
                format_duration(schedule.jitter),
            )
        case CronSchedule():
            return CronView(
                schedule.expr,
                schedule.timezone,
                timestamp(schedule.start_at),
                timestamp(schedule.end_at),
                format_duration(schedule.jitter),
            )


def show_words(words: Words) -> WordsView:
    return WordsView(words.en, words.zh)
