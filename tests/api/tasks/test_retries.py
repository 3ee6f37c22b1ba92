"""Retries: when, how often, after what rest, and across a restart."""

from datetime import timedelta
from typing import Any

import pytest

from ksana.api.services import JobDefaults
from ksana.domain.policies import OnUncertain, Retry
from tests.api.tasks.world import World, open_world
from tests.kit.sink import Drop, Hang, Reply, Sink


async def rests(world: World, run_id: int) -> list[int]:
    """The seconds between the tries of a run, until it is over."""
    found = []
    while (run := await world.stored(run_id)).state == "RETRYING":
        shown = await world.run(run_id)
        assert shown["NextRetryTime"] == run.due_at.isoformat()[:19] + "Z"
        rest = int((run.due_at - world.clock.time).total_seconds())
        found.append(rest)
        tries = world.sink.count
        await world.advance(rest - 1)
        assert world.sink.count == tries
        await world.advance(1)
        assert world.sink.count == tries + 1
    return found


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"max_retries": 3, "initial_delay": 2, "strategy": "fixed"}, [2, 2, 2]),
        ({"max_retries": 4, "initial_delay": 1, "strategy": "exponential", "max_delay": 3}, [1, 2, 3, 3]),
        ({"max_retries": 1}, [5]),
        ({"max_retries": 0, "initial_delay": 1}, []),
    ],
)
async def test_a_failing_run_rests_by_the_formula(
    any_world: World, policy: dict[str, Any], expected: list[int]
) -> None:
    """C-69, C-120, C-121, C-122, C-123, R14: N retries after the first try, `initial_delay * 2^(attempt-1)` capped."""
    world = any_world
    world.sink.on("/work", Reply(500))
    run_id = await world.trigger(await world.task(retry_policy=policy))
    await world.work()
    assert await rests(world, run_id) == expected
    run = await world.run(run_id)
    assert (run["Status"], run["Attempt"], world.sink.count) == ("FAILED", 1 + len(expected), 1 + len(expected))
    assert run["NextRetryTime"] is None


@pytest.mark.parametrize(
    ("answer", "tries"),
    [(Reply(503), 2), (Reply(429), 2), (Reply(408), 2), (Drop(), 2), (Reply(404), 1), (Reply(400), 1)],
)
async def test_only_what_may_pass_is_tried_again(world: World, sink: Sink, answer: Any, tries: int) -> None:
    """C-120, C-127, X-72: network errors, timeouts, 5xx, 408 and 429; no other 4xx."""
    sink.on("/work", answer)
    run_id = await world.trigger(await world.task(retry_policy={"max_retries": 1, "initial_delay": 1}))
    await world.advance(3)
    assert ((await world.run(run_id))["Status"], sink.count) == ("FAILED", tries)


async def test_a_timeout_is_tried_again_and_ends_as_one(world: World, sink: Sink) -> None:
    """C-120, X-73."""
    sink.on("/work", Hang())
    task = await world.task(timeout_seconds=1, retry_policy={"max_retries": 1, "initial_delay": 0})
    run_id = await world.trigger(task)
    await world.until(run_id, "TIMEOUT")
    assert sink.count == 2


async def test_success_after_a_failure_is_success(world: World, sink: Sink) -> None:
    """C-48, C-152: the run keeps the answer of its newest attempt, and the retry is counted."""
    sink.on("/work", Reply(500, b"no"), Reply(200, b"yes"))
    run_id = await world.trigger(await world.task(retry_policy={"max_retries": 2, "initial_delay": 1}))
    await world.work()
    resting = await world.run(run_id)
    assert (resting["Status"], resting["ResponseCode"], resting["ResponseBody"]) == ("RETRYING", 500, "no")
    await world.advance(1)
    run = await world.run(run_id)
    assert (run["Status"], run["Attempt"], run["ResponseBody"]) == ("SUCCESS", 2, "yes")
    assert await world.metric('cronjob_run_retries_total{task_id="1"}') == 1


async def test_a_retry_that_is_owed_survives_a_restart(any_world: World) -> None:
    """C-124."""
    world = any_world
    world.sink.on("/work", Reply(500), Reply(200))
    run_id = await world.trigger(await world.task(retry_policy={"max_retries": 1, "initial_delay": 30}))
    await world.work()
    await world.restart_after(20)
    await world.work()
    assert (await world.run(run_id))["Status"] == "RETRYING"
    await world.advance(10)
    assert ((await world.run(run_id))["Status"], world.sink.count) == ("SUCCESS", 2)


async def test_the_settings_say_how_often_a_task_that_does_not_say_is_tried(sqlite_tasks_url: str, sink: Sink) -> None:
    """C-128, C-133, X-71: `executor.default_retry`, which a policy may override piece by piece."""
    defaults = JobDefaults(retry=Retry(3, initial_delay=timedelta(seconds=7)))
    async with open_world(sqlite_tasks_url, sink, {"defaults": defaults}) as world:
        plain = await world.seen(f"/api/v1/tasks/{await world.task()}")
        assert plain["RetryPolicyJSON"] == ""
        assert plain["retry_policy"] == {"max_retries": 2, "initial_delay": 7, "strategy": "fixed", "max_delay": 3600}
        own = await world.seen(f"/api/v1/tasks/{await world.task(retry_policy={'max_retries': 0})}")
        assert own["retry_policy"] == {**plain["retry_policy"], "max_retries": 0}


@pytest.mark.parametrize(("rule", "status", "tries"), [("retry", "SUCCESS", 2), ("fail", "FAILED", 1)])
async def test_a_run_whose_node_died_is_judged_as_the_settings_say(
    sqlite_tasks_url: str, sink: Sink, rule: str, status: str, tries: int
) -> None:
    """C-141, X-140: `recovery.running` of the node that finds it, not of the one that stored the task."""
    sink.on("/work", Hang(), Reply(200))
    async with open_world(sqlite_tasks_url, sink) as world:
        run_id = await world.trigger(await world.task())
        await world.begin()
        await sink.wait_for(1)
        world.options["on_uncertain"] = OnUncertain(rule)
        await world.restart_after(15)
        await world.advance(2)
        assert ((await world.run(run_id))["Status"], sink.count) == (status, tries)
