"""Calling a run done by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.kit.client import Answer
from tests.api.v2.world import World
from tests.kit.sink import Hang, Sink


async def complete(world: World, run: Any, reason: str = "seen to by hand", **more: Any) -> Answer:
    return await world.post(f"/api/v2/runs/{run['id']}/complete", {"reason": reason, **more})


async def test_a_failed_run_is_called_done_once(world: World) -> None:
    run = await world.run(await world.job(kind="fail"))
    await world.work()
    done = await complete(world, run)
    assert done.status == 200
    assert (done.json()["state"], done.json()["reason"]) == ("SUCCESS", "operator")
    assert done.json()["error"] == "seen to by hand"
    again = await complete(world, run)
    assert (again.status, again.json()["code"]) == (409, "INVALID_STATE")


async def test_an_attempt_under_way_is_stopped(world: World, sink: Sink) -> None:
    run = await world.run(await world.job(kind="http", config={"url": sink.on("/slow", Hang())}))
    await world.start()
    await sink.wait_for(1)
    done = (await complete(world, run)).json()
    assert done["state"] == "SUCCESS"
    await sink.wait_until(lambda: not sink.open, "the connection to close")
    await world.work()
    assert await world.seen(f"/api/v2/runs/{run['id']}") == done


async def test_what_has_not_begun_cannot_be_called_done(world: World) -> None:
    run = await world.run(await world.job())
    answer = await complete(world, run)
    assert (answer.status, answer.json()["code"]) == (409, "INVALID_STATE")
    assert (await world.get(f"/api/v2/runs/{run['id']}")).json()["state"] == "SCHEDULED"


async def test_a_chain_goes_on_behind_a_step_that_is_called_done(world: World) -> None:
    fails = {"id": "a", "type": "fail", "retry": {"maxAttempts": 1}}
    dag = {"nodes": [fails, {"id": "b", "type": "noop", "deps": ["a"]}]}
    run = await world.run(await world.job("chain", "chain", dag))
    await world.work()
    steps = await world.seen(f"/api/v2/runs/{run['id']}/steps")
    done = await complete(world, {"id": steps[0]["run_id"]}, artifact={"rows": 3})
    assert (done.status, done.json()["state"]) == (200, "SUCCESS")
    await world.work()
    steps = await world.seen(f"/api/v2/runs/{run['id']}/steps")
    assert [(step["state"], step["artifact"]) for step in steps] == [("SUCCESS", {"rows": 3}), ("SUCCESS", None)]
    assert (await world.seen(f"/api/v2/runs/{run['id']}"))["state"] == "SUCCESS"


async def test_of_a_chain_that_is_called_done_nothing_goes_on(world: World) -> None:
    dag = {"nodes": [{"id": "a", "type": "sleep", "cfg": {"for": "1h"}}, {"id": "b", "type": "noop", "deps": ["a"]}]}
    run = await world.run(await world.job("chain", "chain", dag))
    await world.start()
    await world.start()
    done = await complete(world, run)
    assert (done.status, done.json()["state"]) == (200, "SUCCESS")
    await world.work()
    steps = await world.seen(f"/api/v2/runs/{run['id']}/steps")
    assert [step["state"] for step in steps] == ["CANCELED", "WAITING"]
    assert (await world.seen(f"/api/v2/runs/{run['id']}"))["state"] == "SUCCESS"


async def test_no_reason_need_be_given(world: World) -> None:
    run = await world.run(await world.job(kind="fail"))
    await world.work()
    done = await world.post(f"/api/v2/runs/{run['id']}/complete")
    assert (done.status, done.json()["state"], done.json()["error"]) == (200, "SUCCESS", "")


@pytest.mark.parametrize("body", [{"reason": None}, {"reason": "x" * 1025}, {"reason": "ok", "why": 1}])
async def test_what_is_no_reason_is_refused(world: World, body: dict[str, Any]) -> None:
    run = await world.run(await world.job(kind="fail"))
    await world.work()
    assert (await world.post(f"/api/v2/runs/{run['id']}/complete", body)).status == 400
    assert (await complete(world, {"id": 99})).status == 404
