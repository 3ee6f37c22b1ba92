"""When a chain starts by itself: a cron expression, an interval or one instant."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import msgspec

from ksana.api.kit import Input, timestamp
from ksana.api.services import JobDefaults
from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.schedules import CronSchedule, Every, Once, Schedule
from ksana.domain.times import parse_instant

FIELD: Final = "schedule"
_EVERY: Final = "@every "
_WITH_SECONDS: Final = 6

CronText = Annotated[str, msgspec.Meta(description="five fields, or six with seconds first", examples=["0 3 * * *"])]
Duration = Annotated[str, msgspec.Meta(description="numbers with units: ms, s, m, h", examples=["15m"])]
Instant = Annotated[str, msgspec.Meta(description="RFC 3339, with Z or an offset", examples=["2026-11-15T02:35:00Z"])]


class ScheduleShape(Input, frozen=True, kw_only=True):
    """One of `cron` (on the clocks of `timezone`), `every`, and `at`, which may be called `once`."""

    cron: CronText | None = None
    every: Duration | None = None
    at: Instant | None = None
    once: Instant | None = None
    timezone: str | None = None


class ScheduleView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    cron: str | None = None
    timezone: str | None = None
    every: str | None = None
    at: str | None = None


def read_schedule(given: str | ScheduleShape, old: Schedule | None, defaults: JobDefaults, now: datetime) -> Schedule:
    """The schedule a request means; a text is a cron expression."""
    shape = ScheduleShape(cron=given) if isinstance(given, str) else given
    kinds = {"cron": shape.cron, "every": shape.every, "at": shape.at, "once": shape.once}
    said = [name for name, text in kinds.items() if text is not None]
    if len(said) != 1:
        raise InvalidArgument.of(FIELD, f"say one of {', '.join(kinds)}")
    every = shape.every
    if shape.cron is not None and shape.cron.startswith(_EVERY):
        every = shape.cron.removeprefix(_EVERY).strip()
    if shape.timezone is not None and (shape.cron is None or every is not None):
        raise InvalidArgument.of(f"{FIELD}.timezone", "goes with a cron expression; leave it out")
    if every is not None:
        return _on_its_grid(Every(parse_duration(every, f"{FIELD}.{said[0]}"), now), old)
    if shape.cron is None:
        return Once(parse_instant(shape.at or shape.once or "", f"{FIELD}.{said[0]}"))
    if len(shape.cron.split()) == _WITH_SECONDS and not defaults.seconds_field:
        message = "has a field for seconds, which scheduler.enable_seconds_field: false refuses"
        raise InvalidArgument([Problem(f"{FIELD}.cron", message)])
    return CronSchedule(shape.cron, shape.timezone or defaults.timezone)


def _on_its_grid(schedule: Every, old: Schedule | None) -> Schedule:
    """An interval that stays as long as it was keeps counting from where it began, so saying it again moves nothing."""
    return old if isinstance(old, Every) and old.every == schedule.every else schedule


def show_schedule(schedule: Schedule) -> ScheduleView:
    match schedule:
        case Once(run_at=at):
            return ScheduleView(at=timestamp(at))
        case Every(every=every):
            return ScheduleView(every=format_duration(every))
        case CronSchedule(expr=expr, timezone=timezone):
            return ScheduleView(cron=expr, timezone=timezone)
