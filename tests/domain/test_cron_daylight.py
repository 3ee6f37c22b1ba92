"""Cron through clock changes: fifty years of twenty zones, against the rule spelt out minute by minute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest

from ksana.domain.cron import parse_cron

ZONES = (
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Caracas",
    "America/Havana",
    "America/New_York",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Amman",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Asia/Pyongyang",
    "Asia/Shanghai",
    "Asia/Tehran",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Europe/London",
    "Europe/Moscow",
    "Pacific/Apia",
)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


class Pattern(NamedTuple):
    """An expression of minutes and hours, with its meaning beside it."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    is_fixed: bool

    def matches(self, local: datetime) -> bool:
        return local.minute in self.minutes and local.hour in self.hours


EVERY_HOUR = frozenset(range(24))
ELAPSED = (
    Pattern("*/30 * * * *", frozenset((0, 30)), EVERY_HOUR, False),
    Pattern("7 */2 * * *", frozenset((7,)), frozenset(range(0, 24, 2)), False),
)


def around(hour: int) -> Iterator[Pattern]:
    before, after = (hour - 1) % 24, (hour + 1) % 24
    yield Pattern(f"30 {hour} * * *", frozenset((30,)), frozenset((hour,)), True)
    yield Pattern(f"*/10 {hour} * * *", frozenset(range(0, 60, 10)), frozenset((hour,)), True)
    yield Pattern(f"0,45 {before},{after} * * *", frozenset((0, 45)), frozenset((before, after)), True)
    yield Pattern("15 0-23 * * *", frozenset((15,)), EVERY_HOUR, True)
    yield from ELAPSED


def wall(instant: datetime, tz: tzinfo) -> datetime:
    return instant.astimezone(tz).replace(tzinfo=None)


def changes(tz: tzinfo) -> Iterator[datetime]:
    """The first minute of every new offset."""
    day, last = datetime(1985, 1, 1, tzinfo=UTC), datetime(2035, 1, 1, tzinfo=UTC)
    offset = day.astimezone(tz).utcoffset()
    while day < last:
        if (following := (day + DAY).astimezone(tz).utcoffset()) != offset:
            low, high = day, day + DAY
            while high - low > MINUTE:
                middle = low + (high - low) // MINUTE // 2 * MINUTE
                if middle.astimezone(tz).utcoffset() == offset:
                    low = middle
                else:
                    high = middle
            yield high
        day, offset = day + DAY, following


def by_the_rule(pattern: Pattern, clock: list[tuple[datetime, datetime]]) -> list[datetime]:
    """The fires among consecutive minutes, given as (instant, local time)."""
    if not pattern.is_fixed:
        return [instant for instant, local in clock if pattern.matches(local)]
    first_shown: dict[datetime, datetime] = {}
    for instant, local in clock:
        first_shown.setdefault(local, instant)
    fires = set()
    local, last = clock[0][1], max(first_shown)
    while local <= last:
        if pattern.matches(local):
            shown = first_shown.get(local)
            fires.add(shown or min(instant for instant, later in clock if later > local))
        local += MINUTE
    return sorted(fires)


# The same few expressions over and over, and reading them is proven elsewhere.
parsed = cache(parse_cron)


@pytest.mark.parametrize("name", ZONES)
def test_every_clock_change_of_fifty_years_follows_the_rule(name: str) -> None:
    tz = ZoneInfo(name)
    seen = 0
    for change in changes(tz):
        span = timedelta(hours=3)
        clock = [(at, wall(at, tz)) for at in (change - span + MINUTE * i for i in range(6 * 60))]
        first, last = clock[0][0], clock[-1][0]
        for pattern in around(wall(change - MINUTE, tz).hour):
            expected = by_the_rule(pattern, clock)
            cron = parsed(pattern.text)
            ahead: list[datetime] = []
            at = first - MINUTE / 60
            while (at := cron.next_after(at, tz) or last + DAY) <= last:
                assert not ahead or at > ahead[-1]
                ahead.append(at)
            assert ahead == expected, (name, change, pattern.text)
            back: list[datetime] = []
            at = last + MINUTE / 60
            while (at := cron.previous_before(at, tz) or first - DAY) >= first:
                assert not back or at < back[-1]
                back.append(at)
            assert back[::-1] == expected, (name, change, pattern.text)
            assert cron.count_between(first - MINUTE / 60, last, tz) == len(expected)
        seen += 1
    assert seen


