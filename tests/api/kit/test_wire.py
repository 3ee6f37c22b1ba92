from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from ksana.api.kit import timestamp


def test_an_instant_is_written_in_utc_with_milliseconds() -> None:
    assert timestamp(datetime(2026, 11, 15, 2, 35, tzinfo=UTC)) == "2026-11-15T02:35:00.000Z"
    shanghai = timezone(timedelta(hours=8))
    assert timestamp(datetime(2026, 11, 15, 2, 35, 0, 999999, shanghai)) == "2026-11-14T18:35:00.999Z"
    assert timestamp(None) is None


@given(st.datetimes(timezones=st.just(UTC)))
def test_an_instant_is_read_back_to_the_millisecond(at: datetime) -> None:
    assert datetime.fromisoformat(timestamp(at)) == at.replace(microsecond=at.microsecond // 1000 * 1000)
