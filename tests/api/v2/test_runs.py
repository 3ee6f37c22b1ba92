"""Runs over HTTP: by hand and by schedule, listed, looked into, canceled, tried again."""

import asyncio
from typing import Any

import pytest

from tests.api.v2.world import World
from tests.kit.sink import Hang, Reply, Sink


async def test_a_run_by_hand_is_shown_whole_before_and_after(world: World) -> None:
    job = await world.job("hello", "echo")
    answer = await world.post(f"/api/v2/jobs/{job['id']}/runs", {"input": {"who": "you"}})
    assert answer.status == 201
    assert answer.headers["location"] == "/api/v2/runs/1"
    now = "2030-01-01T12:00:00.000Z"
    waiting = {
        "id": 1,
        "job_id": job["id"],
        "job_name": "hello",
        "surface": "v2",
        "kind": "echo",
        "queue": "default",
        "trigger": "manual",
        "planned_at": now,
        "state": "SCHEDULED",
        "reason": None,
        "attempt": 0,
        "failures": 0,
        "reclaims": 0,
        "fence": 0,
        "priority": "normal",
        "due_at": now,
        "deadline_at": None,
        "node_id": None,
        "created_at": now,
        "started_at": None,
        "ended_at": None,
        "duration_ms": None,
        "error": "",
        "progress": None,
        "parent_id": None,
        "step": None,
        "input": {"who": "you"},
    }
    assert answer.json() == waiting
    await world.work()
    ended = {
        "state": "SUCCESS",
        "attempt": 1,
        "fence": 2,
        "started_at": now,
        "ended_at": now,
        "duration_ms": 0,
    }
    assert await world.seen("/api/v2/runs/1") == {**waiting, **ended}
    [attempt] = await world.seen("/api/v2/runs/1/attempts")
    assert attempt == {
        "number": 1,
        "fence": 1,
        "node_id": attempt["node_id"],
        "started_at": now,
        "ended_at": now,
        "duration_ms": 0,
        "verdict": "success",
        "timed_out": False,
        "code": None,
        "error": "",
        "result": {"who": "you"},
        "request": None,
        "response": None,
    }


@pytest.mark.parametrize("body", [b"", b"{}", b'{"input": null}'])
async def test_a_run_needs_no_input(world: World, body: bytes) -> None:
    job = await world.job()
    answer = await world.call("POST", f"/api/v2/jobs/{job['id']}/runs", body=body)
    assert (answer.status, answer.json()["input"]) == (201, None)


async def test_a_misspelt_input_is_refused(world: World) -> None:
    job = await world.job()
    answer = await world.post(f"/api/v2/jobs/{job['id']}/runs", {"inptu": 1})
    assert (answer.status, answer.json()["problems"][0]["field"]) == (400, "inptu")
    assert (await world.seen("/api/v2/runs"))["total"] == 0


async def test_a_paused_job_can_be_run_by_hand(world: World) -> None:
    run = await world.run(await world.job(enabled=False))
    await world.work()
    assert (await world.seen(f"/api/v2/runs/{run['id']}"))["state"] == "SUCCESS"


async def test_a_run_too_many_waits_or_is_refused_as_the_job_says(world: World) -> None:
    waits = await world.job("waits")
    await world.run(waits)
    second = await world.run(waits)
    assert (second["state"], second["reason"]) == ("WAITING", "slot")
    skips = await world.job("skips", overlap={"rule": "skip"})
    await world.run(skips)
    refused = await world.post(f"/api/v2/jobs/{skips['id']}/runs")
    assert (refused.status, refused.json()["code"]) == (409, "CONCURRENCY_LIMIT")


