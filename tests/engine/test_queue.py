"""The queue at work: workers wait for items, hold them by a lease, and what they fail comes back or becomes a dead
letter."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from ksana.domain.errors import InvalidState, NotFound, StaleLease, StoreUnavailable
from ksana.domain.items import Item, NewItem, acked, item_of, lease_token
from ksana.domain.jobs import TargetSpec
from ksana.domain.retention import Retention
from ksana.domain.runs import Run
from ksana.domain.states import Reason, State
from ksana.engine.queue_verbs import QueueVerbs
from tests.kit.world import World

LEASE = timedelta(minutes=15)


def queue_of(world: World) -> QueueVerbs:
    return world.main.engine.queue


async def put(world: World, payload: Any = None, after: timedelta = timedelta(0), **said: Any) -> Run:
    item = Item(payload=payload, max_attempts=said.pop("max_attempts", 3))
    [(run, _)] = await queue_of(world).enqueue([NewItem(queue="mail", item=item, due_at=world.now + after, **said)])
    assert isinstance(run, Run)
    return run


async def pull(world: World, limit: int = 10, **said: Any) -> list[Run]:
    return await queue_of(world).pull("mail", "w", limit=limit, lease=LEASE, **said)


async def test_an_item_is_pulled_and_acknowledged(any_world: World) -> None:
    world, queue = any_world, queue_of(any_world)
    run = await put(world, {"to": "x"})
    [held] = await pull(world)
    assert (held.id, item_of(held).payload) == (run.id, {"to": "x"})
    done = await queue.ack(held.id, lease_token(held), b'{"ok":true}')
    assert done.state is State.SUCCESS
    for token in (None, lease_token(held)):
        assert (await queue.ack(held.id, token)).epoch == done.epoch
    with pytest.raises(StaleLease):
        await queue.ack(held.id, f"{held.id}.9")
    with pytest.raises(NotFound):
        await queue.ack(999)
    assert world.main.diary.moved[-1].run == done


async def test_a_failed_item_comes_back_later_and_in_the_end_is_a_dead_letter(world: World) -> None:
    queue = queue_of(world)
    run = await put(world)
    for failures in (1, 2):
        [held] = await pull(world)
        back = await queue.fail(held.id, "no", token=lease_token(held), delay=timedelta(seconds=300))
        assert (back.state, back.failures, back.error) == (State.RETRYING, failures, "no")
        assert back.due_at == held.due_at + timedelta(seconds=300)
        assert await pull(world) == []
        await world.advance("300s")
    [held] = await pull(world)
    dead = await queue.fail(held.id, "no more")
    assert (dead.state, dead.failures) == (State.DEAD_LETTER, 3)
    with pytest.raises(InvalidState):
        await queue.fail(run.id, "again")
    assert (await queue.redrive(run.id)).failures == 0
    assert len(await pull(world)) == 1


async def test_a_failure_that_no_retry_can_mend_ends_the_item(world: World) -> None:
    [held] = await pull(world) if await put(world) else []
    over = await queue_of(world).fail(held.id, "bad payload", is_final=True)
    assert (over.state, over.error) == (State.FAILED, "bad payload")


async def test_a_worker_that_is_not_heard_of_loses_its_item_and_cannot_have_it_back(any_world: World) -> None:
    world, queue = any_world, queue_of(any_world)
    await put(world, max_attempts=2)
    [held] = await pull(world)
    await world.advance("10m")
    longer = await queue.extend(held.id, LEASE, lease_token(held))
    assert longer.deadline_at == world.now + LEASE
    world.sink.has_made_wait = True
    await world.advance("16m")
    lost = await world.run(held.id)
    assert (lost.state, lost.failures, lost.reason) == (State.RETRYING, 1, Reason.LEASE_LAPSED)
    [again] = await pull(world)
    for late in (queue.ack, queue.release):
        with pytest.raises(StaleLease):
            await late(held.id, lease_token(held))
    assert lease_token(again) != lease_token(held)
    await world.advance("16m")
    assert (await world.run(held.id)).state is State.DEAD_LETTER


async def test_what_is_given_back_counts_as_no_failure(world: World) -> None:
    [held] = await pull(world) if await put(world) else []
    back = await queue_of(world).release(held.id, lease_token(held))
    assert (back.state, back.failures, back.reason) == (State.RETRYING, 0, Reason.RELEASED)
    assert len(await pull(world)) == 1


async def test_whoever_waits_is_answered_the_moment_something_is_due(world: World) -> None:
    async with world.started():
        waiting = asyncio.create_task(pull(world, wait=timedelta(seconds=30)))
        await world.pass_time("2s")
        assert not waiting.done()
        run = await put(world, after=timedelta(seconds=3))
        await world.pass_time("2s")
        assert not waiting.done()
        at = world.now + timedelta(seconds=1)
        await world.pass_time("1s")
        assert (world.now, [held.id for held in await waiting]) == (at, [run.id])
        waiting = asyncio.create_task(pull(world, wait=timedelta(seconds=5)))
        await world.pass_time("6s")
        assert await waiting == []


async def test_a_key_stands_for_the_item_that_used_it(world: World) -> None:
    one = await put(world, 1, key="k")
    item = NewItem(queue="mail", item=Item(2), key="k")
    assert await queue_of(world).enqueue([item]) == [(one, False)]


async def test_many_are_moved_at_once_and_each_is_answered_on_its_own(world: World) -> None:
    queue = queue_of(world)
    for _ in range(3):
        await put(world)
    held = await pull(world)
    answers = await queue.move_many({held[0].id: acked, 999: acked, held[1].id: acked})
    assert [getattr(answer, "state", type(answer)) for answer in answers] == [State.SUCCESS, NotFound, State.SUCCESS]


async def test_a_step_of_a_chain_waits_for_a_worker(any_world: World) -> None:
    world = any_world
    nodes = [
        {"id": "a", "type": "echo", "cfg": {"message": 7}},
        {"id": "q", "type": "queue", "dependsOn": ["a"], "cfg": {"queue": "mail", "payload": {"n": "{{a.artifact}}"}}},
        {"id": "b", "type": "echo", "dependsOn": ["q"], "cfg": {"message": "{{q.artifact.done}}"}},
    ]
    chain = await world.job(target=TargetSpec("chain", {"nodes": nodes}))
    run = await world.trigger(chain)
    assert run.state is State.RUNNING
    [held] = await pull(world)
    assert item_of(held).payload == {"n": 7}
    await queue_of(world).ack(held.id, lease_token(held), b'{"done":"yes"}')
    await world.settle()
    assert (await world.run(run.id)).state is State.SUCCESS
    standing = await world.main.engine.chains.steps(await world.run(run.id))
    assert [one.artifact for one in standing] == [b"7", b'{"done":"yes"}', b'"yes"']


async def test_a_chain_goes_on_with_an_item_of_it_that_is_put_back(any_world: World) -> None:
    world, queue = any_world, queue_of(any_world)
    nodes = [
        {"id": "q", "type": "queue", "cfg": {"queue": "mail", "max_attempts": 1}},
        {"id": "b", "type": "echo", "dependsOn": ["q"], "cfg": {"message": "{{q.artifact.done}}"}},
    ]
    run = await world.trigger(await world.job(target=TargetSpec("chain", {"nodes": nodes})))
    [held] = await pull(world)
    assert (await queue.fail(held.id, "no")).state is State.DEAD_LETTER
    await world.settle()
    assert (await world.run(run.id)).state is State.FAILED
    await queue.redrive(held.id)
    await world.settle()
    assert (await world.run(run.id)).state is State.RUNNING
    [held] = await pull(world)
    await queue.ack(held.id, lease_token(held), b'{"done":"yes"}')
    await world.settle()
    assert (await world.run(run.id)).state is State.SUCCESS
    standing = await world.main.engine.chains.steps(await world.run(run.id))
    assert [one.artifact for one in standing] == [b'{"done":"yes"}', b'"yes"']


async def test_an_item_is_put_back_with_all_chains_above_it_or_not_at_all(any_world: World) -> None:
    """G10: whoever dies in between leaves no chain behind that does not hear of its item any more."""
    world, queue = any_world, queue_of(any_world)
    inner = {"nodes": [{"id": "q", "type": "queue", "cfg": {"queue": "mail", "max_attempts": 1}}]}
    nodes = [{"id": "in", "type": "chain", "cfg": inner}, {"id": "b", "type": "noop", "dependsOn": ["in"]}]
    outer = await world.trigger(await world.job(target=TargetSpec("chain", {"nodes": nodes})))
    [held] = await pull(world)
    await queue.fail(held.id, "no")
    await world.settle()
    family = [outer.id, held.parent_id or 0, held.id]

    async def states() -> list[State]:
        return [(await world.run(run_id)).state for run_id in family]

    gate = world.main.gate
    with gate.away("turn", "steer"), pytest.raises(StoreUnavailable):
        await queue.redrive(held.id)
    assert await states() == [State.FAILED, State.FAILED, State.DEAD_LETTER]
    with gate.away("turn", "steer", after_commit=True), pytest.raises(StoreUnavailable):
        await queue.redrive(held.id)
    assert await states() == [State.RUNNING, State.RUNNING, State.RETRYING]
    [held] = await pull(world)
    await queue.ack(held.id)
    await world.settle()
    assert await states() == [State.SUCCESS] * 3


async def test_a_chain_is_not_forgotten_while_an_item_of_it_is_a_dead_letter(any_world: World) -> None:
    """G11: nor does it keep others from being forgotten."""
    world, queue = any_world, queue_of(any_world)
    nodes = [{"id": "q", "type": "queue", "cfg": {"queue": "mail", "max_attempts": 1}}]
    chain = await world.job(target=TargetSpec("chain", {"nodes": nodes}))
    dead, failed = await world.trigger(chain), await world.trigger(chain)
    first, second = await pull(world)
    assert (await queue.fail(first.id, "no")).state is State.DEAD_LETTER
    assert (await queue.fail(second.id, "no", is_final=True)).state is State.FAILED
    await world.settle()
    late = world.now + timedelta(days=1)
    assert await world.store.prune(Retention(late, late, 0, 1)) == 1
    assert await world.store.prune(Retention(late, late, 0, 1)) == 0
    left = await world.store.get_runs([dead.id, first.id, failed.id, second.id])
    assert {run.id for run in left} == {dead.id, first.id}
    await queue.redrive(first.id)
    assert [run.id for run in await pull(world)] == [first.id]
