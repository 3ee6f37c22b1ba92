"""Cron expressions: when they fire next, when they fired last, and how often in between, exactly and quickly.

The dialect: five fields (minute, hour, day-of-month, month, day-of-week) or six (seconds first), `*`, lists,
ranges, steps counted from the field's minimum (`a/n` runs from a to the field's maximum), names, `L`, `L-3`,
`15W`, `LW`, `5L`, `MON#2`, `?`, and the aliases from `@hourly` to `@yearly`. With day-of-month and
day-of-week both restricted, either is enough; `*` and `*/1` do not restrict, `*/2` does.

Daylight saving. An expression is *fixed* when no term of its hour field starts with `*`, as in Vixie cron: so
`30 2 * * *`, `*/5 2 * * *`, `0 9-17 * * *` and `0 0-23/2 * * *` are fixed; `0 * * * *` and `0 */2 * * *` are
not.
- A fixed expression lives on a clock that never goes back. Local times that are skipped fire at the first
  instant after the gap, all of them together as one; local times that come twice fire the first time only.
- Any other expression follows elapsed time: it fires at every instant whose local time matches, so in both
  passes of a repeated hour and not at all for a skipped one.

No instant outside the years 1 to 9999 is ever returned; a search that would leave them gives None.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, final

import msgspec

from ksana.domain.cron_days import YEAR_KINDS, YEAR_SHIFT, YEAR_STARTS, year_masks
from ksana.domain.cron_fields import parse_fields
from ksana.domain.errors import InvalidArgument
from ksana.domain.offsets import Offsets, offsets_of

_DAY: Final = 86_400
_CYCLE: Final = 146_097
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR: Final = 9999
_FIRST_SECOND: Final = YEAR_STARTS[1] * _DAY
_LAST_SECOND: Final = YEAR_STARTS[_LAST_YEAR + 1] * _DAY - 1


@final
class Cron(msgspec.Struct, frozen=True, eq=False):
    """A cron expression. Two are equal when their normalized text is. Get one from `parse_cron`."""

    normalized: str
    is_fixed: bool
    years: tuple[int, ...]
    hours: int
    minutes: int
    seconds: int
    following_hour: tuple[int, ...]
    following_minute: tuple[int, ...]
    following_second: tuple[int, ...]
    first_in_minute: int
    first_in_hour: int
    first_in_day: int

    def __eq__(self, other: object) -> bool:
        return self.normalized == other.normalized if isinstance(other, Cron) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.normalized)

    def __repr__(self) -> str:
        return f"Cron({self.normalized!r})"

    def next_after(self, instant: datetime, tz: tzinfo) -> datetime | None:
        """The first fire strictly after an instant, in UTC."""
        elapsed = instant - _EPOCH
        found = self._next_second(elapsed.days * _DAY + elapsed.seconds, offsets_of(tz))
        return None if found is None or found > _LAST_SECOND else _EPOCH + timedelta(0, found)

    def previous_before(self, instant: datetime, tz: tzinfo) -> datetime | None:
        """The last fire strictly before an instant, in UTC."""
        elapsed = instant - _EPOCH
        second = elapsed.days * _DAY + elapsed.seconds
        found = self._previous_second(second if elapsed.microseconds else second - 1, offsets_of(tz))
        return None if found is None or found < _FIRST_SECOND else _EPOCH + timedelta(0, found)

    def count_between(self, after: datetime, until: datetime, tz: tzinfo) -> int:
        """How many fires lie in (after, until]; the cost is by the changes of offset, not by the fires."""
        start, end = after - _EPOCH, until - _EPOCH
        first = start.days * _DAY + start.seconds + 1
        last = end.days * _DAY + end.seconds
        offsets = offsets_of(tz)
        total = 0
        while first <= last:
            run = offsets.at(first)
            final = min(last, run.end - 1)
            shown = first - 1 + run.offset
            if self.is_fixed:
                if first == run.start and run.seen < run.start + run.offset:
                    # Everything the gap skipped, and the first instant after it, is one fire.
                    total += self.count_local(run.seen - 1, shown + 1) > 0
                    shown += 1
                shown = max(shown, run.seen - 1)
            if shown < final + run.offset:
                total += self.count_local(shown, final + run.offset)
            first = final + 1
        return total

    def _next_second(self, second: int, offsets: Offsets) -> int | None:
        _, end, offset, seen = offsets.at(second)
        local = second + offset + 1
        if self.is_fixed:
            found = self.next_local(local if local > seen else seen)
            if found is None or found < end + offset:
                return None if found is None else found - offset
            return _when_first_shown(found, offset, offsets)
        found = self.next_local(local)
        while found is not None and found >= end + offset:
            previous_offset = offset
            start, end, offset, _ = offsets.at(end)
            # A step back shows times again that were already searched; a step forward may skip the one found.
            if offset < previous_offset or found < start + offset:
                found = self.next_local(start + offset)
        return None if found is None else found - offset

    def _previous_second(self, second: int, offsets: Offsets) -> int | None:
        start, _, offset, seen = offsets.at(second)
        if self.is_fixed:
            found = self.previous_local(max(second + offset, seen - 1))
            return None if found is None else _when_first_shown(found, offset, offsets)
        found = self.previous_local(second + offset)
        while found is not None and found < start + offset:
            following_offset = offset
            start, end, offset, _ = offsets.at(start - 1)
            if offset > following_offset or found >= end + offset:
                found = self.previous_local(end + offset - 1)
        return None if found is None else found - offset

    def next_local(self, local: int) -> int | None:
        """The first match at or after a local second, counted from 1970 as if local time were UTC."""
        day, second = divmod(local, _DAY)
        year = (400 * day + YEAR_SHIFT) // _CYCLE + 1
        start = YEAR_STARTS[year]
        if day < start:
            year -= 1
            start = YEAR_STARTS[year]
        ahead = self.years[YEAR_KINDS[year]] >> (day - start)
        if ahead & 1:
            hour, second = divmod(second, 3600)
            next_hour = self.following_hour[hour]
            if next_hour == hour:
                minute, second = divmod(second, 60)
                next_minute = self.following_minute[minute]
                if next_minute == minute:
                    next_second = self.following_second[second]
                    if next_second >= 0:
                        return local - second + next_second
                    next_minute = self.following_minute[minute + 1]
                if next_minute >= 0:
                    return local - second + (next_minute - minute) * 60 + self.first_in_minute
                next_hour = self.following_hour[hour + 1]
            if next_hour >= 0:
                return day * _DAY + next_hour * 3600 + self.first_in_hour
            ahead ^= 1
        while not ahead:
            year += 1
            if year > _LAST_YEAR:
                return None
            day = YEAR_STARTS[year]
            ahead = self.years[YEAR_KINDS[year]]
        return (day + (ahead & -ahead).bit_length() - 1) * _DAY + self.first_in_day

    def previous_local(self, local: int) -> int | None:
        """The last match at or before a local second."""
        day, second = divmod(local, _DAY)
        year = _year_of(day)
        behind = self.years[YEAR_KINDS[year]] & (2 << day - YEAR_STARTS[year]) - 1
        if behind >> (day - YEAR_STARTS[year]):
            within = self._previous_in_day(second)
            if within >= 0:
                return day * _DAY + within
            behind ^= 1 << (day - YEAR_STARTS[year])
        while not behind:
            year -= 1
            if year < 1:
                return None
            behind = self.years[YEAR_KINDS[year]]
        return (YEAR_STARTS[year] + behind.bit_length() - 1) * _DAY + self._previous_in_day(_DAY - 1)

    def _previous_in_day(self, second: int) -> int:
        hour, second = divmod(second, 3600)
        minute, second = divmod(second, 60)
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1:
                earlier = _last_upto(self.seconds, second)
                if earlier >= 0:
                    return hour * 3600 + minute * 60 + earlier
            earlier = _last_upto(self.minutes, minute - 1)
            if earlier >= 0:
                return hour * 3600 + earlier * 60 + self.seconds.bit_length() - 1
        earlier = _last_upto(self.hours, hour - 1)
        if earlier < 0:
            return -1
        return earlier * 3600 + (self.minutes.bit_length() - 1) * 60 + self.seconds.bit_length() - 1

    def count_local(self, after: int, until: int) -> int:
        """How many local seconds in (after, until] match."""
        return self._rank(until, _year_of(after // _DAY)) - self._rank(after, _year_of(after // _DAY))

    def _rank(self, local: int, since: int) -> int:
        """How many local seconds match from the start of year `since` up to and including this one."""
        day, second = divmod(local, _DAY)
        year = _year_of(day)
        mask = self.years[YEAR_KINDS[year]]
        days = (mask & (1 << day - YEAR_STARTS[year]) - 1).bit_count()
        days += sum(self.years[kind].bit_count() for kind in YEAR_KINDS[since:year])
        total = days * self.hours.bit_count() * self.minutes.bit_count() * self.seconds.bit_count()
        if mask >> (day - YEAR_STARTS[year]) & 1:
            total += self._rank_in_day(second)
        return total

    def _rank_in_day(self, second: int) -> int:
        hour, second = divmod(second, 3600)
        minute, second = divmod(second, 60)
        hours = _count_upto(self.hours, hour - 1)
        minutes = _count_upto(self.minutes, minute - 1) if self.hours >> hour & 1 else 0
        seconds = _count_upto(self.seconds, second) if self.hours >> hour & 1 and self.minutes >> minute & 1 else 0
        return (hours * self.minutes.bit_count() + minutes) * self.seconds.bit_count() + seconds


def parse_cron(text: str, field: str = "cron") -> Cron:
    """Read an expression. What can never fire is refused too, so a Cron always fires some day."""
    fields = parse_fields(text, field)
    years = year_masks(fields.days)
    if not any(years):
        _, _, _, date, month, _ = fields.normalized.split()
        raise InvalidArgument.of(
            field, f'never fires: day-of-month "{date}" does not occur in month "{month}"; change either'
        )
    hours, minutes, seconds = (
        _following(fields.hours, 24),
        _following(fields.minutes, 60),
        _following(fields.seconds, 60),
    )
    return Cron(
        normalized=fields.normalized,
        is_fixed=not fields.has_star_hour,
        years=years,
        hours=fields.hours,
        minutes=fields.minutes,
        seconds=fields.seconds,
        following_hour=hours,
        following_minute=minutes,
        following_second=seconds,
        first_in_minute=seconds[0],
        first_in_hour=minutes[0] * 60 + seconds[0],
        first_in_day=hours[0] * 3600 + minutes[0] * 60 + seconds[0],
    )


@lru_cache(maxsize=1024)
def _following(mask: int, width: int) -> tuple[int, ...]:
    """For every value the first of the set that is not smaller, or -1. Expressions share these tables."""
    table = [-1] * (width + 1)
    for value in reversed(range(width)):
        table[value] = value if mask >> value & 1 else table[value + 1]
    return tuple(table)


def _when_first_shown(local: int, near: int, offsets: Offsets) -> int:
    """The UTC second at which a clock that never goes back reaches or passes a local second."""
    run = offsets.at(local - near)
    while local < run.seen:
        run = offsets.at(run.start - 1)
    while local >= run.end + run.offset:
        run = offsets.at(run.end)
    return max(local - run.offset, run.start)


def _year_of(day: int) -> int:
    year = (400 * day + YEAR_SHIFT) // _CYCLE + 1
    return year if YEAR_STARTS[year] <= day else year - 1


def _last_upto(mask: int, value: int) -> int:
    return (mask & (2 << value) - 1).bit_length() - 1 if value >= 0 else -1


def _count_upto(mask: int, value: int) -> int:
    return (mask & (2 << value) - 1).bit_count() if value >= 0 else 0
