"""Filling in slots of the past."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.kit.client import Answer
from tests.api.v2.world import World

HOURLY = {"kind": "cron", "expr": "0 * * * *"}


async def backfill(world: World, job: Any, since: str, until: str, **more: Any) -> Answer:
    body = {"since": f"2030-01-01T{since}Z", "until": f"2030-01-01T{until}Z", **more}
    return await world.post(f"/api/v2/jobs/{job['id']}/backfill", body)


async def test_slots_without_a_run_are_filled_in_once(world: World) -> None:
    job = await world.job(schedule=HOURLY)
    await world.advance("1h")
    dry = await backfill(world, job, "10:00:00", "23:00:00", dry_run=True)
    assert (dry.status, dry.json()) == (
        200,
        {
            "count": 3,
            "sample": ["2030-01-01T10:00:00.000Z", "2030-01-01T11:00:00.000Z", "2030-01-01T12:00:00.000Z"],
            "run_ids": [],
        },
    )
    assert (await world.seen("/api/v2/runs"))["total"] == 1
    made = await backfill(world, job, "10:00:00", "23:00:00")
    assert (made.status, made.json()["count"], len(made.json()["run_ids"])) == (202, 3, 3)
    await world.work()
    runs = [await world.seen(f"/api/v2/runs/{id}") for id in made.json()["run_ids"]]
    assert [(run["planned_at"], run["trigger"], run["state"]) for run in runs] == [
        ("2030-01-01T10:00:00.000Z", "catch_up", "SUCCESS"),
        ("2030-01-01T11:00:00.000Z", "catch_up", "SUCCESS"),
        ("2030-01-01T12:00:00.000Z", "catch_up", "SUCCESS"),
    ]
    again = await backfill(world, job, "10:00:00", "23:00:00")
    assert (again.status, again.json()) == (202, {"count": 0, "sample": [], "run_ids": []})


async def test_past_the_limit_of_the_job_they_wait_in_line_whatever_its_rule(world: World) -> None:
    job = await world.job(schedule=HOURLY, overlap={"rule": "skip"})
    ids = (await backfill(world, job, "09:00:00", "12:00:00")).json()["run_ids"]
    states = [(await world.seen(f"/api/v2/runs/{id}"))["state"] for id in ids]
    assert states == ["SCHEDULED", "WAITING", "WAITING", "WAITING"]
    await world.work()
    assert {(await world.seen(f"/api/v2/runs/{id}"))["state"] for id in ids} == {"SUCCESS"}


async def test_a_stretch_with_too_many_slots_is_refused_with_their_number(world: World) -> None:
    job = await world.job(schedule={"kind": "cron", "expr": "* * * * * *"})
    answer = await backfill(world, job, "10:00:00", "11:00:00")
    assert (answer.status, answer.json()["problems"][0]["field"]) == (400, "since")
    assert "3601 slots" in answer.json()["message"]


@pytest.mark.parametrize(
    ("since", "until", "field"),
    [("12:00:00", "11:00:00", "since"), ("soon", "11:00:00", "since"), ("11:00", "x", "until")],
)
async def test_a_stretch_that_is_none_is_refused(world: World, since: str, until: str, field: str) -> None:
    job = await world.job(schedule=HOURLY)
    answer = await backfill(world, job, since, until)
    assert answer.status == 400
    assert field in [problem["field"] for problem in answer.json()["problems"]]


async def test_a_stretch_may_begin_with_the_calendar(world: World) -> None:
    job = await world.job(schedule={"kind": "once", "run_at": "2030-01-01T13:00:00Z"})
    stretch = {"since": "0001-01-01T00:00:00Z", "until": "9999-12-31T23:59:59Z", "dry_run": True}
    answer = await world.post(f"/api/v2/jobs/{job['id']}/backfill", stretch)
    assert (answer.status, answer.json()["count"]) == (200, 0)


async def test_a_job_without_a_schedule_has_nothing_to_fill_in(world: World) -> None:
    answer = await backfill(world, await world.job(), "10:00:00", "11:00:00")
    assert (answer.status, answer.json()["code"]) == (409, "INVALID_STATE")
    assert (await backfill(world, {"id": 99}, "10:00:00", "11:00:00")).status == 404
