"""How many runs of one job are alive at once, and what becomes of one too many."""

from datetime import timedelta

import pytest

from ksana.domain.errors import ConcurrencyLimit
from ksana.domain.policies import Overlap, OverlapRule, Retry
from ksana.domain.states import Reason, State
from tests.kit.script import FAIL, RETRY, Reply
from tests.kit.world import World

SLOW = Reply(after=timedelta(seconds=25))


@pytest.mark.parametrize(("limit", "until_many_wait"), [(1, "2m"), (2, "5m")])
async def test_queued_runs_go_first_in_first_out_within_the_limit(
    any_world: World, limit: int, until_many_wait: str
) -> None:
    world = any_world
    world.sink.always = SLOW
    job = await world.job(every="10s", overlap=OverlapRule.QUEUE, max_concurrency=limit, timeout="1m")
    await world.advance(until_many_wait)
    assert world.sink.most_at_once[job.id] == limit
    assert world.sink.slots == sorted(world.sink.slots)
    states = await world.states(job)
    assert states.count(State.WAITING) > 5
    await world.pause(job)
    assert State.WAITING not in await world.states(job)


async def test_a_limit_of_none_makes_every_run_wait(world: World) -> None:
    job = await world.job(every="10s", overlap=OverlapRule.QUEUE, max_concurrency=0)
    await world.advance("30s")
    assert world.sink.count == 0
    [first, *_] = runs = await world.runs(job)
    assert [run.state for run in runs] == [State.WAITING] * 3
    assert first.reason is Reason.SLOT


async def test_the_line_moves_on_when_a_run_fails_or_is_canceled(world: World) -> None:
    job = await world.job(overlap=OverlapRule.QUEUE)
    world.sink.replies(Reply(hangs=True), Reply(hangs=True))
    first, second, third = [await world.trigger(job) for _ in range(3)]
    assert (await world.run(third.id)).state is State.WAITING
    await world.answer(first, FAIL)
    await world.cancel(second)
    assert await world.states(job) == [State.FAILED, State.CANCELED, State.SUCCESS]


async def test_a_run_that_is_tried_again_keeps_its_slot(world: World) -> None:
    retry = Retry(max_attempts=2, initial_delay=timedelta(minutes=1))
    job = await world.job(overlap=OverlapRule.QUEUE, retry=retry)
    world.sink.replies(RETRY)
    first, second = await world.trigger(job), await world.trigger(job)
    assert (await world.run(second.id)).state is State.WAITING
    await world.advance("1m")
    assert [d.run_id for d in world.sink.deliveries] == [first.id, first.id, second.id]


async def test_skip_leaves_a_record_of_what_was_skipped(any_world: World) -> None:
    world = any_world
    world.sink.replies(SLOW)
    job = await world.job(every="10s", overlap=OverlapRule.SKIP, timeout="1m")
    await world.advance("40s")
    runs = await world.runs(job)
    assert [run.state for run in runs] == [State.SUCCESS, State.SKIPPED, State.SKIPPED, State.SUCCESS]
    assert runs[1].reason is Reason.OVERLAP
    assert world.sink.most_at_once[job.id] == 1


async def test_parallel_runs_know_no_limit(world: World) -> None:
    world.sink.always = SLOW
    job = await world.job(every="1s", overlap=OverlapRule.PARALLEL, timeout="1m")
    await world.advance("8s")
    assert world.sink.most_at_once[job.id] == 8


async def test_a_trigger_that_finds_no_room_under_skip_is_refused_and_makes_no_run(any_world: World) -> None:
    world = any_world
    job = await world.job(overlap=OverlapRule.SKIP)
    world.sink.replies(Reply(hangs=True))
    first = await world.trigger(job)
    with pytest.raises(ConcurrencyLimit):
        await world.trigger(job)
    assert [run.id for run in await world.runs(job)] == [first.id]


async def test_a_run_apart_neither_obeys_the_limit_nor_counts_against_it(any_world: World) -> None:
    world = any_world
    world.sink.always = SLOW
    job = await world.job(every="30s", overlap=OverlapRule.SKIP, timeout="1m")
    await world.advance("30s")
    apart = [await world.main.engine.runs.trigger(job.id, apart=True) for _ in range(3)]
    await world.advance("1s")
    assert world.sink.most_at_once[job.id] == 4
    await world.advance("20s")
    [run] = [await world.main.engine.runs.trigger(job.id, apart=True)]
    await world.advance("9s")
    assert {run.id, *(one.id for one in apart)} < {delivery.run_id for delivery in world.sink.deliveries}
    scheduled = [one for one in await world.runs(job) if one.slot_at is not None]
    assert [one.state for one in scheduled] == [State.SUCCESS, State.RUNNING]


async def test_two_nodes_keep_the_order_of_the_line(any_world: World) -> None:
    world = any_world
    job = await world.job(overlap=OverlapRule.QUEUE)
    b = await world.node("b")
    world.sink.replies(Reply(hangs=True))
    first = await world.trigger(job)
    asked = []
    for i in range(6):
        world.clock.move_to(world.now + timedelta(milliseconds=1))
        node = b if i % 2 else world.nodes["a"]
        asked.append((await node.engine.runs.trigger(job.id)).id)
    await world.answer(first)
    await world.advance("5s")
    assert [d.run_id for d in world.sink.deliveries] == [first.id, *asked]


async def test_runs_that_wait_are_let_in_when_the_limit_is_raised(any_world: World) -> None:
    world = any_world
    job = await world.job(overlap=OverlapRule.QUEUE, max_concurrency=0)
    run = await world.trigger(job)
    assert run.state is State.WAITING
    await world.change(job, overlap=Overlap(OverlapRule.QUEUE, 1))
    await world.advance("2s")
    assert (await world.run(run.id)).state is State.SUCCESS


async def test_a_run_begun_without_limit_lets_those_in_who_wait_under_a_newer_rule(any_world: World) -> None:
    world = any_world
    job = await world.job(overlap=OverlapRule.PARALLEL)
    world.sink.replies(Reply(hangs=True))
    first = await world.trigger(job)
    await world.change(job, overlap=Overlap(OverlapRule.QUEUE, 1))
    second = await world.trigger(job)
    assert second.state is State.WAITING
    await world.answer(first)
    await world.advance("1m")
    assert (await world.run(second.id)).state is State.SUCCESS