@pytest.mark.parametrize("path", ["", "/attempts"])
async def test_a_run_that_does_not_exist_is_not_found(world: World, path: str) -> None:
    answer = await world.get(f"/api/v2/runs/99{path}")
    assert (answer.status, answer.json()["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("verb", ["cancel", "retry"])
async def test_a_verb_on_a_run_that_does_not_exist_is_not_found(world: World, verb: str) -> None:
    answer = await world.post(f"/api/v2/runs/99/{verb}")
    assert (answer.status, answer.json()["code"]) == (404, "NOT_FOUND")


async def test_a_run_is_canceled_once(world: World) -> None:
    run = await world.run(await world.job())
    path = f"/api/v2/runs/{run['id']}"
    canceled = await world.post(f"{path}/cancel")
    assert canceled.status == 200
    assert canceled.json() == {
        **run,
        "state": "CANCELED",
        "reason": "operator",
        "fence": 1,
        "ended_at": "2030-01-01T12:00:00.000Z",
    }
    await world.work()
    assert await world.seen(path) == canceled.json()
    assert await world.seen(f"{path}/attempts") == []
    again = await world.post(f"{path}/cancel")
    assert (again.status, again.json()["code"]) == (409, "INVALID_STATE")


async def test_cancelling_stops_an_attempt_under_way(world: World, sink: Sink) -> None:
    job = await world.job(kind="http", config={"url": sink.on("/slow", Hang())})
    run = await world.run(job)
    await world.start()
    await sink.wait_for(1)
    canceled = (await world.post(f"/api/v2/runs/{run['id']}/cancel")).json()
    assert (canceled["state"], canceled["attempt"]) == ("CANCELED", 1)
    await sink.wait_until(lambda: not sink.open, "the connection to close")
    await world.work()
    assert await world.seen(f"/api/v2/runs/{run['id']}") == canceled


async def test_a_failed_run_is_tried_again_and_a_good_one_is_not(world: World) -> None:
    run = await world.run(await world.job(kind="fail", config={"times": 1, "message": "not yet"}))
    path = f"/api/v2/runs/{run['id']}"
    assert (await world.post(f"{path}/retry")).json()["code"] == "INVALID_STATE"
    await world.work()
    failed = await world.seen(path)
    assert (failed["state"], failed["error"], failed["failures"]) == ("FAILED", "not yet", 1)
    again = await world.post(f"{path}/retry")
    assert (again.status, again.json()["state"], again.json()["reason"]) == (200, "RETRYING", "operator")
    assert (again.json()["failures"], again.json()["ended_at"]) == (0, None)
    await world.work()
    done = await world.seen(path)
    assert (done["state"], done["attempt"], done["planned_at"]) == ("SUCCESS", 2, run["planned_at"])
    attempts = await world.seen(f"{path}/attempts")
    assert [(one["number"], one["verdict"], one["error"]) for one in attempts] == [
        (1, "retry", "not yet"),
        (2, "success", ""),
    ]
    refused = await world.post(f"{path}/retry")
    assert (refused.status, refused.json()["code"]) == (409, "INVALID_STATE")


async def test_an_attempt_shows_what_went_over_the_wire(world: World, sink: Sink) -> None:
    url = sink.on("/hook", Reply(body="grüße".encode(), headers={"X-Said": "yes"}))
    job = await world.job(kind="http", config={"url": url, "json": {"run": "{{run_id}}"}})
    run = await world.run(job)
    await world.work()
    [attempt] = await world.seen(f"/api/v2/runs/{run['id']}/attempts")
    assert (attempt["code"], attempt["verdict"]) == (200, "success")
    request, response = attempt["request"], attempt["response"]
    assert request["line"] == f"POST {url}"
    assert request["body"] == {"text": '{"run":"1"}', "base64": None, "bytes": 11}
    assert {name.lower() for name in request["headers"]} >= {"idempotency-key", "traceparent", "content-type"}
    assert response["body"] == {"text": "grüße", "base64": None, "bytes": 7}
    assert (response["code"], response["truncated"]) == (200, False)
    assert {name.lower(): value for name, value in response["headers"].items()}["x-said"] == "yes"


async def test_a_body_that_is_no_text_is_shown_in_base64(world: World, sink: Sink) -> None:
    url = sink.on("/png", Reply(status=500, body=b"\x89PNG\x00\xff"))
    run = await world.run(await world.job(kind="http", config={"url": url, "method": "GET"}))
    await world.work()
    [attempt] = await world.seen(f"/api/v2/runs/{run['id']}/attempts")
    assert (attempt["code"], attempt["verdict"]) == (500, "retry")
    assert attempt["response"]["body"] == {"text": None, "base64": "iVBORwD/", "bytes": 6}
    assert attempt["request"]["body"] == {"text": "", "base64": None, "bytes": 0}


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (b'{"a": [1, 2.5]}', {"a": [1, 2.5]}),
        (b"plain words", "plain words"),
        (b'{"half": ', '{"half": '),
        (b"[NaN]", "[NaN]"),
        (b"[" * 5000, "[" * 5000),
        (b'"\xff"', None),
        (b"", ""),
    ],
)
async def test_whatever_a_target_answers_the_attempt_can_be_shown(
    world: World, sink: Sink, body: bytes, result: Any
) -> None:
    run = await world.run(await world.job(kind="http", config={"url": sink.on("/any", Reply(body=body))}))
    await world.work()
    [attempt] = await world.seen(f"/api/v2/runs/{run['id']}/attempts")
    assert (attempt["result"] or None) == (result or None)
    assert attempt["response"]["body"]["bytes"] == len(body)


