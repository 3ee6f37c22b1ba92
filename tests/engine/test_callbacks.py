"""Runs that end by a word from outside: the first one counts, and none ends the wait at its deadline."""

import asyncio
from datetime import timedelta

import pytest

from ksana.domain.errors import InvalidState, NotFound
from ksana.domain.runs import Run
from ksana.domain.states import Reason, State
from tests.kit.script import WAIT, Reply
from tests.kit.world import World


async def waiting(world: World, **said: object) -> Run:
    job = await world.job(callback=True, **said)  # type: ignore[arg-type]
    world.sink.replies(WAIT)
    run = await world.trigger(job)
    assert run.state is State.CALLBACK_PENDING
    return run


async def test_a_callback_ends_the_run(any_world: World) -> None:
    world = any_world
    run = await waiting(world)
    await world.advance("1m")
    run = await world.call_back(run)
    assert (run.state, run.reason, run.ended_at) == (State.SUCCESS, Reason.CALLBACK, world.now)
    await world.advance("1h")
    assert (await world.run(run.id)).state is State.SUCCESS


async def test_a_callback_may_say_that_it_failed(world: World) -> None:
    run = await world.call_back(await waiting(world), succeeded=False, error="out of paper \x00")
    assert run.state is State.FAILED
    assert run.error.startswith("out of paper")


async def test_only_the_first_callback_counts(any_world: World) -> None:
    world = any_world
    run = await waiting(world)
    assert (await world.call_back(run, succeeded=False)).state is State.FAILED
    assert (await world.call_back(run, succeeded=True)).state is State.FAILED


async def test_callbacks_that_race_all_get_the_state_as_it_is(any_world: World) -> None:
    world = any_world
    run = await waiting(world)
    said = await asyncio.gather(*(world.main.engine.runs.call_back(run.callback_token or "", True) for _ in range(5)))
    assert {one.state for one in said} == {State.SUCCESS}
    assert len({one.epoch for one in said}) == 1


async def test_a_callback_that_overtakes_the_answer_counts(any_world: World) -> None:
    world = any_world
    job = await world.job(callback=True)
    world.sink.replies(Reply(hangs=True))
    run = await world.trigger(job)
    assert run.state is State.RUNNING
    assert (await world.call_back(run)).state is State.SUCCESS
    await world.advance("1h")
    assert ((await world.run(run.id)).state, world.sink.count) == (State.SUCCESS, 1)


async def test_an_answer_after_the_callback_changes_nothing(world: World) -> None:
    job = await world.job(callback=True)
    world.sink.replies(Reply(WAIT, after=timedelta(seconds=2)))
    b = await world.node("b")
    run = await world.trigger(job)
    assert run.callback_token is not None
    other = next(node for node in (b, world.nodes["a"]) if node.id != run.node_id)
    await other.engine.runs.call_back(run.callback_token, True)
    await world.advance("10m")
    assert (await world.run(run.id)).state is State.SUCCESS


async def test_a_wait_ends_at_its_deadline(any_world: World) -> None:
    world = any_world
    run = await waiting(world, callback_timeout="5m")
    await world.advance("299s")
    assert (await world.run(run.id)).state is State.CALLBACK_PENDING
    await world.advance("2s")
    ended = await world.run(run.id)
    assert (ended.state, ended.reason) == (State.TIMEOUT, Reason.CALLBACK_TIMEOUT)
    assert (await world.call_back(run)).state is State.TIMEOUT


async def test_a_deadline_survives_a_restart_and_a_wait_is_not_tried_again(world: World) -> None:
    run = await waiting(world, callback_timeout="5m")
    await world.down_for("1m")
    await world.restart()
    assert (await world.run(run.id)).state is State.CALLBACK_PENDING
    await world.down_for("10m")
    assert ((await world.run(run.id)).state, world.sink.count) == (State.TIMEOUT, 1)


async def test_the_token_is_known_before_the_request_is_sent(world: World) -> None:
    run = await waiting(world)
    assert world.sink.deliveries[0].context.callback_token == run.callback_token


async def test_nobody_has_an_unknown_token(world: World) -> None:
    with pytest.raises(NotFound):
        await world.main.engine.runs.call_back("nobody", True)


async def test_a_run_that_was_not_sent_awaits_no_callback(world: World) -> None:
    job = await world.job(callback=True, queue="elsewhere")
    run = await world.trigger(job)
    with pytest.raises(InvalidState):
        await world.call_back(run)
