"""What a node handed out is moved without a look into the store, and never on top of what others did meanwhile."""

from datetime import timedelta

import pytest

from ksana.domain.errors import StaleLease
from ksana.domain.items import Item, NewItem, Pull, lease_token, new_item, pulled
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.engine.handed_out import HandedOut
from ksana.engine.queue_judges import acking
from ksana.engine.queue_verbs import QueueVerbs
from tests.kit.world import World
from tests.stores.builders import NOW

LEASE = timedelta(minutes=15)


async def held(world: World, count: int = 1, subject: str | None = None) -> list[Run]:
    queue = world.main.engine.queue
    await queue.enqueue([NewItem(queue="mail", item=Item(n), subject=subject) for n in range(count)])
    return await pull(queue)


async def pull(queue: QueueVerbs) -> list[Run]:
    return await queue.pull("mail", "w", limit=10, lease=LEASE)


async def test_what_was_handed_out_here_is_moved_in_one_call(any_world: World) -> None:
    world, queue = any_world, any_world.main.engine.queue
    runs = await held(world, 3)
    calls = world.main.gate.calls
    done = await queue.move_many({run.id: acking(lease_token(run)) for run in runs})
    assert world.main.gate.calls - calls == 1
    assert done == [await world.run(run.id) for run in runs]
    assert {run.state for run in done if isinstance(run, Run)} == {State.SUCCESS}


async def test_a_lease_is_extended_and_then_ended_in_a_call_each(any_world: World) -> None:
    world, queue = any_world, any_world.main.engine.queue
    [run] = await held(world)
    calls = world.main.gate.calls
    longer = await queue.extend(run.id, LEASE * 2, lease_token(run))
    done = await queue.ack(run.id, lease_token(run))
    assert world.main.gate.calls - calls == 2
    assert (longer.deadline_at, done.epoch) == (world.now + LEASE * 2, longer.epoch + 1)
    assert await world.run(run.id) == done


async def test_an_item_about_an_object_is_always_looked_at(any_world: World) -> None:
    world, queue = any_world, any_world.main.engine.queue
    [run] = await held(world, subject="memory/1")
    calls = world.main.gate.calls
    await queue.ack(run.id, lease_token(run))
    assert world.main.gate.calls - calls == 2


async def test_who_was_overtaken_elsewhere_learns_how_the_item_stands(any_world: World) -> None:
    world, queue = any_world, any_world.main.engine.queue
    other = (await world.node("b")).engine.queue
    [run] = await held(world)
    await other.release(run.id, lease_token(run))
    [again] = await pull(other)
    with pytest.raises(StaleLease):
        await queue.ack(run.id, lease_token(run))
    assert (await world.run(run.id)).state is State.RUNNING
    assert (await queue.ack(run.id, lease_token(again))).state is State.SUCCESS


async def test_of_many_only_those_that_stand_are_moved_at_sight(any_world: World) -> None:
    world, queue = any_world, any_world.main.engine.queue
    other = (await world.node("b")).engine.queue
    gone, stands = await held(world, 2)
    await other.release(gone.id, lease_token(gone))
    lost, done = await queue.move_many({run.id: acking(lease_token(run)) for run in (gone, stands)})
    assert isinstance(lost, StaleLease)
    assert done == await world.run(stands.id)


def test_only_so_many_are_remembered_and_none_that_carries_much() -> None:
    memory = HandedOut(most=2)
    asked = Pull(queue="@mail", now=NOW, limit=9, holder="w", until=NOW + LEASE)
    waiting = [new_item(n, "mail", Item("x" * 3000 if n == 4 else n), NOW, due_at=NOW) for n in range(1, 5)]
    memory.keep(waiting)
    assert memory.take([1, 2, 3, 4]) == {}
    runs = {run.id: pulled(run, asked) for run in waiting}
    memory.keep(runs.values())
    assert memory.take([1, 2, 3, 4]) == {2: runs[2], 3: runs[3]}
    assert memory.take([2, 3]) == {}
