"""The store goes away, before or after it did what it was asked: nothing is lost, nothing doubled, all resumes."""

from datetime import timedelta

import pytest

from ksana.domain.errors import StoreUnavailable
from ksana.domain.outcomes import SUCCESS, Outcome, Verdict
from ksana.domain.policies import OnUncertain, OverlapRule
from ksana.domain.states import State
from tests.kit.script import Reply
from tests.kit.world import World

both = pytest.mark.parametrize("after_commit", [False, True])


@both
async def test_a_fire_without_an_answer_is_neither_lost_nor_doubled(any_world: World, after_commit: bool) -> None:
    world = any_world
    job = await world.job(every="10s", on_uncertain=OnUncertain.FAIL)
    await world.advance("5s")
    with world.store_away("fire_due", after_commit=after_commit, times=1) as outage:
        await world.advance("8s")
    assert outage.hits == 1
    await world.advance("27s")
    assert await world.states(job) == [State.SUCCESS] * 4
    assert len(set(world.sink.slots)) == world.sink.count == 4
    assert world.sink.times[0] - world.sink.slots[0] <= timedelta(seconds=5)


@both
async def test_a_claim_without_an_answer_is_neither_lost_nor_doubled(any_world: World, after_commit: bool) -> None:
    world = any_world
    job = await world.job(on_uncertain=OnUncertain.FAIL)
    with world.store_away("turn", after_commit=after_commit, times=1) as outage:
        run = await world.trigger(job)
        await world.advance("5s")
    assert outage.hits == 1
    ended = await world.run(run.id)
    assert (ended.state, ended.attempt, ended.reclaims, world.sink.count) == (State.SUCCESS, 1, 0, 1)


@both
async def test_a_result_without_an_answer_is_offered_until_it_is_stored(any_world: World, after_commit: bool) -> None:
    world = any_world
    job = await world.job(timeout="1h")
    world.sink.replies(Reply(hangs=True))
    run = await world.trigger(job)
    with world.store_away("turn", after_commit=after_commit, times=3):
        world.sink.answer(run.id, Outcome(Verdict.FAIL, error="no"))
        await world.advance("10s")
    ended = await world.run(run.id)
    assert (ended.state, ended.error, world.sink.count) == (State.FAILED, "no", 1)
    assert len(await world.attempts(run)) == 1
    assert world.main.engine.runner.is_idle


@both
async def test_everything_resumes_within_five_seconds_of_the_stores_return(
    any_world: World, after_commit: bool
) -> None:
    world, start = any_world, any_world.now
    job = await world.job(every="10s", overlap=OverlapRule.QUEUE)
    with world.store_away(after_commit=after_commit):
        await world.advance("56s")
    assert world.main.diary.store[0] is False
    back_at = world.now
    await world.advance("5s")
    assert world.main.diary.store[-1] is True
    newest = start + timedelta(seconds=50)
    runs = {run.slot_at: run for run in await world.runs(job)}
    assert runs[newest].state is State.SUCCESS
    started_at = runs[newest].started_at
    assert started_at is not None
    assert started_at - back_at <= timedelta(seconds=5)
    await world.advance("1m")
    accounted = len(await world.runs(job)) + sum(gap.count for gap in await world.gaps(job))
    assert accounted == 12
    assert len(set(world.sink.slots)) == world.sink.count


async def test_results_outlast_a_long_outage(quick_world: World) -> None:
    world = quick_world
    job = await world.job(timeout="10m")
    world.sink.replies(*[Reply(after=timedelta(seconds=30))] * 5)
    runs = [await world.trigger(job) for _ in range(5)]
    with world.store_away():
        await world.advance("20m")
    await world.advance("5s")
    assert {(await world.run(run.id)).state for run in runs} == {State.SUCCESS}
    assert world.sink.count == 5


async def test_leases_that_lapsed_in_an_outage_get_time_to_be_renewed(quick_world: World) -> None:
    world = quick_world
    job = await world.job(timeout="1h")
    world.sink.replies(Reply(hangs=True))
    run = await world.trigger(job)
    await world.node("b")
    with world.store_away():
        await world.advance("5m")
    await world.advance("1m")
    assert (world.sink.count, (await world.run(run.id)).reclaims) == (1, 0)
    await world.answer(run)
    assert (await world.run(run.id)).state is State.SUCCESS


async def test_a_node_cut_off_alone_loses_its_runs_to_the_others(any_world: World) -> None:
    world = any_world
    job = await world.job(timeout="1h")
    world.sink.replies(Reply(after=timedelta(seconds=20)), Reply(after=timedelta(seconds=30)))
    run = await world.trigger(job)
    await world.node("b")
    with world.store_away(nodes=("a",)):
        await world.advance("30s")
        assert [d.node for d in world.sink.of(run.id)] == ["a", "b"]
    await world.advance("10s")
    assert world.nodes["a"].diary.lost == [run.id]
    await world.advance("30s")
    ended = await world.run(run.id)
    assert (ended.state, ended.attempt, world.sink.count) == (State.SUCCESS, 2, 2)
    assert [attempt.number for attempt in await world.attempts(run)] == [2]


async def test_a_trigger_without_an_answer_says_so(world: World) -> None:
    job = await world.job()
    with world.store_away("add_run"), pytest.raises(StoreUnavailable):
        await world.trigger(job)
    assert await world.runs(job) == []


async def test_a_result_the_store_chokes_on_does_not_block_the_others(any_world: World) -> None:
    world = any_world
    job = await world.job(timeout="1h")
    world.sink.replies(*[Reply(hangs=True)] * 3)
    runs = [await world.trigger(job) for _ in range(3)]
    for run, outcome in zip(runs, (SUCCESS, Outcome(Verdict.FAIL, code="x" * 80), SUCCESS), strict=True):  # type: ignore[arg-type]
        world.sink.answer(run.id, outcome)
    await world.advance("10s")
    states = [(await world.run(run.id)).state for run in runs]
    assert states == [State.SUCCESS, State.FAILED, State.SUCCESS]
    assert (await world.trigger(job)).state is State.SUCCESS
