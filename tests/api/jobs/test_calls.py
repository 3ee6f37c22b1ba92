"""What a timer sends, and what it makes of the answer: real requests to a real server."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from tests.api.v2.world import World
from tests.kit.sink import Drop, Hang, Reply, Sink

HOURLY = {"kind": "every", "every": "1h"}


async def timer(world: World, **said: Any) -> Any:
    answer = await world.post("/jobs", {"schedule": HOURLY, "max_retries": 0, "retry_backoff": "1s", **said})
    assert answer.status == 201, answer.body
    return answer.json()


async def run(world: World, job: Any, *, rests: int = 0) -> Any:
    """Run a timer to its end, with so many rests of a second before its retries, and show it."""
    answer = await world.post(f"/jobs/{job['id']}/run-now")
    assert answer.status == 200, answer.body
    await world.work()
    for _ in range(rests):
        await world.advance("1s")
    return await world.seen(f"/jobs/{job['id']}")


@pytest.mark.parametrize(("method", "body"), [("GET", ""), ("POST", '{"a":  1}'), ("POST", "plain ünïcode\n")])
async def test_method_headers_and_body_arrive_as_they_were_said(
    world: World, sink: Sink, method: str, body: str
) -> None:
    """K-2, K-55: exact bytes, both headers."""
    headers = {"X-Token": "abc", "X-Other": "d e f"}
    job = await timer(world, http={"method": method, "url": sink.url + "/hook", "headers": headers, "body": body})
    assert (await run(world, job))["last_status"] == "success"
    [request] = sink.requests
    assert (request.method, request.path, request.body) == (method, "/hook", body.encode())
    assert (request.header("X-Token"), request.header("X-Other")) == ("abc", "d e f")


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        ('{"a": 1}', {}, "application/json"),
        ("[1]", {}, "application/json"),
        ("hello", {}, "text/plain; charset=utf-8"),
        ('{"a": 1}', {"content-type": "text/x"}, "text/x"),
        ("", {}, None),
    ],
)
async def test_the_content_type_is_the_jobs_own_or_follows_from_the_body(
    world: World, sink: Sink, body: str, headers: dict[str, str], expected: str | None
) -> None:
    """K-55"""
    await run(world, await timer(world, http={"url": sink.url, "body": body, "headers": headers}))
    assert sink.requests[0].header("Content-Type") == expected


async def test_all_four_fields_are_filled_in(world: World, sink: Sink) -> None:
    """K-54: job_id, run_id, and the planned and the actual instant, in UTC."""
    marked = dict.fromkeys(["job_id", "run_id", "scheduled_at", "triggered_at"], "<filled-by-service>")
    body = json.dumps({**marked, "note": "<filled-by-service>", "kept": [1, None]})
    every = {"kind": "every", "every": "1m"}
    job = await timer(world, schedule=every, http={"url": sink.url, "body": body})
    await world.advance("61s")
    [request] = sink.requests
    assert request.json() == {
        "job_id": job["id"],
        "run_id": request.header("X-Ksana-Run-Id"),
        "scheduled_at": "2030-01-01T12:01:00Z",
        "triggered_at": "2030-01-01T12:01:01Z",
        "note": "<filled-by-service>",
        "kept": [1, None],
    }


@pytest.mark.parametrize(
    ("status", "requests", "last_status"),
    [
        (200, 1, "success"),
        (204, 1, "success"),
        (400, 1, "failed"),
        (404, 1, "failed"),
        (408, 2, "failed"),
        (429, 2, "failed"),
        (500, 2, "failed"),
        (503, 2, "failed"),
    ],
)
async def test_the_answer_decides(world: World, sink: Sink, status: int, requests: int, last_status: str) -> None:
    """K-48, K-95: 2xx is success; 408, 429 and 5xx are tried again; the rest is final."""
    job = await timer(world, max_retries=1, http={"url": sink.on("/", Reply(status))})
    seen = await run(world, job, rests=2)
    assert (sink.count, seen["last_status"]) == (requests, last_status)
    assert (str(status) in seen["last_error"]) is (last_status == "failed")


async def test_retries_are_counted_spaced_and_carry_one_run_id(world: World, sink: Sink) -> None:
    """K-47, K-53, K-84, R14: three requests for two retries, a rest before each, one id."""
    job = await timer(world, max_retries=2, http={"url": sink.on("/", Reply(500))})
    await world.post(f"/jobs/{job['id']}/run-now")
    await world.work()
    assert sink.count == 1
    await world.advance("999ms")
    assert sink.count == 1
    await world.advance("1ms")
    assert sink.count == 2
    await world.advance("1s")
    await world.advance("10m")
    assert sink.count == 3
    assert len({request.header("X-Ksana-Run-Id") for request in sink.requests}) == 1


async def test_the_default_is_three_retries(world: World, sink: Sink) -> None:
    """K-84, K-28: four requests in all."""
    job = (await world.post("/jobs", {"schedule": HOURLY, "http": {"url": sink.on("/", Reply(500))}})).json()
    await world.post(f"/jobs/{job['id']}/run-now")
    await world.work()
    for _ in range(5):
        await world.advance("5s")
    assert sink.count == 4


async def test_a_success_on_a_retry_is_a_success(world: World, sink: Sink) -> None:
    """K-50, K-53"""
    job = await timer(world, max_retries=3, http={"url": sink.on("/", Reply(500), Reply(500), Reply(200))})
    seen = await run(world, job, rests=4)
    assert (sink.count, seen["last_status"], seen["last_error"]) == (3, "success", "")
    assert len({request.header("X-Ksana-Run-Id") for request in sink.requests}) == 1


async def test_a_target_that_does_not_answer_in_time_is_a_timeout_and_is_tried_again(world: World, sink: Sink) -> None:
    """K-46, K-47, K-83, K-95, K-100"""
    job = await timer(world, timeout="50ms", max_retries=1, http={"url": sink.on("/", Hang())})
    seen = await run(world, job, rests=1)
    assert (sink.count, seen["last_status"]) == (2, "timeout")
    assert seen["last_error"] != ""


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://nobody.invalid/"])
async def test_a_target_that_cannot_be_reached_is_a_failure_and_is_tried_again(world: World, url: str) -> None:
    """K-49"""
    job = await timer(world, max_retries=1, http={"url": url})
    seen = await run(world, job, rests=1)
    assert seen["last_status"] == "failed"
    assert seen["last_error"] != ""
    [attempted] = await world.seen(f"/jobs/{job['id']}/runs")
    assert attempted["attempts"] == 2


async def test_a_connection_that_breaks_is_a_failure_and_is_tried_again(world: World, sink: Sink) -> None:
    """K-49"""
    job = await timer(world, max_retries=1, http={"url": sink.on("/", Drop())})
    assert (await run(world, job, rests=1))["last_status"] == "failed"


async def test_connections_are_used_again(world: World, sink: Sink) -> None:
    """K-56: twenty calls, one after the other."""
    job = await timer(world, http={"url": sink.url})
    for _ in range(20):
        await run(world, job)
    assert (sink.count, sink.accepted) == (20, 1)


async def test_run_now_while_a_scheduled_call_is_under_way(world: World, sink: Sink) -> None:
    """K-58, K-102: over the wire; both end, and the later start has the word."""
    gate = asyncio.Event()
    every = {"kind": "every", "every": "10s"}
    url = sink.on("/", Reply(500, after=gate), Reply(200))
    job = await timer(world, schedule=every, http={"url": url})
    world.clock.move_to(world.clock.time + timedelta(seconds=10))
    await world.start()
    await sink.wait_for(1)
    await world.post(f"/jobs/{job['id']}/run-now")
    await world.start()
    await sink.wait_for(2)
    gate.set()
    await world.work()
    seen = await world.seen(f"/jobs/{job['id']}")
    assert (seen["last_status"], seen["last_error"]) == ("success", "")
    assert {run["status"] for run in await world.seen(f"/jobs/{job['id']}/runs")} == {"success", "failed"}
