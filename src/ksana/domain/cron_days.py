"""Which days of the year a cron expression selects, as one bit set for each of the fourteen kinds of year.

A Gregorian year is known by its length and the weekday it starts on. So the day part of any expression is
fourteen integers, and looking for its next day is a shift.
"""

from __future__ import annotations

from array import array
from datetime import MAXYEAR, date
from functools import lru_cache
from typing import Final

import msgspec

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_MONTH_LENGTHS: Final = (
    (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31),
    (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31),
)
_SUNDAY: Final = 0
_SATURDAY: Final = 6

NEAREST: Final = 32
"""Bit NEAREST + n of `DayRule.dates` is the workday nearest to day n."""
BEFORE_LAST: Final = 64
"""Bit BEFORE_LAST + n of `DayRule.dates` is the day n days before the last of the month."""
LAST_WORKDAY: Final = 96
"""Bit LAST_WORKDAY of `DayRule.dates` is the last workday of the month."""
NTH: Final = 8
"""Bit NTH * n + w of `DayRule.weekdays` is the n-th weekday w of the month, n from 1 to 5."""
LAST: Final = 48
"""Bit LAST + w of `DayRule.weekdays` is the last weekday w of the month."""


class DayRule(msgspec.Struct, frozen=True):
    """The day-of-month, month and day-of-week fields as bit sets.

    Bit n is day n, month n or weekday n (Sunday is 0); the special days have the places named above.
    """

    dates: int
    is_any_date: bool
    months: int
    weekdays: int
    is_any_weekday: bool


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _year_starts() -> array[int]:
    # Year 0 and the year after the last one are there because local time may run over either end by a day.
    starts = array("q", [1 - 366 - _EPOCH_ORDINAL])
    for year in range(MAXYEAR + 2):
        starts.append(starts[-1] + 365 + _is_leap(year))
    return starts


YEAR_STARTS: Final = _year_starts()
"""Days from 1970-01-01 to the first of January of each year, from year 0."""

YEAR_KINDS: Final = bytes(7 * _is_leap(year) + (start + 4) % 7 for year, start in enumerate(YEAR_STARTS[: MAXYEAR + 2]))
"""The kind of each year: the weekday it starts on, plus seven when it is a leap year."""

YEAR_SHIFT: Final = 400 * (_EPOCH_ORDINAL - 1) + 591
"""`(400 * day + YEAR_SHIFT) // 146097 + 1` is the year of a day counted from 1970, or the year after it."""


@lru_cache(maxsize=1024)
def year_masks(rule: DayRule) -> tuple[int, ...]:
    """The selected days of every kind of year; bit 0 is the first of January."""
    masks = []
    for lengths in _MONTH_LENGTHS:
        for weekday in range(7):
            mask = start = 0
            for month, length in enumerate(lengths, 1):
                if rule.months >> month & 1:
                    mask |= _month_mask(rule, length, (weekday + start) % 7) << start
                start += length
            masks.append(mask)
    return tuple(masks)


@lru_cache(maxsize=1024)
def _month_mask(rule: DayRule, length: int, first: int) -> int:
    if rule.is_any_date and rule.is_any_weekday:
        return (1 << length) - 1
    if rule.is_any_date:
        return _by_weekday(rule.weekdays, length, first)
    if rule.is_any_weekday:
        return _by_date(rule.dates, length, first)
    # The rule of cron that surprises everybody: when both fields are restricted, either one is enough.
    return _by_weekday(rule.weekdays, length, first) | _by_date(rule.dates, length, first)


def _by_date(dates: int, length: int, first: int) -> int:
    mask = dates >> 1 & ((1 << length) - 1)
    if dates >> NEAREST:
        for day in range(1, length + 1):
            if dates >> (NEAREST + day) & 1:
                mask |= 1 << (_nearest_workday(day, length, first) - 1)
            if dates >> (BEFORE_LAST + length - day) & 1:
                mask |= 1 << (day - 1)
        if dates >> LAST_WORKDAY & 1:
            mask |= 1 << (_nearest_workday(length, length, first) - 1)
    return mask


def _by_weekday(weekdays: int, length: int, first: int) -> int:
    mask = 0
    for day in range(1, length + 1):
        selected = weekdays | weekdays >> NTH * ((day + 6) // 7)
        if day + 7 > length:
            selected |= weekdays >> LAST
        if selected >> (first + day - 1) % 7 & 1:
            mask |= 1 << (day - 1)
    return mask


def _nearest_workday(day: int, length: int, first: int) -> int:
    # The nearest workday never leaves the month, so at either end it may be two days away.
    weekday = (first + day - 1) % 7
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == _SUNDAY:
        return day + 1 if day < length else day - 2
    return day
