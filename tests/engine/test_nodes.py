"""Many nodes, some of which die or freeze: nothing is lost, and whoever was presumed dead has no say."""

from datetime import timedelta

import pytest

from ksana.domain.jobs import JobSpec, TargetSpec
from ksana.domain.policies import OnUncertain, OverlapRule
from ksana.domain.schedules import Once
from ksana.domain.states import Reason, State
from tests.engine.conftest import Create
from tests.kit.script import FAIL, Reply
from tests.kit.world import World

LEASE = timedelta(seconds=10)


async def test_two_nodes_share_a_thousand_jobs_due_at_once_and_each_runs_once(create_any_world: Create) -> None:
    """C-8, C-9, C-52: many executors on one store, and each run is claimed by one."""
    world = await create_any_world(workers=200, batch=100)
    await world.node("b")
    due = world.now + timedelta(seconds=5)
    specs = [JobSpec(name=f"job {i}", target=TargetSpec("script"), schedule=Once(due)) for i in range(1000)]
    await world.main.engine.jobs.create_many("test", specs)
    await world.advance("5s")
    assert world.sink.count == 1000
    assert len({d.context.job_id for d in world.sink.deliveries}) == 1000
    assert {run.state for run in await world.runs()} == {State.SUCCESS}


@pytest.mark.parametrize("overlap", list(OverlapRule))
async def test_the_runs_of_a_dead_node_move_on_within_its_lease_and_two_seconds(
    any_world: World, overlap: OverlapRule
) -> None:
    world = any_world
    job = await world.job(timeout="10m", overlap=overlap)
    world.sink.replies(Reply(hangs=True))
    run = await world.trigger(job)
    await world.node("b")
    world.kill("a")
    died_at = world.now
    await world.advance("1m")
    first, second = world.sink.of(run.id)
    assert second.node == "b"
    assert second.at - died_at <= LEASE + timedelta(seconds=2)
    assert second.context.fence > first.context.fence
    assert second.planned_at == first.planned_at
    assert (await world.run(run.id)).state is State.SUCCESS


async def test_a_node_alone_takes_its_own_runs_up_after_it_was_killed(world: World) -> None:
    job = await world.job(timeout="10m")
    world.sink.replies(Reply(hangs=True))
    run = await world.trigger(job)
    await world.restart()
    await world.advance(LEASE + timedelta(seconds=2))
    assert ((await world.run(run.id)).state, world.sink.count) == (State.SUCCESS, 2)


async def test_the_late_result_of_a_frozen_node_is_lost(any_world: World) -> None:
    world = any_world
    job = await world.job(timeout="10m")
    world.sink.replies(Reply(FAIL, after=timedelta(seconds=3)), Reply(after=timedelta(seconds=40)))
    run = await world.trigger(job)
    await world.node("b")
    world.freeze("a")
    await world.advance("30s")
    assert [d.node for d in world.sink.of(run.id)] == ["a", "b"]
    await world.thaw("a")
    assert (await world.run(run.id)).state is State.RUNNING
    await world.advance("1m")
    ended = await world.run(run.id)
    assert (ended.state, ended.reclaims) == (State.SUCCESS, 1)
    assert [attempt.number for attempt in await world.attempts(run)] == [2]


async def test_a_thawed_node_stops_what_was_taken_from_it(world: World) -> None:
    job = await world.job(timeout="10m")
    world.sink.replies(Reply(hangs=True))
    await world.trigger(job)
    await world.node("b")
    world.freeze("a")
    await world.advance("30s")
    await world.thaw("a")
    assert [delivery.node for delivery in world.sink.canceled] == ["a"]


async def test_a_freeze_shorter_than_the_lease_goes_unnoticed(world: World) -> None:
    job = await world.job(timeout="10m")
    world.sink.replies(Reply(after=timedelta(seconds=20)))
    run = await world.trigger(job)
    await world.node("b")
    world.freeze("a")
    await world.advance("8s")
    await world.thaw("a")
    await world.advance("1m")
    assert ((await world.run(run.id)).reclaims, world.sink.count) == (0, 1)


async def test_a_run_that_must_not_be_doubled_fails_when_its_worker_vanished(world: World) -> None:
    job = await world.job(timeout="10m", on_uncertain=OnUncertain.FAIL)
    world.sink.replies(Reply(hangs=True))
    run = await world.trigger(job)
    await world.restart()
    await world.advance("1m")
    ended = await world.run(run.id)
    assert (ended.state, ended.reason, world.sink.count) == (State.FAILED, Reason.UNCERTAIN, 1)


