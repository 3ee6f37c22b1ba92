"""Instants: strict RFC 3339 in, UTC out; zones by name with a hint for a misspelt one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.errors import InvalidArgument
from ksana.domain.times import format_instant, from_micros, parse_instant, to_micros, zone

NINE = datetime(2026, 3, 1, 9, tzinfo=UTC)
INSTANTS = st.datetimes(timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-01T09:00:00Z", NINE),
        ("2026-03-01t09:00:00z", NINE),
        ("2026-03-01T17:00:00+08:00", NINE),
        ("2026-03-01T09:00:00-00:00", NINE),
        ("2026-03-01T09:00:00.5Z", NINE.replace(microsecond=500_000)),
        ("2026-03-01T09:00:00.123456789Z", NINE.replace(microsecond=123_456)),
        ("2024-02-29T00:00:00Z", datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_rfc_3339_is_read_into_utc(text: str, instant: datetime) -> None:
    read = parse_instant(text, "run_at")
    assert read == instant
    assert read.tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2026-03-01T09:00:00", "add Z or an offset"),
        ("2026-03-01 09:00:00Z", "not an RFC 3339 instant"),
        ("2026-03-01T09:00Z", "not an RFC 3339 instant"),
        ("2026-03-01", "not an RFC 3339 instant"),
        ("2026-W09-7T09:00:00Z", "not an RFC 3339 instant"),
        ("2026-060T09:00:00Z", "not an RFC 3339 instant"),
        ("20260301T090000Z", "not an RFC 3339 instant"),
        ("2026-03-01T09:00:00+0800", "not an RFC 3339 instant"),
        ("2026-03-01T09:00:00+08", "not an RFC 3339 instant"),
        ("2026-03-01T09:00:00,5Z", "not an RFC 3339 instant"),
        ("2026-03-01T09:00:00.1234567890Z", "not an RFC 3339 instant"),
        ("2026-03-01T09:00:00Z\n", "not an RFC 3339 instant"),
        ("2026-12-31T23:59:60Z", "leap second"),
        ("2026-03-01T09:00:00+24:00", "impossible offset"),
        ("2026-03-01T09:00:00+08:60", "impossible offset"),
        ("2026-02-29T00:00:00Z", "not a date"),
        ("2026-03-01T24:00:00Z", "not a date"),
        ("0000-01-01T00:00:00Z", "not a date"),
        ("0001-01-01T00:00:00+01:00", "not a date"),
        ("9999-12-31T23:59:59-01:00", "not a date"),
        ("", "not an RFC 3339 instant"),
    ],
)
def test_anything_else_is_refused_with_the_field_and_the_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_instant(text, "schedule.run_at")
    assert caught.value.problems[0].field == "schedule.run_at"
    assert why in caught.value.problems[0].message


def test_what_is_not_text_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="expected RFC 3339 text"):
        parse_instant(1_780_000_000, "run_at")  # type: ignore[arg-type]


def test_instants_are_written_in_utc_at_the_precision_asked_for() -> None:
    instant = datetime(2026, 3, 1, 17, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=8)))
    assert format_instant(instant) == "2026-03-01T09:00:00.999Z"
    assert format_instant(instant, "seconds") == "2026-03-01T09:00:00Z"
    assert format_instant(instant, "micros") == "2026-03-01T09:00:00.999999Z"


@given(INSTANTS)
def test_a_written_instant_reads_back_the_same(instant: datetime) -> None:
    assert parse_instant(format_instant(instant, "micros"), "at") == instant


@given(INSTANTS)
def test_microseconds_are_exact_both_ways(instant: datetime) -> None:
    assert from_micros(to_micros(instant)) == instant
    assert to_micros(instant) == (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@given(st.text(alphabet="0123456789-:TZtz+. W", max_size=30) | st.text(max_size=20))
def test_no_text_raises_anything_but_invalid_argument(text: str) -> None:
    try:
        assert parse_instant(text, "at").tzinfo is UTC
    except InvalidArgument as error:
        assert [problem.field for problem in error.problems] == ["at"]


def test_zones_are_found_by_name_or_offset() -> None:
    assert zone("UTC") is UTC
    assert zone("+00:00") is UTC
    assert zone("Asia/Shanghai") is ZoneInfo("Asia/Shanghai")
    assert zone("+08:00") == timezone(timedelta(hours=8))
    assert zone("-03:30") == timezone(-timedelta(hours=3, minutes=30))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Asia/Shangai", "did you mean Asia/Shanghai?"),
        ("Local", 'write an IANA name such as "Asia/Shanghai"'),
        ("asia/shanghai", "did you mean Asia/Shanghai?"),
        ("america/new york", "did you mean America/New_York?"),
        ("shanghai", "did you mean Asia/Shanghai?"),
        ("Nowhere/Nothing", "IANA name"),
        ("", "IANA name"),
        ("America", "unknown zone"),
        ("../../etc/passwd", "unknown zone"),
        ("/etc/passwd", "unknown zone"),
        ("right/UTC", "unknown zone"),
        ("localtime", "unknown zone"),
        ("UTC\0", "unknown zone"),
        ("x" * 5000, "unknown zone"),
        ("\udcff", "unknown zone"),
        ("+8:00", "unknown zone"),
        ("+25:00", "unknown zone"),
    ],
)
def test_an_unknown_zone_is_refused_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        zone(name, "schedule.timezone")
    assert caught.value.problems[0].field == "schedule.timezone"
    assert hint in caught.value.problems[0].message


def test_a_zone_that_is_not_text_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="expected a zone name"):
        zone(8)  # type: ignore[arg-type]
