"""Alerts through apprise, to a receiver on this machine."""

import sys
from datetime import UTC, datetime
from urllib.parse import urlsplit

import msgspec
import pytest

from ksana.domain.alerts import Alert
from ksana.domain.errors import InvalidArgument
from ksana.domain.ports import Hook
from ksana.targets.hooks import build_hooks
from ksana.targets.http import TargetPolicy
from tests.kit.sink import Reply, Sink

# apprise loads a hundred services, some of which use what newer versions of Python do without.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

NOW = datetime(2026, 3, 1, 8, 0, 2, tzinfo=UTC)
OPEN = TargetPolicy.of(allow_loopback=True, allow_private=True)
CLOSED = TargetPolicy.of(allow_loopback=False, allow_private=False)
TOLD = {
    "run": {
        "id": 42,
        "state": "FAILED",
        "reason": None,
        "attempt": 3,
        "planned_at": "2026-03-01T08:00:00.000Z",
        "ended_at": "2026-03-01T08:00:02.000Z",
        "error": "503 from there",
    },
    "job": {"id": 7, "name": "nightly"},
}
ALERT = Alert(run_id=42, epoch=7, hook="x", body=msgspec.json.encode(TOLD), created_at=NOW, due_at=NOW)


def notifier(sink: Sink, policy: TargetPolicy = OPEN) -> Hook:
    url = f"json://{urlsplit(sink.url).netloc}/notify"
    [hook] = build_hooks([url], policy=policy, now=lambda: NOW, signing_secret=None)
    return hook


async def test_an_alert_arrives_in_words(sink: Sink) -> None:
    """C-156: a formatted message through the service the address names."""
    sink.on("/notify", Reply(200))
    assert await notifier(sink).deliver(ALERT) == ""
    told = msgspec.json.decode(sink.requests[0].body, type=dict[str, object])
    assert told["title"] == "nightly FAILED"
    assert str(told["message"]).splitlines() == [
        "run 42 of job nightly (7)",
        "planned 2026-03-01T08:00:00.000Z, ended 2026-03-01T08:00:02.000Z after 3 attempts",
        "503 from there",
    ]


async def test_a_service_that_does_not_take_it_is_not_delivered(sink: Sink) -> None:
    sink.on("/notify", Reply(500))
    assert await notifier(sink).deliver(ALERT) != ""


async def test_the_target_policy_holds_for_services_with_a_host(sink: Sink) -> None:
    assert "loopback" in await notifier(sink, CLOSED).deliver(ALERT)
    assert sink.requests == []


@pytest.mark.parametrize("url", ["nonsense://s3cret/y", "tgram://s3cret"])
def test_an_address_nobody_knows_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidArgument, match=r"alerts\.urls") as refusal:
        build_hooks([url], policy=OPEN, now=lambda: NOW, signing_secret=None)
    assert "s3cret" not in str(refusal.value)


def test_without_apprise_the_address_is_refused_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(InvalidArgument, match=r"pip install 'ksana-scheduler\[apprise\]'"):
        build_hooks(["mailto://me@example.com"], policy=OPEN, now=lambda: NOW, signing_secret=None)
