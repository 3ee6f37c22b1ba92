"""Runs over HTTP: what was sent and received, lists with filters, and cancels that really end something."""

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from ksana.api.tasks.words import RunStatus, states_of, status_of
from ksana.domain.states import Reason, State
from tests.api.tasks.world import World, ok, refused
from tests.kit.sink import Drop, Hang, Reply, Sink

KEYS = {
    "ID": int,
    "TaskID": int,
    "ScheduledTime": str,
    "StartTime": str,
    "EndTime": str,
    "Status": str,
    "Attempt": int,
    "RequestHeaders": str,
    "RequestBody": str,
    "ResponseCode": int,
    "ResponseBody": str,
    "ErrorMessage": str,
    "NextRetryTime": type(None),
    "CallbackToken": str,
    "CallbackDeadline": type(None),
    "TraceID": str,
    "CreatedAt": str,
    "UpdatedAt": str,
}
DOCUMENTED = {
    "SCHEDULED",
    "RUNNING",
    "SUCCESS",
    "FAILED",
    "TIMEOUT",
    "RETRYING",
    "CALLBACK_PENDING",
    "CALLBACK_SUCCESS",
    "FAILED_TIMEOUT",
    "CANCELED",
    "SKIPPED",
}


async def test_a_run_shows_all_that_the_document_shows(world: World, sink: Sink) -> None:
    """C-67, C-69, C-98, C-99, C-100, C-140: 18 keys and their types, the design's names beside them, times with Z."""
    sink.on("/work", Reply(200, b'{"ok": true}'))
    run_id = await world.trigger(await world.task())
    await world.work()
    run = await world.run(run_id)
    assert {key: type(run[key]) for key in KEYS} == KEYS
    assert (run["Status"], run["Attempt"], run["ResponseCode"], run["ResponseBody"]) == (
        "SUCCESS",
        1,
        200,
        '{"ok": true}',
    )
    assert (run["id"], run["task_id"], run["status"], run["response_code"]) == (run_id, 1, "SUCCESS", 200)
    assert all(run[key].endswith("Z") for key in ("ScheduledTime", "StartTime", "EndTime", "CreatedAt", "UpdatedAt"))
    assert run["TraceID"] == run["trace_id"] == sink.requests[0].header("X-Trace-Id")
    assert run["progress"] is None


async def test_headers_and_body_are_kept_as_they_were_sent(world: World, sink: Sink) -> None:
    """C-64, C-70: the rendered run id is the run's, and what is stored is what arrived, global headers included."""
    body = '{"run_id": "{{run_id}}", "task": {{task_id}}, "at": "{{scheduled_time}}", "n": {{attempt}}}'
    task = await world.task(http_method="POST", headers={"X-Own": "{{task_id}}"}, body_template=body)
    run_id = await world.trigger(task)
    await world.work()
    [request] = sink.requests
    assert request.json() == {"run_id": str(run_id), "task": task, "at": "2030-01-01T12:00:00Z", "n": 1}
    assert (request.header("X-Own"), request.header("X-Team")) == (str(task), "ops")
    assert (request.header("X-Run-Id"), request.header("X-Task-Id")) == (str(run_id), str(task))
    run = await world.run(run_id)
    assert run["RequestBody"] == request.body.decode() == run["request_body"]
    kept = json.loads(run["RequestHeaders"])
    assert kept == run["request_headers"]
    arrived = {name.lower(): value for name, value in request.headers}
    assert {name.lower(): value for name, value in kept.items()}.items() <= arrived.items()
    assert {"x-own", "x-team", "x-run-id"} <= {name.lower() for name in kept}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
async def test_the_method_of_a_task_is_the_method_of_its_request(world: World, sink: Sink, method: str) -> None:
    """C-63."""
    await world.trigger(await world.task(http_method=method))
    await world.work()
    assert sink.requests[0].method == method


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Reply(200), "SUCCESS"),
        (Reply(204), "SUCCESS"),
        (Reply(404), "FAILED"),
        (Reply(500), "FAILED"),
        (Drop(), "FAILED"),
    ],
)
async def test_the_answer_decides(world: World, sink: Sink, answer: Any, status: str) -> None:
    """C-4, C-48, C-128: and without a retry policy there is one request, whatever came of it."""
    sink.on("/work", answer)
    run_id = await world.trigger(await world.task())
    await world.work()
    run = await world.run(run_id)
    assert (run["Status"], sink.count) == (status, 1)
    assert bool(run["ErrorMessage"]) is (status == "FAILED")
    if isinstance(answer, Drop):
        assert (run["ResponseCode"], run["response_code"]) == (0, None)