def fires(text: str, zone: str, start: str, n: int) -> list[str]:
    cron, tz = parse_cron(text), ZoneInfo(zone)
    at = datetime.fromisoformat(start).replace(tzinfo=tz).astimezone(UTC)
    found = []
    for _ in range(n):
        following = cron.next_after(at, tz)
        assert following is not None
        at = following
        found.append(at.astimezone(tz).strftime("%d %H:%M %z"))
    return found


def test_a_fixed_time_in_the_gap_fires_when_the_gap_ends() -> None:
    assert fires("30 2 * * *", "America/New_York", "2026-03-07T12:00", 2) == [
        "08 03:00 -0400",
        "09 02:30 -0400",
    ]


def test_fixed_times_in_one_gap_are_one_fire() -> None:
    assert fires("*/5 2 * * *", "America/New_York", "2026-03-07T12:00", 2) == [
        "08 03:00 -0400",
        "09 02:00 -0400",
    ]
    assert fires("0 2,3 * * *", "America/New_York", "2026-03-07T12:00", 2) == [
        "08 03:00 -0400",
        "09 02:00 -0400",
    ]


def test_a_fixed_time_that_comes_twice_fires_the_first_time() -> None:
    assert fires("30 1 * * *", "America/New_York", "2026-10-31T12:00", 2) == [
        "01 01:30 -0400",
        "02 01:30 -0500",
    ]


def test_a_search_from_inside_the_second_pass_does_not_repeat_the_first() -> None:
    second_pass = datetime(2026, 11, 1, 6, 10, tzinfo=UTC)
    tz = ZoneInfo("America/New_York")
    assert parse_cron("30 1 * * *").next_after(second_pass, tz) == datetime(2026, 11, 2, 6, 30, tzinfo=UTC)
    assert parse_cron("30 1 * * *").previous_before(second_pass, tz) == datetime(2026, 11, 1, 5, 30, tzinfo=UTC)


def test_a_wildcard_hour_follows_elapsed_time() -> None:
    assert fires("*/30 * * * *", "America/New_York", "2026-03-08T01:15", 3) == [
        "08 01:30 -0500",
        "08 03:00 -0400",
        "08 03:30 -0400",
    ]
    assert fires("*/30 * * * *", "America/New_York", "2026-11-01T00:45", 5) == [
        "01 01:00 -0400",
        "01 01:30 -0400",
        "01 01:00 -0500",
        "01 01:30 -0500",
        "01 02:00 -0500",
    ]
    assert fires("15 */2 * * *", "America/New_York", "2026-03-08T00:30", 1) == ["08 04:15 -0400"]


def test_seconds_follow_the_same_rule() -> None:
    assert fires("30 15 2 * * *", "America/New_York", "2026-03-07T12:00", 2) == [
        "08 03:00 -0400",
        "09 02:15 -0400",
    ]


def test_the_day_apia_skipped_fires_at_its_end() -> None:
    assert fires("0 12 30 12 *", "Pacific/Apia", "2011-12-29T18:00", 1) == ["31 00:00 +1400"]
    assert fires("0 12 * * *", "Pacific/Apia", "2011-12-29T18:00", 2) == ["31 00:00 +1400", "31 12:00 +1400"]
    assert fires("0 */6 * * *", "Pacific/Apia", "2011-12-29T13:00", 3) == [
        "29 18:00 -1000",
        "31 00:00 +1400",
        "31 06:00 +1400",
    ]


def test_lord_howe_moves_by_half_an_hour() -> None:
    assert fires("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", 1) == ["04 02:30 +1100"]
    assert fires("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00", 2) == [
        "05 01:45 +1100",
        "06 01:45 +1030",
    ]
    assert fires("45 * * * *", "Australia/Lord_Howe", "2026-04-05T01:00", 3) == [
        "05 01:45 +1100",
        "05 01:45 +1030",
        "05 02:45 +1030",
    ]
