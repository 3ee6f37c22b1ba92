"""The runs of a timer, newest first, and what the surface sees of jobs that others made."""

from __future__ import annotations

from typing import Any

import pytest

from ksana.domain.jobs import JobSpec
from tests.api.jobs.timers import REFUSED, UNWELL, Timers
from tests.kit.script import TIMED_OUT, Reply


async def test_a_run_tells_how_it_went(any_timers: Timers) -> None:
    """K-105: one entry per run, on every store."""
    timers = any_timers
    timers.sink.replies(UNWELL, Reply())
    made = await timers.every("1m", retry_backoff="2s")
    await timers.advance("70s")
    [run] = await timers.history(made)
    assert run == {
        "run_id": run["run_id"],
        "job_id": made["id"],
        "trigger": "schedule",
        "scheduled_at": "2030-01-01T12:01:00Z",
        "triggered_at": "2030-01-01T12:01:00Z",
        "started_at": "2030-01-01T12:01:00Z",
        "ended_at": "2030-01-01T12:01:02Z",
        "status": "success",
        "reason": "",
        "attempts": 2,
        "latency_ms": 2000,
        "error": "",
    }


async def test_the_newest_come_first_and_more_can_be_asked_for(timers: Timers) -> None:
    """K-105"""
    made = await timers.every("1s")
    await timers.advance("60s")
    path = f"/jobs/{made['id']}/runs"
    newest = await timers.seen(path)
    assert len(newest) == 50
    assert newest[0]["scheduled_at"] == "2030-01-01T12:01:00Z"
    rest = await timers.seen(f"{path}?before={newest[-1]['run_id']}&limit=20")
    assert [run["scheduled_at"] for run in newest + rest] == sorted(
        (run["scheduled_at"] for run in newest + rest), reverse=True
    )
    assert len(rest) == 10


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=many", "before=0", "before=x"])
async def test_a_bad_question_is_refused_by_name(timers: Timers, query: str) -> None:
    """K-75"""
    made = await timers.every("1s")
    answer = await timers.send("GET", f"/jobs/{made['id']}/runs?{query}")
    assert (answer.status, answer.json()["problems"][0]["field"]) == (400, query.partition("=")[0])


@pytest.mark.parametrize(
    ("reply", "status", "error"),
    [
        (Reply(), "success", ""),
        (Reply(REFUSED), "failed", "answered 404"),
        (Reply(UNWELL), "failed", "answered 500"),
        (Reply(TIMED_OUT), "timeout", "took too long"),
    ],
)
async def test_how_a_run_ends_is_how_the_timer_stands(timers: Timers, reply: Reply, status: str, error: str) -> None:
    """K-22, K-51, K-95, K-100: result, error and next run are written back together."""
    timers.sink.always = reply
    made = await timers.every("1m", max_retries=0)
    await timers.advance("1m")
    seen = await timers.look(made)
    assert (seen["last_status"], seen["last_error"]) == (status, error)
    assert (seen["last_run_at"], seen["next_run_at"]) == ("2030-01-01T12:01:00Z", "2030-01-01T12:02:00Z")
    [run] = await timers.history(made)
    assert (run["status"], run["error"]) == (status, error)
    assert await timers.seen("/jobs") == [seen]


async def test_a_success_clears_the_error_before_it(timers: Timers) -> None:
    """K-50, K-51"""
    timers.sink.replies(REFUSED)
    made = await timers.every("1m")
    await timers.advance("1m")
    assert (await timers.look(made))["last_error"] == "answered 404"
    await timers.advance("1m")
    assert (await timers.look(made))["last_error"] == ""


async def test_a_run_that_was_canceled_counts_as_skipped(timers: Timers) -> None:
    """K-22, X-48"""
    timers.sink.replies(Reply(hangs=True))
    made = await timers.every("1h")
    triggered = await timers.do(made, "run-now")
    assert (await timers.send("POST", f"/api/v2/runs/{triggered['run_id']}/cancel")).status == 200
    assert (await timers.look(made))["last_status"] == "skipped"


async def test_a_surface_sees_only_what_it_made(timers: Timers) -> None:
    """X-6: a job of /api/v2 is not listed, found or changed here; /api/v2 sees both."""
    other = {"name": "other", "target": {"kind": "script"}}
    assert (await timers.send("POST", "/api/v2/jobs", other)).json()["id"] == 1
    made = await timers.every("1m")
    assert await timers.seen("/jobs") == [made]
    calls: list[tuple[str, str, Any]] = [
        ("GET", "/jobs/1", None),
        ("PATCH", "/jobs/1", {"name": "x"}),
        ("DELETE", "/jobs/1", None),
        ("POST", "/jobs/1/run-now", None),
        ("POST", "/jobs/1/pause", None),
        ("GET", "/jobs/1/runs", None),
    ]
    assert [(await timers.send(*call)).status for call in calls] == [404] * len(calls)
    both = await timers.seen("/api/v2/jobs")
    assert [(job["surface"], job["ref"]) for job in both["items"]] == [("v2", ""), ("jobs", made["id"])]


async def test_a_long_list_is_shown_whole(timers: Timers) -> None:
    """K-67, K-63: more jobs than are looked up at a time."""
    engine = timers.main.engine
    made = await timers.every("1h")
    [job] = await timers.store.get_jobs([1])
    fields = {name: getattr(job, name) for name in JobSpec.__struct_fields__}
    await engine.jobs.create_many("jobs", [JobSpec(**{**fields, "ref": f"job-{n}"}) for n in range(1200)])
    seen = await timers.seen("/jobs")
    assert [job["id"] for job in seen] == [made["id"], *(f"job-{n}" for n in range(1200))]
    assert (await timers.seen("/jobs/job-777"))["id"] == "job-777"