async def test_a_target_that_takes_too_long_is_a_timeout(world: World, sink: Sink) -> None:
    """C-7, C-48, C-125: `timeout_seconds` bounds the whole request."""
    sink.on("/work", Hang())
    run_id = await world.trigger(await world.task(timeout_seconds=1))
    run = await world.until(run_id, "TIMEOUT")
    assert "1 s" in run["ErrorMessage"] or "1s" in run["ErrorMessage"], run["ErrorMessage"]


async def test_before_it_begins_a_run_is_scheduled_and_has_no_times(world: World) -> None:
    """C-33, C-51, C-92, C-93: a trigger needs no body, always makes a new run, and that starts as SCHEDULED."""
    task = await world.task(concurrency_policy="PARALLEL")
    answer = await world.post(f"/api/v1/tasks/{task}/trigger")
    assert (answer.status, answer.json()) == (200, {"run_id": 1})
    assert await world.trigger(task) == 2
    run = await world.run(1)
    assert (run["Status"], run["Attempt"], run["StartTime"], run["EndTime"]) == ("SCHEDULED", 1, None, None)
    assert (run["RequestHeaders"], run["ResponseCode"], run["CallbackToken"]) == ("", 0, "")
    await world.work()
    assert await world.statuses(task) == ["SUCCESS", "SUCCESS"]


async def test_a_life_has_its_order(world: World, sink: Sink) -> None:
    """C-34, C-45: a scheduled run and a triggered one go the same way, and their instants follow each other."""
    release = asyncio.Event()
    sink.on("/work", Reply(after=release))
    task = await world.task(cron_expr="*/5 * * * * *", concurrency_policy="PARALLEL")
    world.clock.move_to(world.clock.time.replace(second=5))
    triggered = await world.trigger(task)
    await world.begin()
    await sink.wait_for(2)
    assert await world.statuses(task) == ["RUNNING", "RUNNING"]
    release.set()
    await world.work()
    for run in await world.runs(task):
        assert run["CreatedAt"] <= run["StartTime"] <= run["EndTime"] == run["UpdatedAt"]
        assert run["Status"] == "SUCCESS"
    assert triggered in [run["ID"] for run in await world.runs(task)]


async def test_override_body_is_sent_in_place_of_the_template(world: World, sink: Sink) -> None:
    """C-91."""
    task = await world.task(http_method="POST", body_template="own")
    for given, sent in (("other {{run_id}}", b"other 1"), ({"a": [1]}, b'{"a":[1]}'), ("", b"")):
        await world.trigger(task, override_body=given)
        await world.work()
        assert sink.requests[-1].body == sent
    await world.trigger(task, force_async=False)
    await world.work()
    assert sink.requests[-1].body == b"own"


async def test_the_latest_fifty_runs_are_listed_unless_a_page_is_asked_for(world: World) -> None:
    """C-6, C-96, C-97, X-22: newest first; totals in headers."""
    task = await world.task(cron_expr="* * * * * *")
    await world.advance(60)
    latest = await world.get(f"/api/v1/tasks/{task}/runs")
    ids = [run["ID"] for run in latest.json()]
    assert (len(ids), ids) == (50, sorted(ids, reverse=True))
    assert (latest.headers["x-total-count"], latest.headers["x-page-size"]) == ("60", "50")
    page = await world.get(f"/api/v1/tasks/{task}/runs?page=3")
    assert [run["ID"] for run in page.json()] == list(range(20, 0, -1))
    assert page.headers["x-page-size"] == "20"
    assert len(await world.runs(task, "?page_size=7")) == 7
    assert refused(await world.get(f"/api/v1/tasks/{task}/runs?page_size=201")) == (400, "INVALID_ARGUMENT")


