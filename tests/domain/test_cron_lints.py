"""What tends to surprise about an expression, by code."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from ksana.domain.explain import explain

BERLIN = ZoneInfo("Europe/Berlin")
WINTER = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expr", "codes"),
    [
        ("0 */5 * * *", ["uneven_step", "meant_minutes"]),
        ("0 */6 * * *", []),
        ("0 0 */5 * * *", ["uneven_step"]),
        ("*/7 * * * *", ["uneven_step"]),
        ("*/90 * * * *", ["step_too_long"]),
        ("0 0 * */5 *", ["uneven_step"]),
        ("0 0 * * */2", ["uneven_step"]),
        ("0 12 13 * FRI", ["either_day"]),
        ("* 9 * * *", ["whole_hour"]),
        ("* * * * *", []),
        ("* * * * * *", ["every_second"]),
        ("0 0 31 * *", ["short_months"]),
        ("0 0 31 1,3 *", []),
        ("0 0 L * *", []),
        ("0 0 9 ? * 2-6", ["quartz_weekday"]),
        ("0 0 9 ? * MON-FRI", []),
    ],
)
def test_an_expression_is_linted(expr: str, codes: list[str]) -> None:
    lints = explain(expr, UTC, WINTER, 1).lints
    assert [lint.code for lint in lints] == codes
    assert all(lint.message.en and lint.message.zh for lint in lints)


def test_who_meant_minutes_is_told_what_to_write() -> None:
    lint = explain("0 */5 * * 1-5", UTC, WINTER, 1).lints[-1]
    assert lint.message.en == "wanted every 5 minutes?  */5 * * * 1-5"


@pytest.mark.parametrize(
    ("expr", "from_at", "notes"),
    [
        ("30 2 * * *", "2030-03-30T12:00:00Z", ["moved to the end of the gap", None]),
        ("30 2 * * *", "2030-10-26T12:00:00Z", ["fires the first time only", None]),
        ("30 * * * *", "2030-10-27T00:00:00Z", ["comes twice: the first", "the second time", None]),
        ("30 * * * *", "2030-03-31T00:00:00Z", [None, None]),
        ("0 12 * * *", "2030-03-30T12:00:00Z", [None, None]),
    ],
)
def test_each_fire_knows_what_the_clocks_do_to_it(expr: str, from_at: str, notes: list[str | None]) -> None:
    fires = explain(expr, BERLIN, datetime.fromisoformat(from_at), len(notes)).fires
    for fire, note in zip(fires, notes, strict=True):
        assert (fire.dst is None) if note is None else (fire.dst is not None and note in fire.dst.en)