async def _ids(world: World, query: str, path: str = "/api/v2/runs") -> list[int]:
    return [run["id"] for run in (await world.seen(f"{path}?{query}"))["items"]]


@pytest.fixture
async def history(world: World) -> dict[str, Any]:
    """Five runs: two good (1, 2), one failed at 12:01 (3), one canceled (4), one waiting to be retried (5)."""
    good = await world.job("good one", tags=["red"])
    bad = await world.job("bad one", "fail", tags=["red", "blue"])
    slow = await world.job("slow one", "fail", retry={"max_attempts": 2, "initial_delay": "1h"})
    await world.run(good)
    await world.work()
    await world.run(good)
    await world.work()
    await world.advance("1m")
    await world.run(bad)
    await world.work()
    await world.run(bad)
    await world.post("/api/v2/runs/4/cancel")
    await world.run(slow)
    await world.work()
    return {"good": good["id"], "bad": bad["id"], "slow": slow["id"]}


async def test_runs_are_found_by_what_they_are(world: World, history: dict[str, Any]) -> None:
    assert await _ids(world, "") == [5, 4, 3, 2, 1]
    assert await _ids(world, f"job_id={history['bad']}") == [4, 3]
    assert await _ids(world, "job_id=99") == []
    assert await _ids(world, "state=FAILED") == [3]
    assert await _ids(world, "state=FAILED&state=RETRYING") == [5, 3]
    assert await _ids(world, "kind=noop") == [2, 1]
    assert await _ids(world, "tag=red") == [4, 3, 2, 1]
    assert await _ids(world, "tag=blue&state=CANCELED") == [4]
    assert await _ids(world, "name=BAD") == [4, 3]
    assert await _ids(world, "surface=v2&name=slow") == [5]
    assert await _ids(world, "error=fail") == [5, 3]
    assert await _ids(world, "error=%25") == []
    assert await _ids(world, "surface=tasks") == []
    assert await _ids(world, "parent_id=1") == []
    assert await _ids(world, "before_id=3") == [2, 1]
    assert await _ids(world, "since=2030-01-01T12:01:00Z&until=2030-01-01T12:02:00Z") == [4, 3]
    assert await _ids(world, "until=2030-01-01T20:00:30%2B08:00") == [2, 1]


async def test_runs_are_sorted_and_paged(world: World, history: dict[str, Any]) -> None:
    assert await _ids(world, "sort=id") == [1, 2, 3, 4, 5]
    assert (await _ids(world, "sort=-due_at"))[0] == 5
    assert (await _ids(world, "sort=ended_at&state=SUCCESS&state=FAILED"))[-1] == 3
    page = await world.seen("/api/v2/runs?page=2&page_size=2")
    assert [run["id"] for run in page.pop("items")] == [3, 2]
    assert page == {"total": 5, "page": 2, "page_size": 2}


async def test_the_runs_of_a_job_are_listed_with_the_same_filters(world: World, history: dict[str, Any]) -> None:
    path = f"/api/v2/jobs/{history['bad']}/runs"
    assert await _ids(world, "", path) == [4, 3]
    assert await _ids(world, "state=FAILED&sort=id", path) == [3]
    refused = await world.get(f"{path}?job_id=1")
    assert (refused.status, refused.json()["problems"][0]["field"]) == (400, "job_id")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("state=BROKEN", "state[0]"),
        ("since=yesterday", "since"),
        ("until=2030-01-01", "until"),
        ("job_id=x", "job_id"),
        ("before_id=first", "before_id"),
        ("sort=error", "sort"),
        ("page_size=0", "page_size"),
        ("colour=red", "colour"),
    ],
)
async def test_a_bad_query_is_refused_by_the_name_of_its_parameter(world: World, query: str, field: str) -> None:
    answer = await world.get(f"/api/v2/runs?{query}")
    assert answer.status == 400
    assert [problem["field"] for problem in answer.json()["problems"]] == [field]


