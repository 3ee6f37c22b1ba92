"""Idempotency-Key on what creates: done once, answered alike."""

from __future__ import annotations

from tests.api.jobs.timers import HTTP, Timers

JOB = {"name": "t", "http": HTTP, "schedule": {"kind": "every", "every": "1h"}}
MISSED = {**JOB, "schedule": {"kind": "once", "run_at": "2029-01-01T00:00:00Z"}}


async def test_a_repeated_create_makes_one_job_and_answers_alike(any_timers: Timers) -> None:
    timers = any_timers
    first = await timers.send("POST", "/jobs", JOB, idempotency_key="k-1")
    await timers.advance("10m")
    again = await timers.send("POST", "/jobs", JOB, idempotency_key="k-1")
    assert (first.status, again.status, again.body) == (201, 201, first.body)
    assert again.headers["idempotency-replayed"] == "true"
    assert await timers.seen("/jobs") == [first.json()]


async def test_the_answer_that_is_kept_says_missed_too(timers: Timers) -> None:
    """K-33"""
    first = await timers.send("POST", "/jobs", MISSED, idempotency_key="k-1")
    again = await timers.send("POST", "/jobs", MISSED, idempotency_key="k-1")
    assert (again.body, again.json()["last_status"]) == (first.body, "missed")


async def test_a_repeated_run_now_runs_once(timers: Timers) -> None:
    """K-71"""
    made = await timers.create(schedule=JOB["schedule"])
    path = f"/jobs/{made['id']}/run-now"
    first = await timers.send("POST", path, idempotency_key="k-1")
    again = await timers.send("POST", path, idempotency_key="k-1")
    assert (first.status, again.status, again.body) == (200, 200, first.body)
    assert timers.sink.count == 1
    assert (await timers.send("POST", path)).json()["run_id"] != first.json()["run_id"]


async def test_a_key_used_for_something_else_is_refused(timers: Timers) -> None:
    await timers.send("POST", "/jobs", JOB, idempotency_key="k-1")
    other = await timers.send("POST", "/jobs", {**JOB, "name": "other"}, idempotency_key="k-1")
    assert (other.status, other.json()["code"]) == (422, "IDEMPOTENCY_MISMATCH")
    assert len(await timers.seen("/jobs")) == 1
