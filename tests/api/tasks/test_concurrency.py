"""What happens to one run too many: it waits in line, is refused, is skipped, or goes all the same."""

import asyncio

import pytest

from tests.api.tasks.world import World, ok, open_world, refused
from tests.kit.sink import Hang, Reply, Sink


async def test_a_queue_lets_one_after_the_other_in(any_world: World) -> None:
    """C-40, C-46, C-52: with a limit of one, three triggers stand as RUNNING, SCHEDULED, SCHEDULED and end in order."""
    world, gates = any_world, [asyncio.Event() for _ in range(3)]
    world.sink.on("/work", *[Reply(after=gate) for gate in gates])
    task = await world.task(max_concurrency=1)
    runs = [await world.trigger(task) for _ in range(3)]
    await world.begin()
    await world.sink.wait_for(1)
    assert await world.statuses(task) == ["RUNNING", "SCHEDULED", "SCHEDULED"]
    for n, gate in enumerate(gates):
        await world.sink.wait_for(n + 1)
        assert world.sink.count == n + 1
        gate.set()
        await world.until(runs[n], "SUCCESS")
        await world.begin()
    assert [request.header("X-Run-Id") for request in world.sink.requests] == [str(run) for run in runs]


async def test_never_more_run_at_once_than_the_limit(world: World, sink: Sink) -> None:
    """C-39."""
    release = asyncio.Event()
    sink.on("/work", Reply(after=release))
    task = await world.task(max_concurrency=2, concurrency_policy="QUEUE")
    for _ in range(5):
        await world.trigger(task)
    await world.begin()
    await sink.wait_for(2)
    await world.begin()
    assert (sink.count, (await world.statuses(task)).count("RUNNING")) == (2, 2)
    release.set()
    await world.work()
    assert await world.statuses(task) == ["SUCCESS"] * 5


async def test_a_trigger_at_the_limit_is_refused_under_skip_and_makes_no_run(any_world: World) -> None:
    """C-42, C-118: 409 CONCURRENCY_LIMIT; a run that has not started yet counts too (X-65)."""
    world = any_world
    task = await world.task(concurrency_policy="SKIP")
    await world.trigger(task)
    answer = await world.post(f"/api/v1/tasks/{task}/trigger")
    assert refused(answer) == (409, "CONCURRENCY_LIMIT")
    assert len(await world.runs(task)) == 1
    await world.work()
    await world.trigger(task)


async def test_a_limit_of_zero_is_always_full(world: World, sink: Sink) -> None:
    """C-44, C-150: settable by PATCH; under SKIP a trigger is refused, under QUEUE it waits until there is room."""
    task = await world.task(concurrency_policy="SKIP")
    await world.change(task, max_concurrency=0)
    assert refused(await world.post(f"/api/v1/tasks/{task}/trigger")) == (409, "CONCURRENCY_LIMIT")
    await world.change(task, concurrency_policy="QUEUE")
    run_id = await world.trigger(task)
    await world.work()
    assert ((await world.run(run_id))["Status"], sink.count) == ("SCHEDULED", 0)
    await world.change(task, max_concurrency=1)
    await world.work()
    assert (await world.run(run_id))["Status"] == "SUCCESS"


async def test_parallel_ignores_the_limit(world: World, sink: Sink) -> None:
    """C-43."""
    sink.on("/work", Hang())
    task = await world.task(concurrency_policy="PARALLEL", max_concurrency=1)
    for _ in range(3):
        await world.trigger(task)
    await world.begin()
    await sink.wait_for(3)
    assert await world.statuses(task) == ["RUNNING"] * 3


async def test_a_scheduled_fire_at_the_limit_leaves_a_skipped_run(any_world: World) -> None:
    """C-41: under SKIP, one per planned second, and nothing is sent for it."""
    world, release = any_world, asyncio.Event()
    world.sink.on("/work", Reply(after=release))
    task = await world.task(cron_expr="* * * * * *", concurrency_policy="SKIP")
    for second in range(1, 4):
        world.clock.move_to(world.clock.time.replace(second=second))
        await world.begin()
        await world.sink.wait_for(1)
    assert await world.statuses(task) == ["RUNNING", "SKIPPED", "SKIPPED"]
    assert [run["ScheduledTime"][-3:-1] for run in await world.runs(task, "?status=SKIPPED")] == ["03", "02"]
    release.set()
    await world.work()
    await world.advance(1)
    assert (await world.statuses(task), world.sink.count) == (["SUCCESS", "SKIPPED", "SKIPPED", "SUCCESS"], 2)


async def test_a_run_that_rests_or_waits_holds_its_place(world: World, sink: Sink) -> None:
    """X-44, X-64: RETRYING and CALLBACK_PENDING count as running."""
    sink.on("/work", Reply(500), Reply(202))
    task = await world.task(
        exec_type="ASYNC", concurrency_policy="SKIP", retry_policy={"max_retries": 1, "initial_delay": 2}
    )
    run_id = await world.trigger(task)
    await world.work()
    for status in ("RETRYING", "CALLBACK_PENDING"):
        assert (await world.run(run_id))["Status"] == status
        assert refused(await world.post(f"/api/v1/tasks/{task}/trigger")) == (409, "CONCURRENCY_LIMIT")
        await world.advance(2)
    ok(await world.post(f"/api/v1/runs/{run_id}/cancel"))
    await world.trigger(task)


async def test_no_more_run_at_once_than_there_are_workers(sqlite_tasks_url: str, sink: Sink) -> None:
    """C-33, C-133: of twenty slow runs sixteen are under way and four wait as SCHEDULED."""
    sink.on("/work", Hang())
    async with open_world(sqlite_tasks_url, sink, workers=16) as world:
        task = await world.task(concurrency_policy="PARALLEL")
        for _ in range(20):
            await world.trigger(task)
        await world.begin()
        await sink.wait_for(16)
        await world.begin()
        statuses = await world.statuses(task)
        assert (statuses.count("RUNNING"), statuses.count("SCHEDULED"), sink.count) == (16, 4, 16)


@pytest.mark.parametrize("policy", ["QUEUE", "SKIP", "PARALLEL"])
async def test_a_disabled_task_can_be_triggered(world: World, sink: Sink, policy: str) -> None:
    """X-50: manual means manual."""
    task = await world.task(status="DISABLED", concurrency_policy=policy)
    await world.trigger(task)
    await world.work()
    assert sink.count == 1
