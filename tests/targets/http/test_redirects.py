from datetime import timedelta

import pytest

from ksana.domain.outcomes import Verdict
from ksana.targets.http import HttpTarget, TargetPolicy
from tests.kit.sink import Hang, Reply, Sink
from tests.targets.http.attempts import attempt, exchange_of
from tests.targets.http.conftest import MakeTarget

SECRET = {"Authorization": "Bearer x", "Cookie": "a=1", "X-API-Key": "k", "X-Open": "o"}


def to(location: str, status: int = 302) -> Reply:
    return Reply(status, b"", {"Location": location})


@pytest.mark.parametrize(
    ("method", "status", "becomes"),
    [
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("POST", 303, "GET"),
        ("POST", 307, "POST"),
        ("POST", 308, "POST"),
        ("PUT", 302, "PUT"),
        ("PUT", 303, "GET"),
        ("DELETE", 308, "DELETE"),
        ("HEAD", 303, "HEAD"),
        ("GET", 301, "GET"),
    ],
)
async def test_the_status_says_with_which_method_to_go_on(
    target: HttpTarget, sink: Sink, method: str, status: int, becomes: str
) -> None:
    config = {"url": sink.on("/a", to("/b", status)), "method": method, "body": '{"a": 1}'}
    outcome = await target.execute(attempt(), config)
    assert outcome.verdict is Verdict.SUCCESS
    (request,) = sink.to("/b")
    kept = becomes == method
    assert request.method == becomes
    assert request.body == (b'{"a": 1}' if kept else b"")
    assert request.header("content-type") == ("application/json" if kept else None)
    assert request.header("x-ksana-run-id") == "42"
    assert exchange_of(outcome).request_line == f"{becomes} {sink.url}/b"


async def test_credentials_go_along_on_the_same_host(make_target: MakeTarget, sink: Sink) -> None:
    target = make_target(signing_secret=b"s")
    url = sink.on("/a", to("/b", 307))
    await target.execute(attempt(), {"url": url, "headers": SECRET})
    (request,) = sink.to("/b")
    assert {name: request.header(name) for name in SECRET} == SECRET
    assert request.header("webhook-signature")


async def test_credentials_stay_behind_when_the_host_changes(make_target: MakeTarget, sink: Sink) -> None:
    target = make_target(signing_secret=b"s")
    async with Sink() as other:
        authority = f"127.0.0.1:{other.port}"
        url = sink.on("/a", to(f"{other.url}/b", 307))
        config = {"url": url, "headers": SECRET | {"Host": "a.example"}, "mode": "async", "body": "{}"}
        outcome = await target.execute(attempt(), config)
        (request,) = other.requests
    assert outcome.verdict is Verdict.WAIT
    assert {name: request.header(name) for name in SECRET} == dict.fromkeys(SECRET) | {"X-Open": "o"}
    assert request.header("webhook-signature") is None
    assert request.header("host") == authority
    assert request.header("x-callback-token") == "tok"


async def test_credentials_in_urls_stay_behind_too(target: HttpTarget, sink: Sink) -> None:
    async with Sink() as other:
        url = sink.on("/a", to(other.url.replace("://", "://evil:pw@") + "/b"))
        await target.execute(attempt(), {"url": url.replace("://", "://user:pw@")})
        (request,) = other.requests
    assert request.header("authorization") is None


async def test_five_redirects_are_followed_and_no_more(target: HttpTarget, sink: Sink) -> None:
    for number in range(6):
        sink.on(f"/{number}", to(f"/{number + 1}"))
    assert (await target.execute(attempt(), {"url": f"{sink.url}/1"})).verdict is Verdict.SUCCESS
    outcome = await target.execute(attempt(), {"url": f"{sink.url}/0"})
    assert (outcome.verdict, outcome.code) == (Verdict.FAIL, 302)
    assert "after 5 redirects already" in outcome.error


async def test_a_loop_ends(target: HttpTarget, sink: Sink) -> None:
    outcome = await target.execute(attempt(), {"url": sink.on("/a", to("/a", 307))})
    assert outcome.verdict is Verdict.FAIL
    assert sink.count == 6


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Reply(302), "without a Location"),
        (to("ftp://example.com/x"), "leads out of HTTP"),
        (to("file:///etc/passwd"), "leads out of HTTP"),
        (to("http://[::1"), "cannot be read"),
        (to("http://256.1.1.1/"), "no IPv4 address"),
    ],
)
async def test_a_redirect_to_nowhere_is_a_failure(target: HttpTarget, sink: Sink, answer: Reply, words: str) -> None:
    outcome = await target.execute(attempt(), {"url": sink.on("/a", answer)})
    assert (outcome.verdict, outcome.code) == (Verdict.FAIL, 302)
    assert words in outcome.error


async def test_every_hop_is_checked(make_target: MakeTarget, sink: Sink) -> None:
    policy = TargetPolicy.of(allow_loopback=False, allow_private=False, allowed=["front.example"])

    async def lookup(host: str) -> list[str]:
        return ["127.0.0.1"]

    target = make_target(policy=policy, lookup=lookup)
    for inner in (
        "http://inner.example",
        "http://127.0.0.1",
        "http://[::ffff:127.0.0.1]",
        "http://0x7f.1",
        "http://169.254.169.254",
    ):
        sink.on("/a", to(f"{inner}:{sink.port}/b"))
        outcome = await target.execute(attempt(), {"url": f"http://front.example:{sink.port}/a"})
        assert outcome.verdict is Verdict.FAIL
        assert outcome.error.startswith(f"redirected from POST http://front.example:{sink.port}/a: not called: ")
    assert not sink.to("/b")


async def test_the_time_of_an_attempt_covers_its_redirects(target: HttpTarget, sink: Sink) -> None:
    sink.on("/b", Hang())
    short = attempt(timeout=timedelta(milliseconds=200))
    outcome = await target.execute(short, {"url": sink.on("/a", to("/b"))})
    assert outcome.timed_out
    assert outcome.error == f"redirected from POST {sink.url}/a: no answer within 0.2s"
