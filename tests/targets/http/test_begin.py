"""Attempts that nobody waits for: they come to the same as those that are awaited."""

import asyncio
import os
import socket
from datetime import timedelta
from typing import Any

import pytest

from ksana.domain.outcomes import Outcome, Verdict
from ksana.domain.ports import Begun
from ksana.targets.http import HttpTarget, Limits
from tests.kit.sink import Answer, Drip, Drop, Hang, Raw, Reply, Sink
from tests.targets.http.attempts import CLOSED, attempt, exchange_of
from tests.targets.http.conftest import MakeTarget

DEADLINE = 10.0


class Desk:
    """Begins attempts on a target that has a connection to the sink, and writes down what is told."""

    def __init__(self, target: HttpTarget, sink: Sink) -> None:
        self.target = target
        self.sink = sink
        self.told: list[Outcome] = []
        self._heard = asyncio.Event()

    async def warm(self) -> None:
        outcome = await self.target.execute(attempt(), {"url": self.sink.on("/warm", Reply(200))})
        assert outcome.verdict is Verdict.SUCCESS

    def begin(self, config: dict[str, Any], **said: Any) -> Begun:
        begun = self.target.begin(attempt(**said), config, self._tell)
        assert begun is not None and not isinstance(begun, Outcome)
        assert not self.told
        return begun

    def _tell(self, outcome: Outcome) -> None:
        self.told.append(outcome)
        self._heard.set()

    async def outcome(self) -> Outcome:
        await asyncio.wait_for(self._heard.wait(), DEADLINE)
        self._heard.clear()
        [outcome] = self.told
        self.told.clear()
        return outcome


@pytest.fixture
async def desk(target: HttpTarget, sink: Sink) -> Desk:
    desk = Desk(target, sink)
    await desk.warm()
    return desk


async def test_without_a_connection_nothing_is_begun(target: HttpTarget, sink: Sink) -> None:
    assert target.begin(attempt(), {"url": sink.url}, lambda outcome: None) is None
    assert sink.accepted == 0


async def test_what_cannot_be_sent_is_answered_at_once(desk: Desk) -> None:
    answer = desk.target.begin(attempt(), {"url": "http://{{job_name}}/"}, lambda outcome: None)
    assert isinstance(answer, Outcome)
    assert answer.verdict is Verdict.FAIL
    assert answer.error.startswith("not called: ")


async def test_a_host_that_was_not_checked_yet_is_left_to_whoever_waits(make_target: MakeTarget, sink: Sink) -> None:
    target = make_target(policy=CLOSED)
    assert target.begin(attempt(), {"url": sink.url}, lambda outcome: None) is None