async def test_runs_are_found_by_status_and_by_planned_instant(any_world: World) -> None:
    """C-96: `from` and `to` include their instants, with a zone or without."""
    world = any_world
    world.sink.on("/work", Reply(200), Reply(404), Reply(200))
    task = await world.task(cron_expr="*/10 * * * * *")
    await world.advance(40)

    async def seconds(query: str) -> list[str]:
        return [run["ScheduledTime"][-3:-1] for run in await world.runs(task, query)]

    assert await seconds("?status=FAILED") == ["20"]
    assert await seconds("?status=success&page=1&page_size=2") == ["40", "30"]
    assert await seconds("?status=RUNNING") == []
    assert await seconds("?from=2030-01-01T12:00:20Z&to=2030-01-01T12:00:30Z") == ["30", "20"]
    assert await seconds("?from=2030-01-01T12:00:30") == ["40", "30"]
    assert await seconds("?from=2030-01-01%2012:00:30") == ["40", "30"]
    assert await seconds("?to=2030-01-01T20:00:10%2B08:00") == ["10"]
    # A plus that was not encoded arrives as a space.
    assert await seconds("?to=2030-01-01T20:00:10+08:00") == ["10"]
    for bad in ("?status=DONE", "?from=yesterday", "?page=0"):
        assert refused(await world.get(f"/api/v1/tasks/{task}/runs{bad}")) == (400, "INVALID_ARGUMENT")
    answer = (await world.get(f"/api/v1/tasks/{task}/runs?from=2030-01-01")).json()
    assert answer["message"].startswith('from: "2030-01-01" is not an RFC 3339 instant')


async def test_a_waiting_run_is_cancelled_before_anything_is_sent(world: World, sink: Sink) -> None:
    """C-50, C-101: SCHEDULED, before its turn and in line behind another."""
    sink.on("/work", Hang())
    task = await world.task()
    first, second = await world.trigger(task), await world.trigger(task)
    assert ok(await world.post(f"/api/v1/runs/{second}/cancel")) == {"run_id": second, "status": "CANCELED"}
    assert ok(await world.post(f"/api/v1/runs/{first}/cancel")) == {"run_id": first, "status": "CANCELED"}
    await world.work()
    assert (await world.statuses(task), sink.count) == (["CANCELED", "CANCELED"], 0)


async def test_cancelling_a_running_run_closes_its_connection(world: World, sink: Sink) -> None:
    """C-50, C-102, C-151."""
    sink.on("/work", Hang())
    run_id = await world.trigger(await world.task(timeout_seconds=600))
    await world.begin()
    await sink.wait_for(1)
    assert (await world.run(run_id))["Status"] == "RUNNING"
    assert ok(await world.post(f"/api/v1/runs/{run_id}/cancel")) == {"run_id": run_id, "status": "CANCELED"}
    await sink.wait_until(lambda: not sink.open, "the connection to be closed")
    assert (await world.run(run_id))["Status"] == "CANCELED"


async def test_a_retrying_run_can_be_cancelled(world: World, sink: Sink) -> None:
    """C-50, X-85."""
    sink.on("/work", Reply(500))
    run_id = await world.trigger(await world.task(retry_policy={"max_retries": 5, "initial_delay": 10}))
    await world.work()
    assert (await world.run(run_id))["Status"] == "RETRYING"
    ok(await world.post(f"/api/v1/runs/{run_id}/cancel"))
    await world.advance(20)
    assert ((await world.run(run_id))["Status"], sink.count) == ("CANCELED", 1)


async def test_cancelling_what_is_over_says_so_and_changes_nothing(world: World) -> None:
    """C-18, C-101, X-16: the documented answer, and what is really the case beside it; again and again the same."""
    run_id = await world.trigger(await world.task())
    await world.work()
    expected = {"run_id": run_id, "status": "CANCELED", "actual_status": "SUCCESS"}
    for _ in range(2):
        assert ok(await world.post(f"/api/v1/runs/{run_id}/cancel")) == expected
    assert (await world.run(run_id))["Status"] == "SUCCESS"
    other = await world.trigger(1)
    for _ in range(2):
        assert ok(await world.post(f"/api/v1/runs/{other}/cancel")) == {"run_id": other, "status": "CANCELED"}


