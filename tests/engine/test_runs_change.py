"""What people do to runs: cancel in every state, try again, and the first final state wins."""

from datetime import timedelta

import pytest

from ksana.domain.claims import Claim
from ksana.domain.errors import InvalidState, NotFound
from ksana.domain.policies import OverlapRule, Retry
from ksana.domain.runs import Run
from ksana.domain.states import Reason, State
from tests.kit.script import FAIL, RETRY, WAIT, Reply
from tests.kit.world import World


async def a_run_in(world: World, state: State) -> Run:
    match state:
        case State.WAITING:
            job = await world.job(overlap=OverlapRule.QUEUE, max_concurrency=0)
        case State.SCHEDULED:
            job = await world.job(queue="nobody's")
        case State.RETRYING:
            job = await world.job(retry=Retry(2))
            world.sink.replies(RETRY)
        case State.CALLBACK_PENDING:
            job = await world.job(callback=True)
            world.sink.replies(WAIT)
        case _:
            job = await world.job(timeout="1h")
            world.sink.replies(Reply(hangs=True))
    run = await world.trigger(job)
    assert run.state is state
    return run


@pytest.mark.parametrize(
    "state", [State.WAITING, State.SCHEDULED, State.RUNNING, State.RETRYING, State.CALLBACK_PENDING]
)
async def test_a_run_can_be_canceled_in_every_unfinished_state(any_world: World, state: State) -> None:
    world = any_world
    run = await a_run_in(world, state)
    sent = world.sink.count
    canceled = await world.cancel(run)
    assert (canceled.state, canceled.reason) == (State.CANCELED, Reason.OPERATOR)
    await world.advance("10m")
    assert ((await world.run(run.id)).state, world.sink.count) == (State.CANCELED, sent)


async def test_an_attempt_on_this_node_is_stopped_at_once(world: World) -> None:
    run = await a_run_in(world, State.RUNNING)
    await world.main.engine.runs.cancel(run.id)
    assert world.main.engine.runner.executing == 0
    await world.settle()
    assert [delivery.run_id for delivery in world.sink.canceled] == [run.id]


async def test_an_attempt_on_another_node_is_stopped_by_its_next_beat(any_world: World) -> None:
    world = any_world
    run = await a_run_in(world, State.RUNNING)
    await world.node("b")
    await world.cancel(run, node="b")
    await world.advance("1s")
    assert [delivery.node for delivery in world.sink.canceled] == ["a"]
    assert world.nodes["a"].engine.runner.executing == 0


async def test_word_of_a_cancel_that_got_lost_with_the_beat_is_asked_for(world: World) -> None:
    run = await a_run_in(world, State.RUNNING)
    await world.node("b")
    with world.store_away("beat", after_commit=True, nodes=("a",)):
        await world.cancel(run, node="b")
        await world.advance("1s")
    await world.advance("5s")
    assert [delivery.node for delivery in world.sink.canceled] == ["a"]


async def test_a_canceled_attempt_frees_its_place(world: World) -> None:
    world.nodes["a"].engine.runner._places.capacity = 1
    run = await a_run_in(world, State.RUNNING)
    await world.cancel(run)
    assert (await world.trigger(await world.job())).state is State.SUCCESS


async def test_an_attempt_let_go_before_it_took_its_first_step_frees_its_place(world: World) -> None:
    job = await world.job()
    runner = world.main.engine.runner
    run = await world.main.engine.runs.trigger(job.id)

    async def claim_and_let_go() -> None:
        turn = await world.store.turn([], _claim(world))
        runner.begin(turn.claimed, 0)
        runner.let_go(run.id, turn.claimed[0].run.epoch)

    await claim_and_let_go()
    await world.settle()
    assert runner.executing == 0
    assert runner.is_idle


def _claim(world: World) -> Claim:
    return Claim(node_id=world.main.id, now=world.now, limit=1, queues=("default",))


@pytest.mark.parametrize("outcome", [FAIL, None])
async def test_a_run_that_ended_badly_can_be_tried_again(any_world: World, outcome: object) -> None:
    world = any_world
    job = await world.job(timeout="1h")
    world.sink.replies(Reply(FAIL) if outcome else Reply(hangs=True))
    run = await world.trigger(job)
    if outcome is None:
        await world.cancel(run)
    again = await world.rerun(run)
    assert (again.state, again.failures, again.reclaims) == (State.RETRYING, 0, 0)
    ended = await world.run(run.id)
    assert (ended.state, ended.attempt) == (State.SUCCESS, 2)
    first, second = world.sink.of(run.id)
    assert second.context.fence > first.context.fence


async def test_a_run_that_succeeded_is_not_tried_again_or_canceled(world: World) -> None:
    run = await world.trigger(await world.job())
    with pytest.raises(InvalidState):
        await world.rerun(run)
    with pytest.raises(InvalidState):
        await world.cancel(run)


async def test_a_result_that_comes_after_a_cancel_changes_nothing(world: World) -> None:
    job = await world.job(timeout="1h")
    world.sink.replies(Reply(after=timedelta(seconds=5), is_deaf=True))
    run = await world.trigger(job)
    await world.cancel(run)
    await world.advance("1m")
    assert (await world.run(run.id)).state is State.CANCELED


async def test_nobody_can_move_a_run_that_is_not_there(world: World) -> None:
    with pytest.raises(NotFound):
        await world.main.engine.runs.cancel(12345)


async def test_a_trigger_passes_its_input_on(world: World) -> None:
    await world.trigger(await world.job(), b'{"size": 3}')
    assert world.sink.deliveries[0].context.input == {"size": 3}
