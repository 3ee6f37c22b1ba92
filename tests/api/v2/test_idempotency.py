"""Idempotency-Key on the requests that create: done once, answered alike, committed with what they made."""

from typing import Any

import pytest

from tests.api.v2.world import World

JOB = {"name": "j", "target": {"kind": "noop"}}
KEY = {"Idempotency-Key": "a-1"}


async def test_a_repeated_create_makes_one_job_and_answers_alike(world: World) -> None:
    first = await world.post("/api/v2/jobs", JOB, headers=KEY)
    await world.advance("1h")
    again = await world.post("/api/v2/jobs", JOB, headers=KEY)
    assert (first.status, again.status) == (201, 201)
    assert again.body == first.body
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert (await world.seen("/api/v2/jobs"))["total"] == 1


async def test_a_repeated_trigger_makes_one_run(world: World) -> None:
    path = f"/api/v2/jobs/{(await world.job())['id']}/runs"
    first = await world.post(path, {"input": 1}, headers=KEY)
    await world.work()
    again = await world.post(path, {"input": 1}, headers=KEY)
    assert again.body == first.body
    assert (await world.seen("/api/v2/runs"))["total"] == 1


@pytest.mark.parametrize(
    ("path", "body"), [("/api/v2/jobs", {**JOB, "name": "k"}), ("/api/v2/jobs/1/runs", {"input": 1})]
)
async def test_a_key_used_for_something_else_is_refused(world: World, path: str, body: Any) -> None:
    await world.post("/api/v2/jobs", JOB, headers=KEY)
    answer = await world.post(path, body, headers=KEY)
    assert (answer.status, answer.json()["code"]) == (422, "IDEMPOTENCY_MISMATCH")
    assert (await world.seen("/api/v2/jobs"))["total"] == 1
    assert (await world.seen("/api/v2/runs"))["total"] == 0


async def test_a_refused_request_leaves_its_key_unused(world: World) -> None:
    assert (await world.post("/api/v2/jobs", {**JOB, "name": ""}, headers=KEY)).status == 400
    assert (await world.post("/api/v2/jobs", JOB, headers=KEY)).status == 201


async def test_an_answer_lost_after_the_commit_is_found_by_repeating(world: World) -> None:
    with world.store.away("add_jobs", after_commit=True):
        lost = await world.post("/api/v2/jobs", JOB, headers=KEY)
    assert (lost.status, lost.json()["code"]) == (503, "STORE_UNAVAILABLE")
    again = await world.post("/api/v2/jobs", JOB, headers=KEY)
    assert (again.status, again.headers["idempotency-replayed"]) == (201, "true")
    [job] = (await world.seen("/api/v2/jobs"))["items"]
    assert job == again.json()


async def test_a_commit_that_did_not_happen_leaves_neither_job_nor_record(world: World) -> None:
    with world.store.away("add_jobs"):
        assert (await world.post("/api/v2/jobs", JOB, headers=KEY)).status == 503
    assert await world.store.find_idempotency("", "a-1") is None
    again = await world.post("/api/v2/jobs", JOB, headers=KEY)
    assert again.status == 201
    assert "idempotency-replayed" not in again.headers


async def test_a_trigger_lost_after_the_commit_is_found_by_repeating(world: World) -> None:
    path = f"/api/v2/jobs/{(await world.job())['id']}/runs"
    with world.store.away("add_run", after_commit=True):
        assert (await world.post(path, headers=KEY)).status == 503
    again = await world.post(path, headers=KEY)
    assert (again.status, again.headers["idempotency-replayed"]) == (201, "true")
    assert (await world.seen("/api/v2/runs"))["items"] == [again.json()]


async def test_without_a_key_every_request_counts(world: World) -> None:
    await world.post("/api/v2/jobs", JOB)
    await world.post("/api/v2/jobs", JOB)
    assert (await world.seen("/api/v2/jobs"))["total"] == 2
