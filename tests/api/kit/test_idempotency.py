from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ksana.api.kit import Call, KeyRing, Route, Scope, Surface, build_app, encode
from ksana.domain.idempotency import IdempotencyRecord
from tests.api.kit.client import Client
from tests.api.kit.sample import NOW, FakeClock, FakeKeys, FakeStore, make_key, sample_app

KEY = {"Idempotency-Key": "order-66"}


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def client(store: FakeStore) -> Client:
    return Client(sample_app(store))


async def test_the_same_request_again_gets_the_first_answer_and_creates_nothing(
    client: Client, store: FakeStore
) -> None:
    first = await client.post("/things", {"name": "a"}, headers=KEY)
    again = await client.post("/things", {"name": "a"}, headers=KEY)
    assert (first.status, again.status) == (201, 201)
    assert again.body == first.body
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert len(store.things) == 1


async def test_the_same_key_with_another_request_is_refused(client: Client, store: FakeStore) -> None:
    await client.post("/things", {"name": "a"}, headers=KEY)
    answer = await client.post("/things", {"name": "b"}, headers=KEY)
    assert (answer.status, answer.json()["code"]) == (422, "IDEMPOTENCY_MISMATCH")
    assert len(store.things) == 1


async def test_a_request_without_a_key_is_never_looked_up(client: Client, store: FakeStore) -> None:
    await client.post("/things", {"name": "a"})
    assert (await client.post("/things", {"name": "a"})).status == 409
    assert store.finds == 0


async def test_an_answer_that_created_nothing_is_not_kept(client: Client, store: FakeStore) -> None:
    assert (await client.post("/things", {"name": ""}, headers=KEY)).status == 400
    assert (await client.post("/things", {"name": "a"}, headers=KEY)).status == 201


async def test_keys_of_two_callers_do_not_meet(store: FakeStore) -> None:
    one, other = make_key(1, Scope.ADMIN), make_key(2, Scope.ADMIN)
    client = Client(sample_app(store, KeyRing(FakeKeys(one.stored, other.stored), FakeClock())))
    for key, name in ((one, "a"), (other, "b")):
        answer = await client.post("/things", {"name": name}, headers={**KEY, "X-API-Key": key.text})
        assert answer.status == 201


@pytest.mark.parametrize("key", ["", " a", "a ", "é", "x" * 256, "a\tb"])
async def test_a_key_that_is_not_printable_ascii_is_refused(client: Client, key: str) -> None:
    answer = await client.post("/things", {"name": "a"}, headers={"Idempotency-Key": key})
    assert answer.status == 400
    assert answer.json()["problems"][0]["field"] == "Idempotency-Key"


@pytest.mark.parametrize("key", ["a", "!", "a b", "x" * 255])
async def test_a_printable_key_is_taken(client: Client, key: str) -> None:
    assert (await client.post("/things", {"name": "a"}, headers={"Idempotency-Key": key})).status == 201


async def test_a_repeat_while_the_first_still_runs_is_told_to_wait() -> None:
    store = FakeStore()
    entered, release = asyncio.Event(), asyncio.Event()

    async def slow(call: Call[None, None]) -> dict[str, bool]:
        entered.set()
        await release.wait()
        assert call.idempotency is not None
        store.remember(call.idempotency.answered(200, b'{"done":true}', NOW))
        return {"done": True}

    surface = Surface("slow", [Route("POST", "/slow", slow, Scope.RUN_WRITE, creates=True)])
    client = Client(build_app([surface], store, idempotency=store))
    first = asyncio.create_task(client.post("/slow", headers=KEY))
    await entered.wait()
    meanwhile = await client.post("/slow", headers=KEY)
    assert (meanwhile.status, meanwhile.json()["code"]) == (409, "IDEMPOTENCY_IN_FLIGHT")
    assert meanwhile.headers["retry-after"] == "1"
    release.set()
    assert (await first).status == 200
    assert (await client.post("/slow", headers=KEY)).headers["idempotency-replayed"] == "true"


class LateStore(FakeStore):
    """A store in which another node commits between our look-up and our write."""

    def __init__(self, body: bytes | None) -> None:
        super().__init__()
        self._body = body

    def remember(self, record: IdempotencyRecord) -> None:
        fingerprint = record.fingerprint if self._body is not None else b"other"
        theirs = IdempotencyRecord(record.scope, record.key, fingerprint, 201, self._body or b"{}", NOW)
        self.records[record.scope, record.key] = theirs
        super().remember(record)


async def test_who_loses_the_race_in_the_store_gets_the_winners_answer() -> None:
    body = encode({"id": 77})
    answer = await Client(sample_app(LateStore(body))).post("/things", {"name": "a"}, headers=KEY)
    assert (answer.status, answer.body) == (201, body)
    assert answer.headers["idempotency-replayed"] == "true"


async def test_who_loses_the_race_to_another_request_is_refused() -> None:
    answer = await Client(sample_app(LateStore(None))).post("/things", {"name": "a"}, headers=KEY)
    assert answer.status == 422


async def test_a_handler_that_fails_frees_its_key() -> None:
    store = FakeStore()
    fail = True

    async def flaky(call: Call[Any, Any]) -> None:
        if fail:
            raise RuntimeError("boom")

    surface = Surface("flaky", [Route("POST", "/flaky", flaky, Scope.RUN_WRITE, creates=True, status=204)])
    client = Client(build_app([surface], store, idempotency=store))
    assert (await client.post("/flaky", headers=KEY)).status == 500
    fail = False
    assert (await client.post("/flaky", headers=KEY)).status == 204
