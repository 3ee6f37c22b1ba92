from __future__ import annotations

import pytest

from ksana.api.kit import KeyRing, Scope
from tests.api.kit.client import Client
from tests.api.kit.sample import FakeClock, FakeKeys, make_key, sample_app


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:7100", "127.0.0.1", "127.0.0.1:7100", "[::1]", "[::1]:7100"])
async def test_loopback_names_are_served_without_a_key(host: str) -> None:
    assert (await Client(sample_app(), {"host": host}).get("/things")).status == 200


@pytest.mark.parametrize("host", ["", "evil.example", "evil.example:7100", "127.0.0.1.evil.example", "[::2]", "[::1"])
async def test_another_host_is_refused_without_a_key(host: str) -> None:
    answer = await Client(sample_app(), {"host": host}).get("/things")
    assert (answer.status, answer.json()["code"]) == (421, "MISDIRECTED_REQUEST")


@pytest.mark.parametrize("header", ["Forwarded", "X-Forwarded-For", "X-Real-IP"])
async def test_what_a_proxy_passes_on_needs_a_key_unless_its_name_is_allowed(header: str) -> None:
    """A proxy on this machine reaches loopback for anybody."""
    answer = await Client(sample_app(), {"host": "localhost"}).get("/things", headers={header: "203.0.113.7"})
    assert (answer.status, answer.json()["code"]) == (403, "FORBIDDEN")
    assert "ksana key create" in answer.json()["message"]
    allowed = Client(sample_app(allowed_hosts=["ksana.example"]), {"host": "ksana.example"})
    assert (await allowed.get("/things", headers={header: "203.0.113.7"})).status == 200
    key = make_key(1, Scope.ADMIN)
    keyed = Client(sample_app(keys=KeyRing(FakeKeys(key.stored), FakeClock())), {"host": "localhost"})
    assert (await keyed.get("/things", headers={"X-API-Key": key.text, header: "203.0.113.7"})).status == 200


async def test_a_host_can_be_allowed_by_name_or_altogether() -> None:
    for allowed in (["ksana.example"], ["*"]):
        client = Client(sample_app(allowed_hosts=allowed), {"host": "ksana.example:80"})
        assert (await client.get("/things")).status == 200


async def test_with_a_key_or_on_a_public_route_any_host_is_served() -> None:
    key = make_key(1, Scope.ADMIN)
    client = Client(sample_app(keys=KeyRing(FakeKeys(key.stored), FakeClock())), {"host": "ksana.example"})
    assert (await client.get("/things", headers={"X-API-Key": key.text})).status == 200
    assert (await Client(sample_app(), {"host": "10.0.0.7"}).get("/ping")).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:7101"},
        {"Origin": "null"},
        {"Origin": "http://[bad"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_write_from_a_foreign_page_is_refused_and_a_read_is_not(headers: dict[str, str]) -> None:
    client = Client(sample_app())
    answer = await client.post("/things", {"name": "a"}, headers=headers)
    assert (answer.status, answer.json()["code"]) == (403, "FORBIDDEN")
    assert (await client.get("/things", headers=headers)).status == 200


async def test_a_write_from_our_own_page_or_an_allowed_one_is_taken() -> None:
    client = Client(sample_app(allowed_origins=["https://ops.example/"]))
    for number, headers in enumerate(
        (
            {"Origin": "http://127.0.0.1:7100"},
            {"Origin": "https://127.0.0.1:7100", "Sec-Fetch-Site": "same-origin"},
            {"Origin": "https://ops.example"},
            {"Sec-Fetch-Site": "none"},
        )
    ):
        assert (await client.post("/things", {"name": f"n{number}"}, headers=headers)).status == 201
