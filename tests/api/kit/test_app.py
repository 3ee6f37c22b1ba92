from __future__ import annotations

import logging
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message

import ksana.api.kit
from ksana.api.kit import PUBLIC, Call, Reply, Route, Surface
from ksana.domain.errors import StoreUnavailable
from tests.api.kit.client import Client
from tests.api.kit.sample import sample_app


async def broken(call: Call[None, None]) -> None:
    raise RuntimeError("secret of the house")


async def unshowable(call: Call[None, None]) -> object:
    return object()


async def down(call: Call[None, None]) -> None:
    raise StoreUnavailable("the store does not answer")


async def plain(call: Call[None, None]) -> PlainTextResponse:
    return PlainTextResponse("plain")


async def metrics(call: Call[None, None]) -> bytes:
    return b"up 1\n"


async def split(call: Call[None, None]) -> Reply:
    return Reply({}, headers={"Location": "/a\r\nSet-Cookie: b"})


ODD = Surface(
    "odd",
    (
        Route("GET", "/broken", broken, PUBLIC),
        Route("GET", "/unshowable", unshowable, PUBLIC),
        Route("GET", "/down", down, PUBLIC),
        Route("GET", "/plain", plain, PUBLIC),
        Route("GET", "/metrics", metrics, PUBLIC, media_type="text/plain; version=0.0.4"),
        Route("GET", "/split", split, PUBLIC),
    ),
)


@pytest.fixture
def client() -> Client:
    return Client(sample_app(extra=(ODD,)))


async def test_every_answer_carries_the_safe_headers(client: Client) -> None:
    for path in ("/things", "/things/9", "/nowhere", "/plain"):
        headers = (await client.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


async def test_an_unknown_path_is_404_with_the_error_body(client: Client) -> None:
    answer = await client.get("/nowhere")
    assert answer.status == 404
    assert answer.json().keys() == {"error", "code", "message", "request_id"}
    assert answer.json()["error"] == answer.json()["message"]


async def test_a_wrong_method_is_405_and_names_the_right_ones(client: Client) -> None:
    answer = await client.call("PATCH", "/things/1")
    assert answer.status == 405
    assert answer.headers["allow"] == "DELETE, GET, HEAD, OPTIONS, PUT"
    assert answer.json()["error"] == "METHOD_NOT_ALLOWED"
    assert (await client.get("/things/1:start")).status == 405
    assert (await client.call("BREW", "/things")).status == 405


async def test_head_answers_like_get_without_the_body(client: Client) -> None:
    got, head = await client.get("/things"), await client.call("HEAD", "/things")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(got.body))


async def test_options_lists_the_methods(client: Client) -> None:
    answer = await client.call("OPTIONS", "/things")
    assert (answer.status, answer.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
    assert "access-control-allow-origin" not in answer.headers


async def test_errors_of_the_domain_are_shown_in_the_surfaces_style(client: Client) -> None:
    by_code = (await client.get("/things/9")).json()
    assert (by_code["error"], by_code["message"]) == ("NOT_FOUND", "there is no thing 9")
    by_text = (await client.post("/limited")).json()
    assert (by_text["error"], by_text["code"]) == ("one run at a time", "CONCURRENCY_LIMIT")


async def test_a_wrong_id_is_named_in_the_surfaces_style(client: Client) -> None:
    answer = await client.get("/things/nine")
    assert (answer.status, answer.json()["error"]) == (400, "INVALID_ID")
    assert answer.json()["problems"] == [{"field": "id", "message": "must be a whole number"}]


@pytest.mark.parametrize("path", ["/things/1:start", "/things/1%3Astart"])
async def test_a_colon_verb_is_found_raw_and_encoded(client: Client, path: str) -> None:
    await client.post("/things", {"name": "a"})
    assert (await client.post(path)).json() == {"id": 1, "reason": ""}


async def test_a_fault_of_ours_is_logged_and_not_shown(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "ksana.api"):
        answer = await client.get("/broken", headers={"X-Request-Id": "trace-me"})
    assert (answer.status, answer.json()["code"]) == (500, "INTERNAL")
    assert b"secret" not in answer.body
    assert "trace-me" in caplog.text
    assert "secret of the house" in caplog.text


async def test_every_answer_is_told_to_the_log_at_its_finest(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "ksana.api"):
        await client.get("/things/99?password=hidden")
    assert caplog.messages == ["GET /things/99 was answered with 400"]
    caplog.clear()
    await client.get("/things/99")
    assert caplog.messages == []


@pytest.mark.parametrize("path", ["/unshowable", "/split"])
async def test_a_reply_that_cannot_be_sent_is_a_fault_of_ours(client: Client, path: str) -> None:
    answer = await client.get(path)
    assert answer.status == 500
    assert "set-cookie" not in answer.headers


async def test_a_store_that_is_away_is_503_and_says_when_to_come_back(client: Client) -> None:
    answer = await client.get("/down")
    assert (answer.status, answer.json()["code"], answer.headers["retry-after"]) == (
        503,
        "STORE_UNAVAILABLE",
        "1",
    )


async def test_other_kinds_of_reply_are_sent_as_they_are(client: Client) -> None:
    assert (await client.get("/plain")).body == b"plain"
    answer = await client.get("/metrics")
    assert (answer.body, answer.headers["content-type"]) == (b"up 1\n", "text/plain; version=0.0.4")


async def test_a_deleted_thing_is_answered_without_a_body(client: Client) -> None:
    await client.post("/things", {"name": "a"})
    answer = await client.call("DELETE", "/things/1")
    assert (answer.status, answer.body) == (204, b"")
    assert "content-type" not in answer.headers


async def test_a_sub_path_of_a_proxy_is_taken_off(client: Client) -> None:
    assert (await client.get("/ksana/things", root_path="/ksana")).status == 200
    assert (await client.get("/ksanathings", root_path="/ksana")).status == 404


async def test_a_caller_that_hangs_up_is_not_answered() -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/things",
        "raw_path": b"/things",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    await sample_app()(scope, receive, send)
    assert sent == []


async def test_a_foreign_servers_lifespan_and_sockets_are_answered() -> None:
    asked: list[Message] = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[str] = []

    async def receive() -> Message:
        return asked.pop(0)

    async def send(message: Message) -> None:
        sent.append(message["type"])

    await sample_app()({"type": "lifespan"}, receive, send)
    await sample_app()({"type": "websocket"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete", "websocket.close"]


def test_the_public_names_are_there_once() -> None:
    names = ksana.api.kit.__all__
    assert all(hasattr(ksana.api.kit, name) for name in names)
    assert len(set(names)) == len(names)