async def test_runs_of_a_deleted_task_can_still_be_read(world: World) -> None:
    """C-61: the data stay."""
    task = await world.task()
    run_id = await world.trigger(task)
    await world.work()
    ok(await world.delete(f"/api/v1/tasks/{task}"))
    assert (await world.run(run_id))["Status"] == "SUCCESS"
    assert refused(await world.get(f"/api/v1/tasks/{task}/runs")) == (404, "NOT_FOUND")


async def test_long_errors_are_cut_to_what_the_table_holds(world: World, sink: Sink) -> None:
    """C-72."""
    task = await world.task(target_url=f"{sink.url}/{{{{input.body}}}}")
    run_id = await world.trigger(task, override_body="x" * 3000)
    sink.otherwise(Reply(404, b"y" * 5000))
    await world.work()
    run = await world.run(run_id)
    assert run["Status"] == "FAILED"
    assert 0 < len(run["ErrorMessage"]) <= 1024


BIG = ("界🚀" + "x" * 1017).encode() * 5120


async def test_five_megabytes_and_emoji_survive_both_ways_on_every_store(any_world: World) -> None:
    """C-70, C-71, C-77: bodies are kept whole and byte-exact, in the request, the answer and the texts of a task."""
    world = any_world
    assert len(BIG) == 5 * 1024 * 1024
    world.sink.on("/work", Reply(200, BIG, {"Content-Type": "text/plain; charset=utf-8"}))
    task = await world.task(name="统计🚀", description="描述 🎉", http_method="POST", body_template="🦊 {{run_id}}")
    run_id = await world.trigger(task, override_body=BIG.decode())
    await world.work()
    assert world.sink.requests[0].body == BIG
    run = await world.run(run_id)
    assert (run["Status"], run["ErrorMessage"]) == ("SUCCESS", "")
    assert run["RequestBody"].encode() == run["ResponseBody"].encode() == BIG
    shown = await world.seen(f"/api/v1/tasks/{task}")
    assert (shown["Name"], shown["Description"], shown["BodyTemplate"]) == ("统计🚀", "描述 🎉", "🦊 {{run_id}}")
    # A list of such runs would be a gigabyte: it says that it left them out.
    [listed] = await world.runs(task)
    assert (listed["ResponseBody"], listed["ResponseCode"], listed["bodies_omitted"]) == ("", 200, True)


async def test_a_long_list_asks_the_store_no_more_than_a_short_one(any_world: World) -> None:
    world = any_world
    world.sink.on("/work", *[Reply(200, str(n).encode()) for n in range(9)])
    task = await world.task()
    asked = []
    for count in (1, 8):
        ids = [await world.trigger(task) for _ in range(count)]
        await world.work()
        before = world.store.calls
        listed = await world.runs(task)
        asked.append(world.store.calls - before)
        assert {run["ID"] for run in listed} >= set(ids)
        assert all(run["ResponseCode"] == 200 for run in listed)
    assert len({run["ResponseBody"] for run in listed}) == 9
    assert asked[0] == asked[1]


async def test_bytes_that_are_no_text_are_there_in_base64(world: World, sink: Sink) -> None:
    sink.on("/work", Reply(200, b"\xff\xfe\x00ok"))
    run_id = await world.trigger(await world.task())
    await world.work()
    run = await world.run(run_id)
    assert run["response_body_base64"] == "//4Ab2s="
    assert run["ResponseBody"].endswith("ok")


async def test_every_state_has_a_documented_name(world: World) -> None:
    """C-47: no other word reaches the wire."""
    task = await world.task()
    run = await world.stored(await world.trigger(task))
    assert {status.value for status in RunStatus} == DOCUMENTED
    shown = {status_of(replace(run, state=state, reason=reason)) for state in State for reason in (None, *Reason)}
    assert shown == set(RunStatus)
    for status in RunStatus:
        states, reasons = states_of(status)
        for state in State:
            for reason in (None, *Reason):
                found = state in states and (not reasons or reason in reasons)
                is_so = status_of(replace(run, state=state, reason=reason)) is status
                if status is RunStatus.SUCCESS:
                    assert found is (state is State.SUCCESS)
                else:
                    assert found is is_so, (status, state, reason)
