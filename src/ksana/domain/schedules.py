"""Schedules as values: once, every and cron, and the slots they plan.

A slot is a planned instant on a grid that never drifts: `origin + k * every`, or the fires of an expression.
Jitter delays the fire of a slot and never moves the grid. Bounds are inclusive: `start_at` and `end_at` may
themselves be slots.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from ksana.domain.cron import Cron, parse_cron
from ksana.domain.durations import format_duration
from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.times import UTC_MAX, UTC_MIN, from_micros, to_micros, zone

MIN_EVERY: Final = timedelta(milliseconds=100)
"""The shortest interval; anything quicker is a stream, not a schedule."""

_NONE: Final = timedelta(0)
_TICK: Final = timedelta(microseconds=1)
_LAST_MICRO: Final = to_micros(UTC_MAX)


class Once(msgspec.Struct, frozen=True, tag="once", tag_field="kind"):
    """One slot."""

    run_at: datetime


class Every(msgspec.Struct, frozen=True, tag="every", tag_field="kind"):
    """A slot every so often.

    With `start_at` the grid begins there and `start_at` is itself a slot. Without it the grid is counted from
    `origin_at`, when the schedule was made, and the first slot is one interval later.
    """

    every: timedelta
    origin_at: datetime
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter: timedelta = _NONE


class CronSchedule(msgspec.Struct, frozen=True, tag="cron", tag_field="kind"):
    """A slot whenever the expression fires on the wall clocks of a zone."""

    expr: str
    timezone: str = "UTC"
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter: timedelta = _NONE


Schedule = Once | Every | CronSchedule


@lru_cache(maxsize=4096)
def compiled(expr: str, field: str = "schedule.expr") -> Cron:
    """The parsed form of an expression, remembered for the expressions in use."""
    return parse_cron(expr, field)


def validate(schedule: Schedule, field: str = "schedule") -> None:
    """Refuse a schedule that cannot work, naming every field at fault."""
    problems = list(_problems(schedule, field))
    if problems:
        raise InvalidArgument(problems)


def first_slot(schedule: Schedule, created_at: datetime) -> datetime | None:
    """The slot a new schedule begins with. A `run_at` in the past counts: it is for the misfire rule."""
    if isinstance(schedule, Once):
        return schedule.run_at
    return next_slot(schedule, created_at)


def next_slot(schedule: Schedule, after: datetime) -> datetime | None:
    """The first slot strictly after an instant."""
    if isinstance(schedule, Once):
        return schedule.run_at if schedule.run_at > after else None
    if isinstance(schedule, Every):
        grid = _Grid.of(schedule)
        return grid.slot(max(grid.first, grid.reached(to_micros(after)) + 1))
    start_at = schedule.start_at
    if start_at is not None and after < start_at:
        after = max(start_at, UTC_MIN + _TICK) - _TICK
    slot = compiled(schedule.expr).next_after(after, zone(schedule.timezone))
    return slot if slot is None or schedule.end_at is None or slot <= schedule.end_at else None


def previous_slot(schedule: Schedule, before: datetime) -> datetime | None:
    """The last slot strictly before an instant."""
    if isinstance(schedule, Once):
        return schedule.run_at if schedule.run_at < before else None
    if isinstance(schedule, Every):
        grid = _Grid.of(schedule)
        return grid.slot(min(grid.last, grid.reached(to_micros(before) - 1)))
    end_at = schedule.end_at
    if end_at is not None and end_at < before:
        before = min(end_at, UTC_MAX - _TICK) + _TICK
    slot = compiled(schedule.expr).previous_before(before, zone(schedule.timezone))
    return slot if slot is None or schedule.start_at is None or slot >= schedule.start_at else None


def count_slots(schedule: Schedule, after: datetime, until: datetime) -> int:
    """How many slots lie in (after, until], without visiting them."""
    if isinstance(schedule, Once):
        return int(after < schedule.run_at <= until)
    if isinstance(schedule, Every):
        grid = _Grid.of(schedule)
        newest = min(grid.last, grid.reached(to_micros(until)))
        return max(0, newest - max(grid.first - 1, grid.reached(to_micros(after))))
    if schedule.start_at is not None and after < schedule.start_at:
        after = max(schedule.start_at, UTC_MIN + _TICK) - _TICK
    if schedule.end_at is not None:
        until = min(until, schedule.end_at)
    return compiled(schedule.expr).count_between(after, until, zone(schedule.timezone))


def latest_slots(schedule: Schedule, after: datetime, until: datetime, n: int) -> list[datetime]:
    """The newest `n` slots in (after, until], oldest first; the cost is by `n`, not by the span."""
    slots: list[datetime] = []
    if n > 0 and isinstance(schedule, Once):
        return [schedule.run_at] if after < schedule.run_at <= until else []
    before = min(until, UTC_MAX - _TICK) + _TICK
    while len(slots) < n:
        slot = previous_slot(schedule, before)
        if slot is None or slot <= after:
            break
        slots.append(slot)
        before = slot
    slots.reverse()
    return slots


def fire_at(schedule: Schedule, slot_at: datetime, draw: float) -> datetime:
    """When a slot fires: late by a share of the jitter. `draw` is the caller's random number in [0, 1)."""
    if isinstance(schedule, Once) or not schedule.jitter:
        return slot_at
    return from_micros(min(to_micros(slot_at) + int(schedule.jitter / _TICK * draw), _LAST_MICRO))


class _Grid(NamedTuple):
    """The slots `origin + k * every` in microseconds, for k from `first` to `last`."""

    origin: int
    every: int
    first: int
    last: int

    @classmethod
    def of(cls, schedule: Every) -> _Grid:
        starts = schedule.start_at is not None
        origin = to_micros(schedule.start_at or schedule.origin_at)
        every = schedule.every // _TICK
        end = _LAST_MICRO if schedule.end_at is None else to_micros(schedule.end_at)
        return cls(origin, every, 0 if starts else 1, (end - origin) // every)

    def reached(self, micros: int) -> int:
        """The k of the last grid point at or before an instant, whether or not it is a slot."""
        return (micros - self.origin) // self.every

    def slot(self, k: int) -> datetime | None:
        return from_micros(self.origin + k * self.every) if self.first <= k <= self.last else None


def _problems(schedule: Schedule, field: str) -> Iterator[Problem]:
    instants = {
        name: value for name in schedule.__struct_fields__ if isinstance(value := getattr(schedule, name), datetime)
    }
    naive = [name for name, value in instants.items() if value.tzinfo is None]
    for name in naive:
        yield Problem(f"{field}.{name}", "has no zone; add Z or an offset")
    if isinstance(schedule, Once):
        return
    if isinstance(schedule, Every):
        if schedule.every < MIN_EVERY:
            yield Problem(f"{field}.every", f"must be at least {format_duration(MIN_EVERY)}")
        elif schedule.jitter >= schedule.every:
            yield Problem(f"{field}.jitter", f"must be shorter than every ({format_duration(schedule.every)})")
    else:
        try:
            parse_cron(schedule.expr, f"{field}.expr")
        except InvalidArgument as error:
            yield from error.problems
        try:
            zone(schedule.timezone, f"{field}.timezone")
        except InvalidArgument as error:
            yield from error.problems
    if schedule.jitter < _NONE:
        yield Problem(f"{field}.jitter", "must not be negative")
    start_at, end_at = instants.get("start_at"), instants.get("end_at")
    if not naive and start_at is not None and end_at is not None and end_at <= start_at:
        yield Problem(f"{field}.end_at", "must be after start_at")