async def test_a_schedule_makes_runs_and_the_fire_log_tells_of_each_instant(world: World) -> None:
    job = await world.job(schedule={"kind": "every", "every": "1m"}, misfire={"rule": "skip"})
    await world.advance("60s")
    await world.advance("60s")
    await world.advance("210s")
    runs = (await world.seen("/api/v2/runs?sort=id"))["items"]
    assert [(run["trigger"], run["planned_at"], run["state"]) for run in runs] == [
        ("schedule", "2030-01-01T12:01:00.000Z", "SUCCESS"),
        ("schedule", "2030-01-01T12:02:00.000Z", "SUCCESS"),
    ]
    path = f"/api/v2/jobs/{job['id']}/fires"
    gap, second, first = await world.seen(path)
    assert (gap["reason"], gap["count"], gap["run_id"]) == ("misfire", 3, None)
    assert (gap["from_at"], gap["to_at"]) == ("2030-01-01T12:03:00.000Z", "2030-01-01T12:05:00.000Z")
    assert (first["run_id"], second["run_id"], second["count"]) == (runs[0]["id"], runs[1]["id"], 1)
    assert second["decision"] == first["decision"] != gap["decision"]
    assert second["from_at"] == second["to_at"] == "2030-01-01T12:02:00.000Z"
    assert await world.seen(f"{path}?limit=1") == [gap]
    assert await world.seen(f"{path}?until=2030-01-01T12:01:30Z") == [first]
    assert await world.seen(f"{path}?since=2030-01-01T13:00:00Z&until=2030-01-01T14:00:00Z") == []


@pytest.mark.parametrize(("query", "field"), [("limit=0", "limit"), ("limit=1001", "limit"), ("since=x", "since")])
async def test_a_bad_stretch_of_the_fire_log_is_refused(world: World, query: str, field: str) -> None:
    job = await world.job()
    answer = await world.get(f"/api/v2/jobs/{job['id']}/fires?{query}")
    assert (answer.status, [problem["field"] for problem in answer.json()["problems"]]) == (400, [field])


async def test_a_once_job_found_too_late_is_marked_missed(world: World) -> None:
    job = await world.job(schedule={"kind": "once", "run_at": "2030-01-01T11:59:58Z"})
    await world.work()
    [run] = (await world.seen("/api/v2/runs"))["items"]
    assert (run["state"], run["reason"], run["planned_at"]) == ("MISSED", "misfire", "2030-01-01T11:59:58.000Z")
    assert (await world.seen(f"/api/v2/jobs/{job['id']}"))["next_fire_at"] is None


async def test_runs_are_counted_by_the_minute(world: World, history: dict[str, Any]) -> None:
    minutes = await world.seen("/api/v2/minutes?since=2030-01-01T12:00:00Z&until=2030-01-01T12:02:00Z")
    ended = {(one["minute_at"], one["kind"], one["state"]): one["count"] for one in minutes}
    assert ended == {
        ("2030-01-01T12:00:00.000Z", "noop", "SUCCESS"): 2,
        ("2030-01-01T12:01:00.000Z", "fail", "FAILED"): 1,
        ("2030-01-01T12:01:00.000Z", "fail", "CANCELED"): 1,
    }
    assert set(minutes[0]) == {"minute_at", "kind", "state", "count", "busy_ms", "late_ms"}
    await world.advance("1m")
    assert {one["minute_at"] for one in await world.seen("/api/v2/minutes")} == {one["minute_at"] for one in minutes}


@pytest.mark.parametrize(
    ("query", "field"),
    [("since=x", "since"), ("until=x", "until"), ("since=2029-01-01T00:00:00Z", "since"), ("from=x", "from")],
)
async def test_a_bad_stretch_of_minutes_is_refused(world: World, query: str, field: str) -> None:
    answer = await world.get(f"/api/v2/minutes?{query}")
    assert (answer.status, [problem["field"] for problem in answer.json()["problems"]]) == (400, [field])


async def test_minutes_up_to_the_first_hour_of_the_calendar_are_counted_from_its_beginning(world: World) -> None:
    assert await world.seen("/api/v2/minutes?until=0001-01-01T00:30:00Z") == []


async def test_two_requests_at_once_run_a_job_that_skips_only_once(world: World) -> None:
    job = await world.job(overlap={"rule": "skip"})
    path = f"/api/v2/jobs/{job['id']}/runs"
    answers = await asyncio.gather(*(world.post(path) for _ in range(8)))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 7
