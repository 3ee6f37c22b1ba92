"""Asynchronous tasks: how the target learns where to call back, and what its word does."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest

from ksana.api.kit import Scope
from ksana.engine.draws import SystemDraws
from tests.api.kit.client import Answer
from tests.api.tasks.world import CALLBACKS, World, ok, open_world, problems, refused
from tests.kit.sink import Reply, Sink


async def pending(world: World, **fields: Any) -> tuple[int, str]:
    """A run that awaits its callback, and the path by which it is told."""
    world.sink.on("/work", Reply(202))
    run_id = await world.trigger(await world.task(exec_type="ASYNC", **fields))
    await world.work()
    run = await world.run(run_id)
    assert run["Status"] == "CALLBACK_PENDING"
    return run_id, f"/api/v1/callbacks/{run['CallbackToken']}"


async def ledger(world: World, run_id: int) -> list[str]:
    return [record["status"] for record in await world.seen(f"/api/v1/runs/{run_id}/callbacks")]


async def test_the_target_learns_where_to_call_back(world: World, sink: Sink) -> None:
    """C-5, C-53, C-73, C-109, C-110, X-86: in headers, in the body, as markers; the deadline runs from the answer."""
    sink.on("/work", Reply(202))
    task = await world.task(
        exec_type="ASYNC",
        http_method="POST",
        headers={"X-Mine": "{{callback_token}}"},
        body_template='{"to": "{{callback_url}}"}',
        callback_timeout_sec=90,
    )
    run_id = await world.trigger(task)
    token = (await world.stored(run_id)).callback_token
    assert token is not None
    assert re.fullmatch(r"[0-9a-zA-Z]{32}", token)
    await world.work()
    [request] = sink.requests
    url = f"{CALLBACKS}/{token}"
    assert request.json() == {"to": url, "callback_url": url, "callback_token": token}
    assert [request.header(name) for name in ("X-Callback-Url", "X-Callback-Token", "X-Mine")] == [url, token, token]
    run = await world.run(run_id)
    assert (run["Status"], run["CallbackToken"], run["ResponseCode"]) == ("CALLBACK_PENDING", token, 202)
    assert run["CallbackDeadline"] == "2030-01-01T12:01:30Z"


async def test_tokens_never_repeat(world: World) -> None:
    """C-73: ten thousand of them."""
    draws = SystemDraws(world.engine._run_ids)
    assert len({draws.token() for _ in range(10_000)}) == 10_000


async def test_a_get_carries_it_in_the_query(world: World, sink: Sink) -> None:
    """X-86."""
    await pending(world)
    assert re.search(r"callback_url=http.*&callback_token=\w{32}", sink.requests[0].query)


async def test_success_by_callback(any_world: World) -> None:
    """C-49, C-54, C-103, C-105, C-108: SUCCESS to the caller, CALLBACK_SUCCESS in the run; no signature needed."""
    run_id, path = await pending(any_world)
    answer = await any_world.post(path, {"status": "SUCCESS", "data": {"n": 1}, "error_message": ""})
    assert (answer.status, answer.json()) == (200, {"run_id": run_id, "final_status": "SUCCESS"})
    run = await any_world.run(run_id)
    assert (run["Status"], run["CallbackDeadline"]) == ("CALLBACK_SUCCESS", None)
    for status in ("SUCCESS", "CALLBACK_SUCCESS"):
        assert [found["ID"] for found in await any_world.runs(run["TaskID"], f"?status={status}")] == [run_id]


async def test_failure_by_callback_is_final(world: World, sink: Sink) -> None:
    """C-49, C-55, C-103, X-90: FAILED with the message, and no retry."""
    run_id, path = await pending(world, retry_policy={"max_retries": 3, "initial_delay": 1})
    answer = await world.post(path, {"status": "FAILED", "error_message": "磁盘满 💾"})
    assert answer.json() == {"run_id": run_id, "final_status": "FAILED"}
    await world.advance(3)
    run = await world.run(run_id)
    assert (run["Status"], run["ErrorMessage"], sink.count) == ("FAILED", "磁盘满 💾", 1)


async def test_the_first_word_counts_and_the_rest_is_kept_as_ignored(any_world: World) -> None:
    """C-18, C-74, C-106, C-107: 200 with the state as it is; every callback leaves a line with headers and body."""
    run_id, path = await pending(any_world)
    for status in ("SUCCESS", "SUCCESS", "FAILED"):
        answer = await any_world.post(path, {"status": status}, headers={"X-From": "svc", "X-Api-Key": "hush"})
        assert (answer.status, answer.json()["final_status"]) == (200, "SUCCESS")
    assert (await any_world.run(run_id))["Status"] == "CALLBACK_SUCCESS"
    rows = await any_world.seen(f"/api/v1/runs/{run_id}/callbacks")
    assert [row["status"] for row in rows] == ["RECEIVED", "IGNORED", "IGNORED"]
    assert (rows[2]["task_run_id"], rows[2]["body"]) == (run_id, '{"status": "FAILED"}')
    assert (rows[0]["headers"]["x-from"], rows[0]["headers"]["x-api-key"]) == ("svc", "***")


async def test_of_two_words_at_once_one_wins(any_world: World) -> None:
    """C-107."""
    run_id, path = await pending(any_world)
    words = [any_world.post(path, {"status": status}) for status in ("SUCCESS", "FAILED")]
    answers = await asyncio.gather(*words)
    assert [answer.status for answer in answers] == [200, 200]
    [final] = {answer.json()["final_status"] for answer in answers}
    assert (await any_world.run(run_id))["Status"] == {"SUCCESS": "CALLBACK_SUCCESS", "FAILED": "FAILED"}[final]
    assert sorted(await ledger(any_world, run_id)) == ["IGNORED", "RECEIVED"]


async def test_a_callback_may_overtake_the_answer(world: World, sink: Sink) -> None:
    """G9, X-88: it counts while the run is RUNNING; the answer that comes later is kept and changes nothing."""
    release = asyncio.Event()
    sink.on("/work", Reply(202, b"accepted", after=release))
    run_id = await world.trigger(await world.task(exec_type="ASYNC"))
    await world.begin()
    await sink.wait_for(1)
    path = f"/api/v1/callbacks/{sink.requests[0].header('X-Callback-Token')}"
    assert ok(await world.post(path, {"status": "SUCCESS"})) == {"run_id": run_id, "final_status": "SUCCESS"}
    release.set()
    await world.work()
    run = await world.run(run_id)
    assert (run["Status"], run["ResponseCode"], run["ResponseBody"]) == ("CALLBACK_SUCCESS", 202, "accepted")


async def test_a_callback_before_anything_was_sent_is_refused(world: World) -> None:
    """X-88: SCHEDULED awaits nothing yet."""
    run_id = await world.trigger(await world.task(exec_type="ASYNC"))
    token = (await world.stored(run_id)).callback_token
    answer = await world.post(f"/api/v1/callbacks/{token}", {"status": "SUCCESS"})
    assert refused(answer) == (409, "INVALID_STATE")
    assert await ledger(world, run_id) == ["IGNORED"]


async def test_a_callback_that_never_comes_is_a_timeout_of_its_own(any_world: World) -> None:
    """C-56, C-126, C-144, X-78: FAILED_TIMEOUT, found as CALLBACK_TIMEOUT too; over a restart; late words ignored."""
    world = any_world
    run_id, path = await pending(world, callback_timeout_sec=20)
    await world.restart_after(18)
    await world.work()
    assert (await world.run(run_id))["Status"] == "CALLBACK_PENDING"
    await world.advance(3)
    run = await world.run(run_id)
    assert (run["Status"], bool(run["ErrorMessage"])) == ("FAILED_TIMEOUT", True)
    assert [found["ID"] for found in await world.runs(run["TaskID"], "?status=CALLBACK_TIMEOUT")] == [run_id]
    assert await world.runs(run["TaskID"], "?status=TIMEOUT") == []
    late = await world.post(path, {"status": "SUCCESS"})
    assert (late.status, late.json()["final_status"]) == (200, "FAILED_TIMEOUT")
    assert await ledger(world, run_id) == ["IGNORED"]


async def test_no_wait_is_longer_than_the_token_lives(sqlite_tasks_url: str, sink: Sink) -> None:
    """C-109, C-134, X-87: `callback.token_ttl`."""
    async with open_world(sqlite_tasks_url, sink, token_ttl=timedelta(seconds=60)) as world:
        run_id, _ = await pending(world, callback_timeout_sec=300)
        assert (await world.run(run_id))["CallbackDeadline"] == "2030-01-01T12:01:00Z"


async def test_a_waiting_run_can_be_cancelled(world: World) -> None:
    """C-50, C-101, X-89: and the callback that comes afterwards hears so."""
    run_id, path = await pending(world)
    ok(await world.post(f"/api/v1/runs/{run_id}/cancel"))
    assert (await world.run(run_id))["Status"] == "CANCELED"
    assert (await world.post(path, {"status": "SUCCESS"})).json()["final_status"] == "CANCELED"


async def test_a_synchronous_task_can_be_asked_to_wait_for_once(world: World, sink: Sink) -> None:
    """C-91: force_async makes this run end by a callback, and only this one."""
    sink.on("/work", Reply(202))
    task = await world.task(http_method="POST")
    run_id = await world.trigger(task, force_async=True, override_body="{}")
    await world.work()
    token = (await world.run(run_id))["CallbackToken"]
    assert sink.requests[0].json() == {"callback_url": f"{CALLBACKS}/{token}", "callback_token": token}
    assert (await world.run(run_id))["Status"] == "CALLBACK_PENDING"
    ok(await world.post(f"/api/v1/callbacks/{token}", {"status": "SUCCESS"}))
    other = await world.trigger(task)
    await world.work()
    assert ((await world.run(other))["Status"], (await world.run(other))["CallbackToken"]) == ("SUCCESS", "")


async def test_progress_is_shown_and_puts_nothing_off(any_world: World) -> None:
    """Progress is stored with its message; the run waits on, by the same deadline unless `extend_sec` asks for more."""
    world = any_world
    run_id, path = await pending(world, callback_timeout_sec=100)
    told = await world.post(path, {"progress": 0.4, "message": "40 of 100"})
    assert told.json() == {"run_id": run_id, "final_status": "CALLBACK_PENDING"}
    run = await world.run(run_id)
    assert run["progress"] == {"progress": 0.4, "message": "40 of 100", "reported_at": "2030-01-01T12:00:00Z"}
    assert run["CallbackDeadline"] == "2030-01-01T12:01:40Z"
    ok(await world.post(path, {"progress": 0.5, "extend_sec": 60}))
    assert (await world.run(run_id))["CallbackDeadline"] == "2030-01-01T12:02:40Z"
    ok(await world.post(path, {"status": "SUCCESS"}))
    run = await world.run(run_id)
    assert (run["Status"], run["progress"]["progress"]) == ("CALLBACK_SUCCESS", 0.5)
    assert await ledger(world, run_id) == ["RECEIVED"] * 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "status"),
        ({"status": "DONE"}, "status"),
        ({"status": "success"}, "status"),
        ({"status": "FAILED", "error_message": 3}, "error_message"),
        ({"progress": 1.5}, "progress"),
        ({"progress": 0.5, "extend_sec": 0}, "extend_sec"),
    ],
)
async def test_a_bad_callback_changes_nothing(world: World, body: dict[str, object], field: str) -> None:
    """C-111."""
    run_id, path = await pending(world)
    assert list(problems(await world.post(path, body))) == [field]
    assert (await world.run(run_id))["Status"] == "CALLBACK_PENDING"


async def test_a_callback_that_is_no_json_is_told_so(world: World) -> None:
    """C-82, C-118."""
    _, path = await pending(world)
    assert refused(await world.call("POST", path, body=b"{")) == (400, "INVALID_JSON")
    assert refused(await world.post(path)) == (400, "INVALID_JSON")


async def test_a_token_nobody_has_is_not_found(world: World) -> None:
    """C-19, C-111: a guess changes nothing."""
    run_id, _ = await pending(world)
    answer = await world.post(f"/api/v1/callbacks/{'0' * 32}", {"status": "SUCCESS"})
    assert refused(answer) == (404, "NOT_FOUND")
    assert (await world.run(run_id))["Status"] == "CALLBACK_PENDING"


async def test_a_target_may_send_whatever_content_type_it_likes(world: World) -> None:
    run_id, path = await pending(world)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await world.call("POST", path, body=b'{"Status": "FAILED", "error": "e"}', headers=headers)
    assert ok(answer)["final_status"] == "FAILED"
    assert (await world.run(run_id))["ErrorMessage"] == "e"


async def by_ids(world: World, headers: dict[str, str] | None = None, **body: Any) -> Answer:
    return await world.post("/api/v1/callbacks", {"status": "SUCCESS", **body}, headers=headers or {})


async def test_a_callback_may_name_task_and_run(any_world: World) -> None:
    """C-104, C-105, C-112: the pair must fit; a repeat hears the state."""
    world = any_world
    run_id, _ = await pending(world)
    task, other = (await world.run(run_id))["TaskID"], await world.task()
    assert refused(await by_ids(world, task_id=other, run_id=run_id)) == (404, "NOT_FOUND")
    assert refused(await by_ids(world, task_id=task, run_id=run_id + 1000)) == (404, "NOT_FOUND")
    assert refused(await by_ids(world, task_id=task + 1000, run_id=run_id)) == (404, "NOT_FOUND")
    assert (await world.run(run_id))["Status"] == "CALLBACK_PENDING"
    answer = await by_ids(world, task_id=task, run_id=run_id, data={}, error_message="")
    assert (answer.status, answer.json()) == (200, {"run_id": run_id, "final_status": "SUCCESS"})
    assert ok(await by_ids(world, task_id=task, run_id=run_id, status="FAILED"))["final_status"] == "SUCCESS"
    assert await ledger(world, run_id) == ["RECEIVED", "IGNORED"]
    assert set(problems(await by_ids(world))) == {"task_id", "run_id"}


async def test_a_callback_by_ids_to_a_run_that_awaits_none_is_refused(world: World) -> None:
    """C-104: it must be CALLBACK_PENDING, or on its way there."""
    run_id = await world.trigger(await world.task())
    assert refused(await by_ids(world, task_id=1, run_id=run_id)) == (409, "INVALID_STATE")
    await world.work()
    assert ok(await by_ids(world, task_id=1, run_id=run_id))["final_status"] == "SUCCESS"


async def test_by_ids_needs_a_key_once_there_is_one_and_a_token_never_does(world: World) -> None:
    """C-108, R7: run:control."""
    run_id, path = await pending(world)
    reader, controller = await world.key(Scope.RUN_READ), await world.key(Scope.RUN_CONTROL)
    ids: dict[str, Any] = {"task_id": 1, "run_id": run_id}
    assert refused(await by_ids(world, **ids)) == (401, "UNAUTHENTICATED")
    assert refused(await by_ids(world, reader, **ids)) == (403, "FORBIDDEN")
    assert ok(await by_ids(world, controller, **ids))["final_status"] == "SUCCESS"
    assert ok(await world.post(path, {"status": "SUCCESS"}))["final_status"] == "SUCCESS"


async def test_a_key_that_may_only_read_never_learns_the_token(world: World) -> None:
    """Whoever holds it can end the run, which needs run:control."""
    run_id, path = await pending(world, http_method="POST", body_template='{"a": 1}')
    token = path.rpartition("/")[2]
    reader, controller = await world.key(Scope.RUN_READ), await world.key(Scope.RUN_READ, Scope.RUN_CONTROL)
    paths = [f"/api/v1/runs/{run_id}", "/api/v1/tasks/1/runs", f"/api/v2/runs/{run_id}/attempts"]
    for shown in paths:
        told = await world.get(shown, headers=reader)
        assert told.status == 200
        assert token not in told.body.decode(), shown
        assert "***" in told.body.decode(), shown
        assert token in (await world.get(shown, headers=controller)).body.decode(), shown


async def test_beyond_loopback_by_ids_needs_a_key_even_if_there_is_none(sqlite_tasks_url: str, sink: Sink) -> None:
    """R7: `--insecure` opens the API, not this."""
    async with open_world(sqlite_tasks_url, sink, {"is_exposed": True}) as world:
        run_id, path = await pending(world)
        assert refused(await by_ids(world, task_id=1, run_id=run_id)) == (401, "UNAUTHENTICATED")
        ok(await world.post(path, {"status": "SUCCESS"}))


async def test_by_ids_can_be_switched_off(sqlite_tasks_url: str, sink: Sink) -> None:
    """C-112: `callback.by_ids: false`."""
    async with open_world(sqlite_tasks_url, sink, {"callback_by_ids": False}) as world:
        run_id, path = await pending(world)
        assert refused(await by_ids(world, task_id=1, run_id=run_id)) == (404, "NOT_FOUND")
        ok(await world.post(path, {"status": "SUCCESS"}))


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_the_method_of_the_task_is_accepted_beside_post(world: World, method: str) -> None:
    """C-110, X-91."""
    run_id, path = await pending(world, callback_method=method)
    _, plain = await pending(world)
    other = "PATCH" if method == "PUT" else "PUT"
    assert refused(await world.call(other, path, json_body={"status": "SUCCESS"})) == (405, "METHOD_NOT_ALLOWED")
    assert refused(await world.call(method, plain, json_body={"status": "SUCCESS"})) == (405, "METHOD_NOT_ALLOWED")
    ids = {"task_id": 1, "run_id": run_id, "progress": 0.1}
    assert ok(await world.call(method, "/api/v1/callbacks", json_body=ids))["final_status"] == "CALLBACK_PENDING"
    assert ok(await world.call(method, path, json_body={"status": "SUCCESS"}))["final_status"] == "SUCCESS"
    assert ok(await world.post(path, {"status": "SUCCESS"}))["final_status"] == "SUCCESS"


async def test_a_token_of_another_surface_is_good_here(world: World, sink: Sink) -> None:
    """Every target is told this address, so it takes the words of every surface."""
    sink.on("/work", Reply(202))
    job = {"name": "v2", "target": {"kind": "http", "config": {"url": f"{sink.url}/work", "mode": "async"}}}
    made = ok(await world.post("/api/v2/jobs", job))
    run = ok(await world.post(f"/api/v2/jobs/{made['id']}/runs", {}))
    await world.work()
    path = f"/api/v1/callbacks/{sink.requests[0].header('X-Callback-Token')}"
    assert ok(await world.post(path, {"status": "FAILED", "error": "no"}))["final_status"] == "FAILED"
    assert (await world.seen(f"/api/v2/runs/{run['id']}"))["error"] == "no"
