"""What functions say of how it went."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from ksana.domain.errors import InvalidArgument
from ksana.domain.signals import Ack, Retry, is_ack


@pytest.mark.parametrize("delay", ["1m30s", timedelta(seconds=90)])
def test_a_delay_is_text_or_a_span(delay: str | timedelta) -> None:
    assert Retry(delay).delay == timedelta(seconds=90)


@pytest.mark.parametrize("delay", ["5 min", "-5s", "90"])
def test_a_text_that_is_no_delay_is_refused(delay: str) -> None:
    with pytest.raises(InvalidArgument, match="delay"):
        Retry(delay)


@pytest.mark.parametrize("delay", ["721h", timedelta(days=31), timedelta.max])
def test_nobody_waits_for_months(delay: str | timedelta) -> None:
    assert Retry("720h").delay == timedelta(days=30)
    with pytest.raises(ValueError, match="30 days at most"):
        Retry(delay)


def test_an_ack_is_told_from_whatever_else_is_returned() -> None:
    ack = Ack(output=[1], next_action_at=datetime(2031, 1, 1, tzinfo=UTC))
    said = msgspec.json.decode(msgspec.json.encode(ack))
    assert is_ack(said)
    assert (said["output"], said["next_action_at"]) == ([1], "2031-01-01T00:00:00Z")
    assert not any(map(is_ack, ([1], None, {"output": 1}, {"ksana": "yes"})))
    with pytest.raises(InvalidArgument, match="audit_event_id"):
        Ack(audit_event_id=7)  # type: ignore[arg-type]
