from __future__ import annotations

import pytest

from ksana.api.kit import PUBLIC, Call, Route, Surface
from tests.api.kit.client import Client
from tests.api.kit.sample import sample_app

BODY = b'{"name":"a"}'


async def length(call: Call[bytes, None]) -> dict[str, int]:
    return {"length": len(call.body)}


RAW = Surface("raw", [Route("POST", "/raw", length, PUBLIC, raw=True)])


@pytest.fixture
def client() -> Client:
    return Client(sample_app(extra=(RAW,), max_body=64))


@pytest.mark.parametrize(
    "media",
    [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;charset=UTF-8",
        'application/json; charset="utf-8"',
        "application/vnd.ksana.v2+json",
    ],
)
async def test_json_by_any_of_its_names_is_taken(client: Client, media: str) -> None:
    assert (await client.post("/things", body=BODY, headers={"Content-Type": media})).status == 201


async def test_a_body_that_does_not_say_what_it_is_counts_as_json(client: Client) -> None:
    assert (await client.post("/things", body=BODY)).status == 201


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/jsonp"},
        {"Content-Type": ""},
        {"Content-Encoding": "gzip"},
    ],
)
async def test_anything_else_is_415(client: Client, headers: dict[str, str]) -> None:
    answer = await client.post("/things", body=BODY, headers=headers)
    assert (answer.status, answer.json()["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


async def test_a_missing_body_is_asked_for(client: Client) -> None:
    answer = await client.post("/things")
    assert (answer.status, answer.json()["code"]) == (400, "INVALID_JSON")
    assert "a body is required" in answer.json()["message"]


async def test_an_optional_body_may_be_missing_but_not_wrong(client: Client) -> None:
    await client.post("/things", body=BODY)
    assert (await client.post("/things/1:start")).json() == {"id": 1, "reason": ""}
    assert (await client.post("/things/1:start", {"reason": "now"})).json()["reason"] == "now"
    assert (await client.post("/things/1:start", {"raeson": "now"})).status == 400


async def test_a_body_in_pieces_is_put_together(client: Client) -> None:
    answer = await client.post("/things", body=[b'{"na', b'me":', b'"a"}', b""])
    assert answer.json()["name"] == "a"


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ([b" " * 40, b" " * 40], {}),
        ([b" " * 65], {}),
        ([b""], {"Content-Length": "65"}),
        ([b""], {"Content-Length": "9" * 5000}),
    ],
)
async def test_a_body_over_the_limit_is_413(client: Client, body: list[bytes], headers: dict[str, str]) -> None:
    answer = await client.post("/things", body=body, headers=headers)
    assert (answer.status, answer.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")


async def test_a_body_at_the_limit_is_read(client: Client) -> None:
    assert (await client.post("/raw", body=b"\0" * 64)).json() == {"length": 64}


async def test_a_length_that_is_no_number_is_refused(client: Client) -> None:
    assert (await client.post("/things", body=BODY, headers={"Content-Length": "-1"})).status == 400


async def test_a_raw_route_gets_the_bytes_whatever_they_are(client: Client) -> None:
    answer = await client.post("/raw", body=b"\xff\x00", headers={"Content-Type": "image/png"})
    assert answer.json() == {"length": 2}