SAYS: dict[str, Answer] = {
    "good": Reply(200, b"fine", {"X-Seen": "1"}),
    "empty": Reply(204),
    "bad request": Reply(404, b"no such thing"),
    "busy": Reply(429, b"later", {"Retry-After": "7"}),
    "chunked": Raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
    "until the end": Raw(b"HTTP/1.1 200 OK\r\n\r\nall of it"),
    "interim first": Raw(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    "garbage": Raw(),
    "drop": Drop(),
    "secret": Reply(200, b"ok", {"Set-Cookie": "id=1"}),
}


@pytest.mark.parametrize("says", SAYS)
async def test_it_comes_to_the_same_as_an_attempt_that_is_awaited(desk: Desk, sink: Sink, says: str) -> None:
    config = {"url": sink.on("/x", SAYS[says]), "body": '{"a": 1}', "headers": {"Authorization": "Bearer x"}}
    awaited = await desk.target.execute(attempt(), config)
    # Whether the answer is read for the first time or its head is known makes no difference.
    for _ in range(2):
        await desk.warm()
        desk.begin(config)
        assert await desk.outcome() == awaited


async def test_connections_go_from_one_to_the_next(desk: Desk, sink: Sink) -> None:
    for _ in range(5):
        desk.begin({"url": sink.url})
        assert (await desk.outcome()).verdict is Verdict.SUCCESS
    assert sink.accepted == 1


async def test_an_attempt_may_begin_where_another_is_told_of(desk: Desk, sink: Sink) -> None:
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    left = 20

    def again(outcome: Outcome) -> None:
        nonlocal left
        assert outcome.verdict is Verdict.SUCCESS, outcome.error
        left -= 1
        if left:
            assert desk.target.begin(attempt(run_id=left), {"url": sink.url}, again) is not None
        else:
            done.set_result(left)

    assert desk.target.begin(attempt(), {"url": sink.url}, again) is not None
    await asyncio.wait_for(done, DEADLINE)
    assert sink.accepted == 1
    assert sink.count == 21


async def test_redirects_are_followed(desk: Desk, sink: Sink) -> None:
    sink.on("/there", Reply(200, b"arrived"))
    desk.begin({"url": sink.on("/x", Reply(302, headers={"Location": "/there"}))})
    outcome = await desk.outcome()
    assert (outcome.verdict, outcome.result) == (Verdict.SUCCESS, b"arrived")
    assert exchange_of(outcome).request_line == f"GET {sink.url}/there"


async def test_a_redirect_to_nowhere_is_told(desk: Desk, sink: Sink) -> None:
    desk.begin({"url": sink.on("/x", Reply(302))})
    outcome = await desk.outcome()
    assert outcome.verdict is Verdict.FAIL
    assert "without a Location" in outcome.error


async def test_a_connection_that_died_idle_costs_nothing(desk: Desk, sink: Sink) -> None:
    [[connection]] = desk.target._pool._idle.values()
    fd = connection._transport.get_extra_info("socket").fileno()
    desk.begin({"url": sink.on("/x", Reply(200, b"fine")), "body": "once"})
    # The loop has not heard of it yet.
    with socket.socket(fileno=os.dup(fd)) as ours:
        ours.shutdown(socket.SHUT_RD)
    outcome = await desk.outcome()
    assert (outcome.verdict, outcome.result) == (Verdict.SUCCESS, b"fine")
    assert len(sink.to("/x")) == 1
    assert sink.accepted == 2


async def test_time_that_is_up_is_told(desk: Desk, sink: Sink) -> None:
    desk.begin({"url": sink.on("/x", Hang())}, timeout=timedelta(milliseconds=30))
    outcome = await desk.outcome()
    assert (outcome.verdict, outcome.timed_out) == (Verdict.RETRY, True)
    await sink.wait_until(lambda: not sink.open, "the connection to be closed")


async def test_one_that_is_given_up_lets_go_of_its_connection(desk: Desk, sink: Sink) -> None:
    begun = desk.begin({"url": sink.on("/x", Hang())})
    await sink.wait_for(2)
    begun.give_up()
    await sink.wait_until(lambda: not sink.open, "the connection to be closed")
    begun.give_up()
    assert desk.told == []


async def test_one_that_is_given_up_on_its_way_elsewhere_is_not_told(desk: Desk, sink: Sink) -> None:
    sink.on("/there", Hang())
    begun = desk.begin({"url": sink.on("/x", Reply(307, headers={"Location": "/there"}))})
    await sink.wait_for(3)
    begun.give_up()
    await sink.wait_until(lambda: not sink.open, "the connection to be closed")
    assert desk.told == []


async def test_giving_up_what_is_over_changes_nothing(desk: Desk, sink: Sink) -> None:
    begun = desk.begin({"url": sink.url})
    assert (await desk.outcome()).verdict is Verdict.SUCCESS
    begun.give_up()
    desk.begin({"url": sink.url})
    assert (await desk.outcome()).verdict is Verdict.SUCCESS
    assert sink.accepted == 1


async def test_closing_the_target_tells_what_is_under_way(desk: Desk, sink: Sink) -> None:
    desk.begin({"url": sink.on("/x", Drip([b"half"]))})
    await sink.wait_for(2)
    await desk.target.close()
    outcome = await desk.outcome()
    assert outcome.verdict is Verdict.RETRY
    assert "stopping" in outcome.error


async def test_a_signature_goes_with_it(make_target: MakeTarget, sink: Sink) -> None:
    desk = Desk(make_target(signing_secret=b"s" * 32), sink)
    await desk.warm()
    desk.begin({"url": f"{sink.url}/x", "body": "hello"})
    assert (await desk.outcome()).verdict is Verdict.SUCCESS
    assert (sink.to("/x")[0].header("webhook-signature") or "").startswith("v1,")


async def test_a_body_beyond_the_limit_is_cut_though_its_head_is_known(make_target: MakeTarget, sink: Sink) -> None:
    desk = Desk(make_target(limits=Limits(max_response_bytes=4)), sink)
    url = sink.on("/x", Reply(200, b"longer"))
    for _ in range(2):
        await desk.warm()
        desk.begin({"url": url})
        outcome = await desk.outcome()
        assert (outcome.result, exchange_of(outcome).truncated) == (None, True)
        assert exchange_of(outcome).response_body == b"long"
