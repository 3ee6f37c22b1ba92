"""Every request and every answer the document shows, as it shows them."""

from __future__ import annotations

import json
from typing import Any

from tests.api.jobs.timers import HTTP, Timers
from tests.api.v2.world import World
from tests.kit.sink import Sink

EXAMPLE = r"""{
  "id": "",
  "name": "notify-order",
  "enabled": true,
  "type": "http",
  "http": {
    "method": "POST",
    "url": "https://api.example.com/orders/notify",
    "headers": {"Content-Type": "application/json"},
    "body": "{\n  \"event\": \"order.received\",\n  \"job_id\": \"<filled-by-service>\",\n  \"run_id\": \"<filled-by-service>\",\n  \"payload\": {\"order_id\": 12345}\n}"
  },
  "schedule": {"kind": "every", "every": "5m"},
  "timeout": "10s",
  "max_retries": 3,
  "retry_backoff": "5s"
}"""  # noqa: E501  # as it stands in the document

STORED: dict[str, Any] = {
    "id": "uuid-1",
    "name": "ping service",
    "enabled": True,
    "type": "http",
    "http": {
        "method": "GET",
        "url": "https://example.com/ping",
        "headers": {"X-Token": "abc"},
        "body": "",
    },
    "schedule": {"kind": "every", "every": "5m", "start_at": "", "jitter": "5s"},
    "timeout": "10s",
    "max_retries": 3,
    "retry_backoff": "5s",
    "last_run_at": "",
    "next_run_at": "2025-09-19T11:05:00Z",
    "last_status": "",
    "last_error": "",
}


async def test_the_example_job_is_accepted_verbatim(timers: Timers) -> None:
    """K-78, K-66: 201, an id of its own, all fields."""
    answer = await timers.client.call(
        "POST", "/jobs", body=EXAMPLE.encode(), headers={"content-type": "application/json"}
    )
    assert answer.status == 201
    made = answer.json()
    said = json.loads(EXAMPLE)
    assert made == {
        **said,
        "id": made["id"],
        "schedule": {"kind": "every", "every": "5m", "start_at": "", "jitter": "0s"},
        "last_run_at": "",
        "next_run_at": "2030-01-01T12:05:00Z",
        "last_status": "",
        "last_error": "",
    }
    assert answer.headers["location"] == f"/jobs/{made['id']}"


async def test_the_example_job_is_filled_in_when_it_is_sent(world: World, sink: Sink) -> None:
    """K-54, K-52, K-78: job_id and run_id are real, run_id is that of the header, everything else is as it was."""
    job = json.loads(EXAMPLE)
    job["http"]["url"] = sink.url + "/orders/notify"
    made = (await world.post("/jobs", job)).json()
    triggered = (await world.post(f"/jobs/{made['id']}/run-now")).json()
    await world.work()
    [request] = sink.requests
    filled = job["http"]["body"].replace("<filled-by-service>", made["id"], 1)
    filled = filled.replace("<filled-by-service>", triggered["run_id"], 1)
    assert request.body.decode() == filled
    assert (request.method, request.path) == ("POST", "/orders/notify")
    assert request.header("Content-Type") == "application/json"
    assert request.header("X-Ksana-Run-Id") == triggered["run_id"]


async def test_the_stored_job_of_the_document_may_be_sent_as_it_is(timers: Timers) -> None:
    """K-16, K-17, K-18, K-19, K-23: all 13 fields, in their order; what the service writes is not taken over."""
    answer = await timers.send("POST", "/jobs", STORED)
    assert answer.status == 201
    made = answer.json()
    assert list(made) == list(STORED)
    assert "2030-01-01T12:05:00Z" <= made["next_run_at"] < "2030-01-01T12:05:05Z"
    assert made == {**STORED, "next_run_at": made["next_run_at"]}
    assert await timers.look(made) == made


async def test_the_list_is_a_plain_array(timers: Timers) -> None:
    """K-67: no pages, `[]` while there is nothing."""
    assert await timers.seen("/jobs") == []
    made = [await timers.every("5m", name=f"job {n}") for n in range(3)]
    assert await timers.seen("/jobs") == made


async def test_one_job_is_shown_by_its_id(timers: Timers) -> None:
    """K-68"""
    made = await timers.every("5m")
    assert await timers.seen(f"/jobs/{made['id']}") == made
    missing = await timers.client.get("/jobs/nobody")
    assert (missing.status, missing.json()["error"]) == (404, 'there is no job "nobody"')


async def test_a_patch_changes_what_it_names_and_answers_the_job(timers: Timers) -> None:
    """K-69"""
    made = await timers.every("5m")
    changed = await timers.patch(made, name="renamed", max_retries=1)
    assert changed == {**made, "name": "renamed", "max_retries": 1}
    assert await timers.look(made) == changed


async def test_a_deleted_job_is_gone_and_never_fires(timers: Timers) -> None:
    """K-70: 204 without content."""
    made = await timers.every("1m")
    answer = await timers.send("DELETE", f"/jobs/{made['id']}")
    assert (answer.status, answer.body) == (204, b"")
    assert (await timers.client.get(f"/jobs/{made['id']}")).status == 404
    assert (await timers.send("DELETE", f"/jobs/{made['id']}")).status == 404
    assert await timers.seen("/jobs") == []
    await timers.advance("10m")
    assert timers.sink.count == 0


async def test_run_now_answers_with_the_run(timers: Timers) -> None:
    """K-71"""
    made = await timers.every("5m")
    triggered = await timers.do(made, "run-now")
    [run] = await timers.history(made)
    assert triggered == {"run_id": run["run_id"], "job_id": made["id"], "message": "Job triggered"}


async def test_pause_and_resume_answer_with_the_job(timers: Timers) -> None:
    """K-72"""
    made = await timers.every("5m")
    paused = await timers.do(made, "pause")
    assert paused == {**made, "enabled": False, "next_run_at": "", "last_status": "paused"}
    assert await timers.do(made, "resume") == made


async def test_health_answers_200(timers: Timers) -> None:
    """K-73"""
    assert (await timers.seen("/health"))["status"] == "ok"


async def test_all_of_it_in_a_row(any_timers: Timers) -> None:
    """K-74, K-97, K-4: create, query, update, disable, enable, run, delete, on every store."""
    timers = any_timers
    made = await timers.every("1m", name="first")
    assert await timers.seen("/jobs") == [made]
    changed = await timers.patch(made, http={"url": "https://example.com/other"}, timeout="2s")
    assert changed["http"] == {**HTTP, "url": "https://example.com/other", "headers": {}, "body": ""}
    assert (await timers.patch(made, enabled=False))["enabled"] is False
    assert (await timers.patch(made, enabled=True))["enabled"] is True
    await timers.do(made, "run-now")
    await timers.advance("1m")
    assert [run["trigger"] for run in await timers.history(made)] == ["manual", "schedule"]
    assert (await timers.look(made))["last_status"] == "success"
    assert (await timers.send("DELETE", f"/jobs/{made['id']}")).status == 204
    assert await timers.seen("/jobs") == []
