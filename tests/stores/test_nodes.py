"""Nodes, their leases, and the runs they leave behind."""

import asyncio

from ksana.domain.nodes import NodeInfo
from ksana.domain.ports import Store
from ksana.domain.retention import Retention
from ksana.domain.states import Event, State
from tests.stores.builders import (
    HOUR,
    LEASE,
    NOW,
    SECOND,
    a_job,
    a_move,
    a_run,
    claim,
    get,
    ids,
    put,
)
from tests.stores.conftest import Reopen


async def test_a_node_joins_with_a_lease(store: Store) -> None:
    node = await store.join("host 🚀:1", NOW, LEASE)
    assert node == NodeInfo(id=node.id, name="host 🚀:1", started_at=NOW, lease_until=NOW + LEASE)
    other = await store.join("host 🚀:1", NOW + SECOND, LEASE)
    assert other.id > node.id
    assert await store.nodes() == [node, other]


async def test_a_beat_extends_the_lease(store: Store) -> None:
    node = await store.join("node", NOW, LEASE)
    beat = await store.beat(node.id, NOW + SECOND, LEASE)
    assert (beat.alive, beat.taken) == (True, [])
    assert (await store.nodes())[0].lease_until == NOW + SECOND + LEASE


async def test_a_node_hears_with_its_beat_that_it_is_to_drain(store: Store) -> None:
    node, other = await store.join("one", NOW, LEASE), await store.join("two", NOW, LEASE)
    for _ in range(2):
        assert await store.set_draining(node.id, True)
    assert (await store.beat(node.id, NOW + SECOND, LEASE)).draining
    assert not (await store.beat(other.id, NOW + SECOND, LEASE)).draining
    assert [one.draining for one in await store.nodes()] == [True, False]
    assert (await store.nodes())[0].lease_until == NOW + SECOND + LEASE
    assert await store.set_draining(node.id, False)
    assert not (await store.beat(node.id, NOW + 2 * SECOND, LEASE)).draining
    await store.leave(node.id)
    assert not await store.set_draining(node.id, True)
    gone = await store.beat(node.id, NOW, LEASE)
    assert (gone.alive, gone.draining) == (False, False)


async def test_two_beats_at_the_same_instant_are_both_heard(store: Store) -> None:
    node = await store.join("node", NOW, LEASE)
    assert (await store.beat(node.id, NOW, LEASE)).alive
    assert (await store.beat(node.id, NOW, LEASE)).alive


async def test_a_lapsed_lease_is_taken_up_again(store: Store) -> None:
    node = await store.join("node", NOW, LEASE)
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1))
    await claim(store, node_id=node.id)
    assert (await store.beat(node.id, NOW + HOUR, LEASE)).alive
    assert await store.lapsed(NOW + HOUR, 10) == []


async def test_a_node_that_left_is_not_alive(store: Store) -> None:
    node = await store.join("node", NOW, LEASE)
    await store.leave(node.id)
    assert not (await store.beat(node.id, NOW, LEASE)).alive
    assert await store.nodes() == []
    assert not (await store.beat(10**9, NOW, LEASE)).alive


async def test_runs_of_lapsed_and_vanished_nodes_and_runs_past_their_deadline_have_lapsed(store: Store) -> None:
    live = await store.join("live", NOW + SECOND, LEASE)
    late = await store.join("late", NOW, LEASE)
    await store.add_jobs([a_job(1)])
    pending = State.CALLBACK_PENDING
    await put(
        store,
        a_run(1, state=State.RUNNING, node_id=live.id),
        a_run(2, state=State.RUNNING, node_id=late.id),
        a_run(3, state=State.RUNNING, node_id=10**9),
        a_run(4, state=pending, deadline_at=NOW + LEASE),
        a_run(5, state=pending, deadline_at=NOW + LEASE + SECOND),
        a_run(6, state=State.RUNNING, node_id=late.id, deadline_at=NOW),
        a_run(7),
        a_run(8, state=State.SUCCESS, ended_at=NOW),
    )
    assert await store.lapsed(NOW + LEASE - SECOND, 10) != []
    lapsed = await store.lapsed(NOW + LEASE, 10)
    assert sorted(ids(lapsed)) == [2, 3, 4, 6]
    assert [one.job for one in lapsed] == [a_job(1)] * 4
    assert len(await store.lapsed(NOW + LEASE, 3)) == 3


async def test_a_taken_run_reaches_its_node_once(store: Store) -> None:
    node = await store.join("node", NOW, LEASE)
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1), a_run(2))
    runs = [one.run for one in await claim(store, node_id=node.id)]
    await store.turn([a_move(run, Event.CANCEL, taken_from=node.id) for run in runs])
    beat = await store.beat(node.id, NOW, LEASE)
    assert sorted(beat.taken) == [(1, 1), (2, 1)]
    assert (await store.beat(node.id, NOW, LEASE)).taken == []


async def test_what_is_taken_while_a_node_beats_is_heard_sooner_or_later(store: Store, reopen: Reopen) -> None:
    node = await store.join("node", NOW, LEASE)
    await store.add_jobs([a_job(1)])
    await put(store, *[a_run(n) for n in range(1, 41)])
    runs = [one.run for one in await claim(store, node_id=node.id)]
    other = await reopen()
    heard: list[tuple[int, int]] = []

    async def take() -> None:
        for run in runs:
            await other.turn([a_move(run, Event.CANCEL, taken_from=node.id)])

    async def listen() -> None:
        for _ in range(40):
            heard.extend((await store.beat(node.id, NOW, LEASE)).taken)

    await asyncio.gather(take(), listen())
    heard.extend((await store.beat(node.id, NOW, LEASE)).taken)
    assert sorted(heard) == [(run.id, run.epoch) for run in runs]


async def test_pruning_forgets_lapsed_nodes_that_hold_nothing(store: Store) -> None:
    lapsed, holding = await store.join("lapsed", NOW, LEASE), await store.join("holding", NOW, LEASE)
    live = await store.join("live", NOW + LEASE, LEASE)
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1))
    await claim(store, node_id=holding.id)
    await store.prune(Retention(NOW + LEASE, NOW, 0, 100))
    assert await store.nodes() == [holding, live]
    assert not (await store.beat(lapsed.id, NOW + LEASE, LEASE)).alive
    assert (await get(store, 1)).node_id == holding.id
