"""Durations: Go's notation, read strictly, written so that it reads back the same."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.durations import MAX_DURATION, format_duration, parse_duration
from ksana.domain.errors import InvalidArgument


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("5s", timedelta(seconds=5)),
        ("5m", timedelta(minutes=5)),
        ("1m30s", timedelta(seconds=90)),
        ("1.5h", timedelta(minutes=90)),
        ("300ms", timedelta(milliseconds=300)),
        ("1h15m30.918273645s", timedelta(hours=1, minutes=15, seconds=30, microseconds=918273)),
        ("7us", timedelta(microseconds=7)),
        ("7µs", timedelta(microseconds=7)),
        ("7μs", timedelta(microseconds=7)),
        ("1500ns", timedelta(microseconds=1)),
        (".5s", timedelta(milliseconds=500)),
        ("1.s", timedelta(seconds=1)),
        ("+5s", timedelta(seconds=5)),
        ("0", timedelta(0)),
        ("0s", timedelta(0)),
        ("876600h", MAX_DURATION),
    ],
)
def test_go_durations_are_read(text: str, span: timedelta) -> None:
    assert parse_duration(text) == span


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("5", 'write for example "5s"'),
        ("1.5", "has no unit"),
        ("", "not a duration"),
        ("-5s", "negative"),
        ("abc", "not a duration"),
        ("5 s", "not a duration"),
        ("5s ", "not a duration"),
        ("s", "not a duration"),
        (".s", "not a duration"),
        ("5d", "not a duration"),
        ("5S", "not a duration"),
        ("٥s", "not a duration"),
        ("1ns", "shorter than one microsecond"),
        ("876601h", "longer than 100 years"),
        ("9" * 120 + "h", "longer than 100 years"),
        ("9" * 5000 + "h", "not a duration"),
    ],
)
def test_anything_else_is_refused_with_the_field_and_the_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_duration(text, "schedule.every")
    assert caught.value.problems[0].field == "schedule.every"
    assert why in caught.value.problems[0].message


@pytest.mark.parametrize("value", [5, 5.0, None, b"5s", ["5s"]])
def test_what_is_not_text_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgument, match="expected text"):
        parse_duration(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(minutes=5), "5m"),
        (timedelta(hours=26, seconds=5), "26h5s"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(microseconds=7), "7µs"),
        (timedelta(seconds=-90), "-1m30s"),
    ],
)
def test_durations_are_written_the_way_people_write_them(span: timedelta, text: str) -> None:
    assert format_duration(span) == text


@given(st.timedeltas(min_value=timedelta(0), max_value=MAX_DURATION))
def test_a_written_duration_reads_back_the_same(span: timedelta) -> None:
    assert parse_duration(format_duration(span)) == span


@given(st.text(alphabet="0123456789.+-hmsunµ eE", max_size=30) | st.text(max_size=20))
def test_no_text_raises_anything_but_invalid_argument(text: str) -> None:
    try:
        assert parse_duration(text) >= timedelta(0)
    except InvalidArgument as error:
        assert [problem.field for problem in error.problems] == ["duration"]
