"""Explain: the canonical text, the next fires, and a note for what tends to surprise."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from ksana.domain.errors import InvalidArgument
from ksana.domain.explain import explain

NEW_YORK = ZoneInfo("America/New_York")
MARCH = datetime(2026, 3, 7, tzinfo=UTC)


def notes(expr: str, n: int = 5, from_at: datetime = MARCH) -> list[str]:
    return explain(expr, NEW_YORK, from_at, n).notes


def test_an_expression_without_surprises_has_no_notes() -> None:
    explanation = explain("*/15 9 * * mon-fri", UTC, MARCH, 2)
    assert explanation.normalized == "0 */15 9 * * MON-FRI"
    assert explanation.next == [datetime(2026, 3, 9, 9, tzinfo=UTC), datetime(2026, 3, 9, 9, 15, tzinfo=UTC)]
    assert explanation.notes == []


def test_steps_that_do_not_divide_are_noted() -> None:
    assert notes("*/7 * * * *", 1) == ["uneven: minute 56 → 0 is 4 min"]
    assert "selects only 0" in notes("*/90 * * * *", 1)[0]
    assert "day 1 of every month" in notes("0 0 */2 * *", 1)[0]


def test_either_day_is_noted() -> None:
    assert notes("0 12 13 * FRI", 1) == ["fires when day-of-month 13 or day-of-week FRI matches, not only when both do"]


@pytest.mark.parametrize(
    ("expr", "from_at", "words"),
    [
        ("30 2 * * *", MARCH, ["2026-03-08 02:00", "03:00", "fire together at its end"]),
        ("30 * * * *", MARCH, ["2026-03-08 02:00", "left out"]),
        ("30 1 * * *", datetime(2026, 10, 31, tzinfo=UTC), ["2026-11-01 02:00", "first time only"]),
        ("30 * * * *", datetime(2026, 11, 1, tzinfo=UTC), ["2026-11-01 02:00", "both times"]),
    ],
)
def test_clock_changes_among_the_fires_are_noted(expr: str, from_at: datetime, words: list[str]) -> None:
    (note,) = notes(expr, 40 if "*" in expr.split()[1] else 5, from_at)
    assert [word for word in words if word not in note] == []


def test_clock_changes_that_touch_no_fire_are_not_noted() -> None:
    assert notes("30 12 * * *", 5) == []


def test_the_end_of_the_calendar_ends_the_list() -> None:
    explanation = explain("@yearly", UTC, datetime(9997, 6, 1, tzinfo=UTC), 5)
    assert [fire.year for fire in explanation.next] == [9998, 9999]


def test_a_bad_expression_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="never fires"):
        explain("0 0 31 2 *", UTC, MARCH, 5)
