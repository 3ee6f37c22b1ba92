"""What a schedule will do: in words, its next fires, and what about it tends to surprise."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

import msgspec

from ksana.domain.cron import parse_cron
from ksana.domain.cron_lints import Lint, clock_lints, clock_note, expression_lints
from ksana.domain.cron_words import cron_words
from ksana.domain.durations import format_duration
from ksana.domain.schedules import CronSchedule, Every, Once, Schedule, compiled
from ksana.domain.times import format_instant, zone
from ksana.domain.words import Words

__all__ = ["Explanation", "Fire", "Lint", "Words", "clock_note_of", "explain", "explain_schedule", "words_of"]

_SECOND: Final = timedelta(seconds=1)
_UNITS: Final = (
    (timedelta(days=1), "day", "天"),
    (timedelta(hours=1), "hour", "小时"),
    (timedelta(minutes=1), "minute", "分钟"),
    (timedelta(seconds=1), "second", "秒"),
)


class Fire(msgspec.Struct, frozen=True):
    """One fire; `dst` tells what a change of clocks has to do with it."""

    at: datetime
    dst: Words | None = None


class Explanation(msgspec.Struct, frozen=True):
    """The answer to "when will this run?"."""

    normalized: str
    words: Words
    fires: list[Fire]
    lints: list[Lint]

    @property
    def next(self) -> list[datetime]:
        return [fire.at for fire in self.fires]

    @property
    def notes(self) -> list[str]:
        """The lints in English."""
        return [lint.message.en for lint in self.lints]


def explain(expr: str, tz: tzinfo, from_at: datetime, n: int, zone_name: str = "") -> Explanation:
    """The next `n` fires of an expression after an instant, with what there is to say of them."""
    cron = parse_cron(expr)
    fires: list[datetime] = []
    while len(fires) < n:
        fire = cron.next_after(fires[-1] if fires else from_at, tz)
        if fire is None:
            break
        fires.append(fire)
    lints = [*expression_lints(expr, cron)]
    if fires:
        lints += clock_lints(cron, tz, from_at, fires[-1])
    shown = [Fire(at, clock_note(cron, tz, at)) for at in fires]
    return Explanation(cron.normalized, cron_words(cron.normalized, zone_name or str(tz)), shown, lints)


def explain_schedule(schedule: Schedule) -> tuple[Words, list[Lint]]:
    """A schedule in words, and what of it surprises whenever one looks; of a cron expression `explain` tells more."""
    return words_of(schedule), _lints_of(schedule)


def words_of(schedule: Schedule) -> Words:
    """A schedule in words; those of a cron expression end with its zone."""
    if isinstance(schedule, Once):
        at = format_instant(schedule.run_at, "seconds")
        return Words(f"Once, at {at}", f"一次，于 {at}")
    if isinstance(schedule, Every):
        return _every_words(schedule.every)
    return _cron_words(schedule.expr, schedule.timezone)


def _lints_of(schedule: Schedule) -> list[Lint]:
    if isinstance(schedule, Once):
        return []
    if isinstance(schedule, Every):
        return _too_often(schedule.every)
    return list(expression_lints(schedule.expr, compiled(schedule.expr)))


# A list of jobs says the words of each, and most of them are those of the last time.
@lru_cache(maxsize=4096)
def _cron_words(expr: str, zone_name: str) -> Words:
    return cron_words(compiled(expr).normalized, zone_name)


def clock_note_of(schedule: Schedule, slot: datetime) -> Words | None:
    """What a change of clocks has to do with a slot; only cron looks at clocks."""
    if not isinstance(schedule, CronSchedule):
        return None
    return clock_note(compiled(schedule.expr), zone(schedule.timezone), slot)


def _every_words(every: timedelta) -> Words:
    for unit, name, name_zh in _UNITS:
        if every % unit == timedelta(0):
            count = every // unit
            return Words(f"Every {name}" if count == 1 else f"Every {count} {name}s", f"每 {count} {name_zh}")
    text = format_duration(every)
    return Words(f"Every {text}", f"每 {text}")


def _too_often(every: timedelta) -> list[Lint]:
    if every >= _SECOND:
        return []
    times = f"{_SECOND / every:g}"
    return [Lint("too_often", Words(f"fires {times} times a second", f"每秒触发 {times} 次"))]
