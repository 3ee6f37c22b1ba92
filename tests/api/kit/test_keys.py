from __future__ import annotations

import msgspec
import pytest

from ksana.api.kit import KeyRing, Scope
from tests.api.kit.client import Client
from tests.api.kit.sample import NOW, FakeClock, FakeKeys, make_key, sample_app

READER = make_key(1, Scope.JOB_READ)
ADMIN = make_key(2, Scope.ADMIN)


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def keys() -> FakeKeys:
    return FakeKeys(READER.stored, ADMIN.stored)


@pytest.fixture
def ring(keys: FakeKeys, clock: FakeClock) -> KeyRing:
    return KeyRing(keys, clock)


@pytest.fixture
def client(ring: KeyRing) -> Client:
    return Client(sample_app(keys=ring))


async def test_a_key_is_taken_from_either_header(client: Client) -> None:
    assert (await client.get("/things", headers=bearer(READER.text))).status == 200
    assert (await client.get("/things", headers={"Authorization": f"bearer  {READER.text}"})).status == 200
    assert (await client.get("/things", headers={"X-API-Key": READER.text})).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Basic YTpi"},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer nonsense"},
        {"X-API-Key": "é"},
        bearer(make_key(3, Scope.ADMIN).text),
        bearer(READER.text[:-1] + "f"),
    ],
)
async def test_without_a_good_key_the_answer_is_401(client: Client, headers: dict[str, str]) -> None:
    answer = await client.get("/things", headers=headers)
    assert (answer.status, answer.json()["code"]) == (401, "UNAUTHENTICATED")
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_key_without_the_scope_is_forbidden_and_told_which(client: Client) -> None:
    answer = await client.post("/things", {"name": "a"}, headers=bearer(READER.text))
    assert (answer.status, answer.json()["code"]) == (403, "FORBIDDEN")
    assert "job:write" in answer.json()["message"]
    assert (await client.post("/things", {"name": "a"}, headers=bearer(ADMIN.text))).status == 201


async def test_a_public_route_needs_no_key(client: Client) -> None:
    assert (await client.get("/ping")).json() == {"principal": "public"}


async def test_while_no_key_exists_the_api_is_open_and_the_first_key_closes_it(
    clock: FakeClock,
) -> None:
    keys = FakeKeys()
    ring = KeyRing(keys, clock)
    client = Client(sample_app(keys=ring))
    assert (await client.get("/things")).status == 200
    keys.keys[READER.stored.id] = READER.stored
    ring.forget()
    assert (await client.get("/things")).status == 401


async def test_a_first_key_made_elsewhere_closes_the_api_within_seconds(clock: FakeClock) -> None:
    keys = FakeKeys()
    client = Client(sample_app(keys=KeyRing(keys, clock)))
    await client.get("/things")
    keys.keys[READER.stored.id] = READER.stored
    clock.seconds += 3
    assert (await client.get("/things")).status == 401


async def test_a_key_is_looked_up_once_in_a_few_seconds_and_a_revoked_one_dies_then(
    client: Client, keys: FakeKeys, clock: FakeClock
) -> None:
    for _ in range(3):
        assert (await client.get("/things", headers=bearer(READER.text))).status == 200
    assert keys.finds == 1
    keys.keys[READER.stored.id] = msgspec.structs.replace(READER.stored, revoked_at=NOW)
    clock.seconds += 3
    assert (await client.get("/things", headers=bearer(READER.text))).status == 401


async def test_revoking_every_key_does_not_open_the_api(client: Client, keys: FakeKeys) -> None:
    for key in (READER.stored, ADMIN.stored):
        keys.keys[key.id] = msgspec.structs.replace(key, revoked_at=NOW)
    assert (await client.get("/things")).status == 401


async def test_many_keys_do_not_grow_the_memory_without_bound(clock: FakeClock) -> None:
    stored = {f"{number:016x}": msgspec.structs.replace(READER.stored, id=f"{number:016x}") for number in range(1100)}
    keys = FakeKeys(*stored.values())
    ring = KeyRing(keys, clock)
    secret = READER.text.rpartition("_")[2]
    for key_id in stored:
        await ring.principal({b"x-api-key": f"ksk_{key_id}_{secret}".encode()})
    assert keys.finds == 1100
    assert len(ring._known) <= 1024
