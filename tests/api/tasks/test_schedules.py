"""Planned runs: each once, none early, and what becomes of those that nobody was there to start."""

from collections import Counter
from datetime import timedelta
from time import perf_counter

import pytest
from msgspec.structs import replace

from ksana.api.services import JobDefaults
from ksana.api.tasks.task_reading import blank_task
from ksana.domain.jobs import TargetSpec
from ksana.domain.schedules import CronSchedule
from tests.api.tasks.world import World, open_world
from tests.kit.sink import Sink

# Five planned instants pass while nobody is there: 12:00:10 to 12:00:50.
DOWN = 51


async def planned(world: World, task: int) -> list[str]:
    """The seconds the runs of a task stand for, oldest first."""
    return [run["ScheduledTime"][14:19] for run in reversed(await world.runs(task))]


async def test_fire_now_makes_up_for_a_gap_with_one_run(any_world: World) -> None:
    """C-35, X-61: at once, for the latest instant missed; then the usual beat."""
    world = any_world
    task = await world.task(cron_expr="*/10 * * * * *", misfire_policy="FIRE_NOW")
    await world.restart_after(DOWN + 6)
    await world.work()
    assert await planned(world, task) == ["00:50"]
    await world.advance(13)
    assert await planned(world, task) == ["00:50", "01:00", "01:10"]


async def test_skip_leaves_a_gap_and_counts_it(any_world: World) -> None:
    """C-36: no run for what was missed, but five misfires in the metric and one record in the fire log."""
    world = any_world
    task = await world.task(cron_expr="*/10 * * * * *", misfire_policy="SKIP")
    await world.restart_after(DOWN + 6)
    await world.work()
    assert await planned(world, task) == []
    assert await world.metric(f'cronjob_misfire_total{{task_id="{task}"}}') == 5
    await world.advance(3)
    assert await planned(world, task) == ["01:00"]


@pytest.mark.parametrize(("limit", "made_up"), [(3, ["00:30", "00:40", "00:50"]), (0, []), (9, None)])
async def test_catching_up_is_limited(world: World, limit: int, made_up: list[str] | None) -> None:
    """C-37, X-60: the newest of what was missed, in order, each with its own planned instant."""
    task = await world.task(
        cron_expr="*/10 * * * * *",
        misfire_policy="CATCH_UP_LIMITED",
        catchup_limit=limit,
        concurrency_policy="PARALLEL",
    )
    await world.restart_after(DOWN + 6)
    await world.work()
    assert await planned(world, task) == (made_up if made_up is not None else [f"00:{n}0" for n in range(1, 6)])
    assert world.sink.count == len(await planned(world, task))


async def test_a_planned_instant_has_one_run_whatever_happens(any_world: World) -> None:
    """C-8, C-146, G2: over restarts and looks that overlap."""
    world = any_world
    task = await world.task(cron_expr="* * * * * *")
    for _ in range(4):
        await world.advance(2)
        await world.begin()
        await world.restart_after(0)
        await world.work()
    instants = await planned(world, task)
    assert (len(instants), len(set(instants)), world.sink.count) == (8, 8, 8)


async def test_five_hundred_tasks_of_one_second_all_fire_and_none_early(sqlite_tasks_url: str, sink: Sink) -> None:
    """C-31: with a batch of 200."""
    async with open_world(sqlite_tasks_url, sink, batch=200, workers=64) as world:
        specs = [await world.task(cron_expr="2 0 12 * * *") for _ in range(500)]
        await world.advance(1)
        assert sink.count == 0
        await world.advance(1)
        assert sink.count == len(specs)
        assert {request.header("X-Ksana-Scheduled-At") for request in sink.requests} == {"2030-01-01T12:00:02Z"}


async def test_a_thousand_tasks_that_fire_each_minute_lose_none(sqlite_tasks_url: str, sink: Sink) -> None:
    """C-17: every fire becomes one run, and no look for due tasks takes as long as the time between two of them."""
    async with open_world(sqlite_tasks_url, sink, workers=64) as world:
        blank = blank_task(JobDefaults())
        target = TargetSpec("http", {**blank.target.config, "url": f"{sink.url}/work"})
        specs = [
            replace(blank, name=f"t{n}", target=target, schedule=CronSchedule(f"{n % 60} * * * * *"))
            for n in range(1000)
        ]
        await world.engine.jobs.create_many("tasks", specs)
        took = []
        for _ in range(60):
            world.clock.move_to(world.clock.time + timedelta(seconds=1))
            began = perf_counter()
            await world.engine.planner.run_once()
            took.append(perf_counter() - began)
            await world.work()
        seen = Counter(request.header("X-Task-Id") for request in sink.requests)
        assert (len(seen), set(seen.values())) == (1000, {1})
        assert sorted(took)[-2] < 1.0
