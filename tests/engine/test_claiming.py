"""Who goes first when not all can, and what a misbehaving target costs."""

import asyncio
from datetime import timedelta

import pytest

from ksana.domain.jobs import TargetSpec
from ksana.domain.outcomes import Outcome, Verdict
from ksana.domain.policies import Priority, Retry
from ksana.domain.states import State
from tests.engine.conftest import Create
from tests.kit.script import Reply
from tests.kit.world import World

SLOW = Reply(after=timedelta(seconds=10))


async def test_high_goes_before_normal_before_low_when_workers_are_few(create_any_world: Create) -> None:
    world = await create_any_world(workers=1)
    world.sink.always = SLOW
    blocker = await world.job(timeout="1m")
    await world.trigger(blocker)
    order = [Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.LOW, Priority.HIGH]
    jobs = {(await world.job(once="1s", priority=priority, timeout="1m")).id: priority for priority in order}
    await world.advance("2m")
    seen = [jobs[d.context.job_id] for d in world.sink.deliveries[1:] if d.context.job_id is not None]
    assert seen == sorted(order, reverse=True)


async def test_high_runs_due_at_the_same_instant_are_claimed_first_when_born(create_world: Create) -> None:
    world = await create_world(workers=2)
    world.sink.always = SLOW
    order = [Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.HIGH]
    jobs = {(await world.job(once="5s", priority=priority, timeout="1m")).id: priority for priority in order}
    await world.advance("5s")
    assert [jobs[d.context.job_id or 0] for d in world.sink.deliveries] == [Priority.HIGH, Priority.HIGH]


async def test_a_newborn_run_does_not_overtake_an_older_one_of_its_priority(create_world: Create) -> None:
    world = await create_world(workers=1)
    world.sink.always = Reply(after=timedelta(seconds=3))
    await world.job(every="1s")
    await world.advance("30s")
    assert world.sink.slots == sorted(world.sink.slots)


async def test_no_more_attempts_are_under_way_than_there_are_workers(create_world: Create) -> None:
    world = await create_world(workers=3)
    world.sink.always = SLOW
    job = await world.job(every="1s", timeout="1m")
    await world.advance("60s")
    assert world.sink.most_at_once[job.id] == 3
    assert State.SCHEDULED in await world.states(job)


async def test_a_target_that_raises_costs_one_attempt(world: World) -> None:
    job = await world.job(retry=Retry(2, initial_delay=timedelta(seconds=1)))
    world.sink.replies(RuntimeError("boom \x00"))
    run = await world.trigger(job)
    assert run.state is State.RETRYING
    await world.advance("1s")
    assert (await world.run(run.id)).state is State.SUCCESS
    first, _ = await world.attempts(run)
    assert first.error.startswith("RuntimeError: boom")


async def test_a_target_that_cancels_itself_is_tried_again(world: World) -> None:
    job = await world.job(retry=Retry(2, initial_delay=timedelta(seconds=1)))
    world.sink.replies(asyncio.CancelledError())
    run = await world.trigger(job)
    assert run.state is State.RETRYING
    await world.advance("1s")
    assert (await world.run(run.id)).state is State.SUCCESS


@pytest.mark.parametrize("nonsense", [None, "done", Outcome("whatever")])  # type: ignore[arg-type]
async def test_a_target_that_answers_nonsense_fails_the_run(world: World, nonsense: object) -> None:
    world.sink.replies(Reply(nonsense))  # type: ignore[arg-type]
    run = await world.trigger(await world.job())
    assert run.state is State.FAILED
    assert "makes no sense" in run.error


@pytest.mark.parametrize("is_deaf", [False, True])
async def test_a_target_that_ignores_its_timeout_is_cut_off(world: World, is_deaf: bool) -> None:
    job = await world.job(timeout="30s")
    world.sink.replies(Reply(hangs=True, is_deaf=is_deaf))
    run = await world.trigger(job)
    await world.advance("34s")
    assert (await world.run(run.id)).state is State.RUNNING
    await world.advance("2s")
    ended = await world.run(run.id)
    assert ended.state is State.TIMEOUT
    assert "cut off" in ended.error
    assert world.main.engine.runner.executing == 0


async def test_a_kind_no_target_is_installed_for_is_tried_again_later(world: World) -> None:
    job = await world.job(retry=Retry(3, initial_delay=timedelta(minutes=1)))
    world.main.engine.targets = {}
    world.main.engine.runner._attempts.targets = {}
    run = await world.trigger(job)
    assert run.state is State.RETRYING
    assert "'script'" in run.error


async def test_text_no_store_can_keep_is_made_storable(any_world: World) -> None:
    job = await any_world.job(target=TargetSpec("script"))
    any_world.sink.replies(Outcome(Verdict.FAIL, error="half a character \ud83d and nothing \x00"))
    run = await any_world.trigger(job)
    assert run.state is State.FAILED
    assert run.error.startswith("half a character")
