"""The last runs of many jobs at once."""

from __future__ import annotations

import pytest

from tests.api.v2.world import World


async def test_the_last_runs_of_jobs_are_told_newest_first(world: World) -> None:
    good, bad, idle = await world.job("good"), await world.job("bad", "fail"), await world.job("idle")
    first = await world.run(good)
    await world.work()
    second = await world.run(good)
    failed = await world.run(bad)
    await world.work()
    waiting = await world.run(bad)
    shown = await world.seen(f"/api/v2/jobs/outcomes?ids={good['id']},{bad['id']},{idle['id']},999")
    ended = "2030-01-01T12:00:00.000Z"
    assert shown["items"] == [
        {
            "job_id": good["id"],
            "last": [
                {"run_id": second["id"], "state": "SUCCESS", "ended_at": ended},
                {"run_id": first["id"], "state": "SUCCESS", "ended_at": ended},
            ],
            "p95_ms": 0,
            "success_rate": 1.0,
        },
        {
            "job_id": bad["id"],
            "last": [
                {"run_id": waiting["id"], "state": "SCHEDULED", "ended_at": None},
                {"run_id": failed["id"], "state": "FAILED", "ended_at": ended},
            ],
            "p95_ms": 0,
            "success_rate": 0.0,
        },
        {"job_id": idle["id"], "last": [], "p95_ms": None, "success_rate": None},
        {"job_id": 999, "last": [], "p95_ms": None, "success_rate": None},
    ]


async def test_no_more_than_twenty_are_told(world: World) -> None:
    job = await world.job(overlap={"rule": "parallel"})
    runs = [await world.run(job) for _ in range(21)]
    [item] = (await world.seen(f"/api/v2/jobs/outcomes?ids={job['id']}"))["items"]
    assert [one["run_id"] for one in item["last"]] == [run["id"] for run in runs[:0:-1]]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("", "ids"),
        ("?ids=", "such as 1,2,3"),
        ("?ids=1,two", "such as 1,2,3"),
        ("?ids=" + ",".join(map(str, range(201))), "at most 200"),
    ],
)
async def test_ids_that_are_none_are_refused(world: World, query: str, why: str) -> None:
    answer = await world.get(f"/api/v2/jobs/outcomes{query}")
    assert (answer.status, answer.json()["problems"][0]["field"]) == (400, "ids")
    assert why in answer.body.decode()
