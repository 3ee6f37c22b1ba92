"""Webhooks: an alert arrives as a signed POST, or the hook says why it did not, without giving its address away."""

import hmac
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import pytest

from ksana.domain.alerts import Alert
from ksana.domain.errors import InvalidArgument
from ksana.domain.ports import Hook
from ksana.targets.hooks import build_hooks, name_of
from ksana.targets.http import TargetPolicy
from tests.kit.sink import Reply, Sink

NOW = datetime(2026, 3, 1, 8, 0, 2, tzinfo=UTC)
OPEN = TargetPolicy.of(allow_loopback=True, allow_private=True)
ALERT = Alert(run_id=42, epoch=7, hook="x", body=b'{"event": "run.failed"}', created_at=NOW, due_at=NOW, attempts=1)

Make = Callable[..., Hook]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Make hooks that are closed after the test."""
    made: list[Hook] = []

    def make(url: str, policy: TargetPolicy = OPEN, secret: bytes | None = None) -> Hook:
        made.extend(build_hooks([url], policy=policy, now=lambda: NOW, signing_secret=secret))
        return made[-1]

    yield make
    for hook in made:
        await hook.close()


async def test_an_alert_arrives_as_a_signed_post(make: Make, sink: Sink) -> None:
    """C-14: signed like every call of the server; the id is the same over all deliveries."""
    hook = make(sink.on("/hook", Reply(204)), secret=b"0123456789abcdef")
    assert await hook.deliver(ALERT) == ""
    [request] = sink.requests
    assert (request.method, request.body) == ("POST", ALERT.body)
    assert request.header("content-type") == "application/json"
    stamp = str(int(NOW.timestamp()))
    signed = hmac.digest(b"0123456789abcdef", f"alert_42_7.{stamp}.".encode() + ALERT.body, "sha256")
    assert request.header("webhook-id") == "alert_42_7"
    assert request.header("webhook-timestamp") == stamp
    assert request.header("webhook-signature") == "v1," + b64encode(signed).decode()


async def test_without_a_secret_nothing_is_signed(make: Make, sink: Sink) -> None:
    assert await make(sink.on("/hook", Reply(200))).deliver(ALERT) == ""
    assert sink.requests[0].header("webhook-signature") is None


@pytest.mark.parametrize("status", [302, 400, 404, 410, 429, 500, 503])
async def test_whatever_is_no_success_is_not_delivered(make: Make, sink: Sink, status: int) -> None:
    url = sink.on("/secret-path", Reply(status, b"sorry", {"Location": "/elsewhere"}))
    problem = await make(url).deliver(ALERT)
    assert str(status) in problem
    assert "secret-path" not in problem
    assert len(sink.requests) == 1


async def test_nobody_there_is_said_so(make: Make) -> None:
    assert await make("http://127.0.0.1:9/x").deliver(ALERT) != ""


@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "0.0.0.0", "224.0.0.1"])
async def test_metadata_services_are_never_called(make: Make, host: str) -> None:
    """The target policy holds for hooks too."""
    problem = await make(f"http://{host}/latest").deliver(ALERT)
    assert "never a target" in problem


async def test_a_server_others_can_reach_does_not_call_its_own_machine(make: Make, sink: Sink) -> None:
    closed = TargetPolicy.of(allow_loopback=False, allow_private=False)
    problem = await make(sink.on("/hook", Reply(200)), policy=closed).deliver(ALERT)
    assert "loopback" in problem
    assert sink.requests == []


async def test_credentials_in_the_address_are_sent_and_never_shown(make: Make, sink: Sink) -> None:
    url = sink.on("/hook", Reply(500)).replace("http://", "http://me:s3cret@")
    hook = make(url)
    problem = await hook.deliver(ALERT)
    assert sink.requests[0].header("authorization") == "Basic " + b64encode(b"me:s3cret").decode()
    assert "s3cret" not in problem + hook.name


def test_a_name_stays_the_same_and_gives_nothing_away() -> None:
    url = "https://hooks.example.com/services/T0/B0/s3cret?key=s3cret"
    assert name_of(url) == name_of(url)
    assert name_of(url).startswith("https://hooks.example.com #")
    assert "s3cret" not in name_of(url) + name_of("tgram://s3cret/123") + name_of("mailto://me:s3cret@example.com")
    assert name_of(url) != name_of(url + "x")


def test_an_address_given_twice_is_one_hook() -> None:
    hooks = build_hooks(["http://h/x"] * 2, policy=OPEN, now=lambda: NOW, signing_secret=None)
    assert len(hooks) == 1


def test_an_address_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"alerts\.urls"):
        build_hooks(["http://exa mple/x"], policy=OPEN, now=lambda: NOW, signing_secret=None)
