"""When a call is made again and what becomes of answers, without any wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from ksana.client import Conflict, Invalid, NotAllowed, NotFound, StillRunning, Unavailable, Unreachable
from ksana.client import jobs as job_calls
from ksana.client import runs as run_calls
from ksana.client.calls import Call, Conversation, Pause
from ksana.client.talks import Answer, Lost, Manners, Request, error_of, made
from ksana.domain.errors import InvalidArgument

MANNERS = Manners(headers={"Authorization": "Bearer ksk_secret"}, retries=3)
RUN = {
    "id": 7, "job_id": 1, "job_name": "j", "surface": "v2", "kind": "noop", "queue": "default", "trigger": "manual",
    "planned_at": "2030-01-01T00:00:00.000Z", "state": "RUNNING", "reason": None, "attempt": 1, "failures": 0,
    "reclaims": 0, "fence": 1, "priority": "normal", "due_at": "2030-01-01T00:00:00.000Z", "deadline_at": None,
    "node_id": 1, "created_at": "2030-01-01T00:00:00.000Z", "started_at": None, "ended_at": None, "duration_ms": None,
    "error": "", "a field of tomorrow": 1,
}  # fmt: skip


def answer(status: int = 200, body: Any = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, named, b"" if body is None else msgspec.json.encode(body))


class Server:
    """Answers as told, one after the other; time is what was paused."""

    def __init__(self, *answers: Answer | Lost) -> None:
        self._answers = list(answers)
        self.requests: list[Request] = []
        self.pauses: list[float] = []

    def have(self, described: Call[Any] | Conversation[Any]) -> Any:
        talk = made(described, MANNERS)
        try:
            step = next(talk)
            while True:
                if isinstance(step, Pause):
                    self.pauses.append(step.seconds)
                    step = talk.send(sum(self.pauses))
                    continue
                self.requests.append(step)
                said = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                step = talk.throw(said) if isinstance(said, Lost) else talk.send(said)
        except StopIteration as end:
            return end.value


def lost(*, was_sent: bool) -> Lost:
    return Lost("broke", was_sent=was_sent)


def test_what_creates_is_sent_again_under_the_same_key_until_it_is_answered() -> None:
    server = Server(lost(was_sent=True), answer(503), answer(502), answer(201, RUN))
    run = server.have(job_calls.trigger(1, input={"day": 1}))
    assert (run.id, run.state, run.is_over) == (7, "RUNNING", False)
    [key] = {request.headers["Idempotency-Key"] for request in server.requests}
    assert len(key) == 32
    assert len(server.requests) == 4
    assert 0.1 <= server.pauses[0] <= 0.2 <= server.pauses[1] <= 0.4 <= server.pauses[2] <= 0.8


def test_retries_are_bounded_and_a_server_that_asks_for_time_gets_it_within_reason() -> None:
    down = Server(lost(was_sent=False))
    with pytest.raises(Unreachable) as refused:
        down.have(run_calls.get(7))
    assert (len(down.requests), refused.value.maybe_done) == (4, False)
    busy = Server(answer(429, retry_after="3"), answer(200, RUN))
    busy.have(run_calls.get(7))
    assert busy.pauses == [3.0]
    at = (datetime.now(UTC) + timedelta(hours=1)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    with pytest.raises(Unavailable) as told:
        Server(answer(503, retry_after=at)).have(run_calls.get(7))
    assert 3500 < (told.value.retry_after or 0) <= 3600


@pytest.mark.parametrize(
    "call",
    [run_calls.retry(7), run_calls.cancel(7), job_calls.change(1, version=3, name="n"), job_calls.pause(1, version=3)],
)
def test_what_must_not_be_done_twice_is_sent_again_only_if_nothing_was_done(call: Call[Any]) -> None:
    with pytest.raises(Unreachable) as unknown:
        Server(lost(was_sent=True)).have(call)
    assert unknown.value.maybe_done
    with pytest.raises(Unavailable):
        Server(answer(504), answer(200, RUN)).have(call)
    server = Server(lost(was_sent=False), answer(503), answer(409, {"code": "CONFLICT"}))
    with pytest.raises(Conflict):
        server.have(call)
    assert all(request.is_fresh for request in server.requests)


def test_a_delete_that_is_repeated_and_finds_nothing_was_done() -> None:
    assert Server(lost(was_sent=True), answer(404)).have(job_calls.delete(1)) is None
    with pytest.raises(NotFound):
        Server(answer(404)).have(job_calls.delete(1))


def test_an_answer_that_is_no_good_becomes_the_exception_that_says_why() -> None:
    body = {
        "code": "INVALID_ARGUMENT",
        "message": "name: is empty",
        "request_id": "r-1",
        "problems": [{"field": "name", "message": "is empty"}],
    }
    error = error_of(answer(400, body))
    assert isinstance(error, Invalid)
    assert (error.status, error.code, error.request_id) == (400, "INVALID_ARGUMENT", "r-1")
    assert [(problem.field, problem.message) for problem in error.problems] == [("name", "is empty")]
    assert str(error) == "400 INVALID_ARGUMENT: name: is empty (request r-1)"
    kinds = {401: NotAllowed, 403: NotAllowed, 409: Conflict, 412: Conflict, 422: Invalid, 500: Unavailable}
    assert {status: type(error_of(answer(status, {}))) for status in kinds} == kinds
    page = error_of(Answer(502, {"x-request-id": "p"}, b"<html> Bad\n Gateway"))
    assert (page.code, page.message, page.request_id) == ("HTTP_502", "<html> Bad Gateway", "p")
    with pytest.raises(Unreachable, match="cannot read"):
        Server(answer(200, {"id": "seven"})).have(run_calls.get(7))


def test_waiting_looks_ever_less_often_and_no_longer_than_asked() -> None:
    over = {**RUN, "state": "SUCCESS"}
    server = Server(answer(200, RUN), answer(200, RUN), answer(200, over))
    assert server.have(run_calls.wait(7, "10s")).ok
    assert server.pauses == [0, 0.05, pytest.approx(0.075)]
    endless = Server(answer(200, RUN))
    with pytest.raises(StillRunning) as still:
        endless.have(job_calls.trigger(1, wait="10s"))
    assert still.value.run.id == 7
    assert sum(endless.pauses) == pytest.approx(10)
    with pytest.raises(NotFound):
        Server(answer(200, RUN), answer(404)).have(run_calls.wait(7))


def test_the_words_of_a_job_become_the_body_and_those_nobody_knows_are_refused() -> None:
    call = job_calls.create(
        "ping",
        http="GET https://example.com/ping",
        headers={"X": "y"},
        every=timedelta(minutes=5),
        retry={"max_attempts": 4, "initial_delay": timedelta(seconds=1)},
        tags=["a"],
    )
    assert msgspec.json.decode(call.body or b"") == {
        "name": "ping",
        "target": {
            "kind": "http",
            "config": {"method": "GET", "url": "https://example.com/ping", "headers": {"X": "y"}},
        },
        "schedule": {"kind": "every", "every": "5m"},
        "tags": ["a"],
        "retry": {"max_attempts": 4, "initial_delay": "1s"},
    }
    at = job_calls.change(1, at=datetime(2030, 1, 1, tzinfo=UTC), tags=[])
    assert msgspec.json.decode(at.body or b"") == {
        "schedule": {"kind": "once", "run_at": "2030-01-01T00:00:00+00:00"},
        "tags": [],
    }
    assert job_calls.change(1, unschedule=True).body == b'{"schedule":null}'
    for wrong in (
        {"evry": "5m"},
        {"every": "5m", "cron": "* * * * *"},
        {"tz": "UTC"},
        {"json": 1},
        {"http": "https://x"},
        {"http": "GET https://x", "target": {}},
        {"at": datetime(2030, 1, 1)},  # noqa: DTZ001 - that it has no zone is the point
    ):
        with pytest.raises(InvalidArgument):
            job_calls.create("j", **wrong)


def test_nothing_that_may_be_printed_shows_the_key() -> None:
    request = next(made(run_calls.get(7), MANNERS))
    assert "secret" not in repr(MANNERS) + repr(request)