async def test_a_run_that_keeps_losing_its_workers_ends(world: World) -> None:
    job = await world.job(timeout="1h")
    world.sink.always = Reply(hangs=True)
    run = await world.trigger(job)
    for _ in range(6):
        await world.restart()
        await world.advance("30s")
    ended = await world.run(run.id)
    assert (ended.state, ended.reason, world.sink.count) == (State.FAILED, Reason.MAX_RECLAIMS, 4)


async def test_a_run_that_ends_by_the_reaper_lets_the_next_in_line_go(world: World) -> None:
    job = await world.job(timeout="1h", overlap=OverlapRule.QUEUE, on_uncertain=OnUncertain.FAIL)
    world.sink.replies(Reply(hangs=True))
    await world.trigger(job)
    second = await world.trigger(job)
    await world.restart()
    await world.advance("30s")
    assert (await world.run(second.id)).state is State.SUCCESS


async def test_a_node_that_was_forgotten_joins_again(world: World) -> None:
    await world.node("b")
    before = world.nodes["a"].id
    world.freeze("a")
    await world.advance("5m")
    await world.job(every="1m", node="b")
    await world.advance("5m")
    await world.thaw("a")
    await world.advance("2s")
    assert world.nodes["a"].id != before
    assert world.nodes["a"].id in {node.id for node in await world.store.nodes()}


async def test_a_node_claims_only_from_its_own_queues(world: World) -> None:
    await world.node("b", queues=("slow",))
    fast, slow = await world.job(every="10s"), await world.job(every="10s", queue="slow")
    await world.advance("1m")
    nodes = {(d.context.job_id, d.node) for d in world.sink.deliveries}
    assert nodes == {(fast.id, "a"), (slow.id, "b")}
    assert world.sink.count == 12


async def test_a_node_with_several_queues_claims_from_all_of_them(create_world: Create) -> None:
    world = await create_world(queues=("one", "two"))
    for queue in ("one", "two"):
        await world.trigger(await world.job(queue=queue))
    assert world.sink.count == 2


async def test_a_graceful_stop_waits_for_what_runs_and_leaves(any_world: World) -> None:
    world = any_world
    job = await world.job()
    world.sink.replies(Reply(after=timedelta(seconds=5)))
    run = await world.trigger(job)
    b = await world.node("b")
    await world.stop("a")
    assert ((await world.run(run.id)).state, world.sink.count) == (State.SUCCESS, 1)
    assert [node.id for node in await world.store.nodes()] == [b.id]


async def test_a_graceful_stop_hands_back_what_takes_too_long(any_world: World) -> None:
    world = any_world
    job = await world.job(timeout="1h")
    world.sink.replies(Reply(hangs=True))
    run = await world.trigger(job)
    await world.node("b")
    stopped_at = world.now
    await world.stop("a")
    handed = await world.run(run.id)
    assert (handed.state, handed.reason, handed.reclaims) == (State.RETRYING, Reason.SHUTDOWN, 0)
    assert world.now - stopped_at == timedelta(seconds=10)
    await world.advance("1s")
    assert [d.node for d in world.sink.of(run.id)] == ["a", "b"]
    assert (await world.run(run.id)).state is State.SUCCESS


async def test_a_graceful_stop_fails_what_must_not_be_doubled(world: World) -> None:
    job = await world.job(timeout="1h", on_uncertain=OnUncertain.FAIL)
    world.sink.replies(Reply(hangs=True))
    run = await world.trigger(job)
    await world.stop("a")
    assert ((await world.run(run.id)).state, (await world.run(run.id)).reason) == (State.FAILED, Reason.UNCERTAIN)


async def test_a_stop_while_the_store_is_away_does_not_raise(world: World) -> None:
    job = await world.job()
    world.sink.replies(Reply(after=timedelta(seconds=2)))
    run = await world.trigger(job)
    with world.store_away():
        await world.stop("a")
    await world.node("b")
    await world.advance("30s")
    assert ((await world.run(run.id)).state, world.sink.count) == (State.SUCCESS, 2)


async def test_a_node_that_drains_ends_what_it_has_and_leaves_the_rest_to_others(world: World) -> None:
    world.sink.replies(Reply(hangs=True))
    held = await world.job(every="1h", timeout="2h")
    await world.advance("1h")
    [run] = await world.runs(held)
    engine = world.main.engine
    assert engine.node is not None
    await engine.nodes.drain(engine.node.id)
    job = await world.job(every="1m")
    await world.advance("3m")
    assert {one.state for one in await world.runs(job)} == {State.SCHEDULED}
    await world.answer(run)
    assert (await world.runs(held))[0].state is State.SUCCESS
    other = await world.node("b")
    await world.settle()
    assert other.engine.node is not None
    assert {one.state for one in await world.runs(job)} == {State.SUCCESS}

    world.kill("b")
    await engine.nodes.drain(engine.node.id, is_draining=False)
    await world.advance("2m")
    assert await world.states(job) == [State.SUCCESS] * 5
