"""Runs that wait for a slot of their job: let in oldest first, never more than the limit, never forgotten."""

import asyncio
import itertools
from typing import Any

import msgspec

from ksana.domain.changes import JobChange
from ksana.domain.fires import DueJob, Fire, admit_manual
from ksana.domain.jobs import Job
from ksana.domain.policies import OverlapRule
from ksana.domain.ports import Store
from ksana.domain.queries import RunQuery
from ksana.domain.runs import Run
from ksana.domain.states import Event, Reason, State
from tests.stores.builders import (
    HOUR,
    NOW,
    PARALLEL,
    SECOND,
    a_claim,
    a_job,
    a_move,
    a_planned_job,
    a_run,
    claim,
    get,
    ids,
    one_at_a_time,
    put,
    slot_run,
)
from tests.stores.conftest import Reopen


def waiting(id: int, job_id: int = 1, **said: Any) -> Run:
    return a_run(id, job_id, state=State.WAITING, reason=Reason.SLOT, **said)


async def states(store: Store, *run_ids: int) -> list[State]:
    return [(await get(store, run_id)).state for run_id in run_ids]


async def end(store: Store, run: Run, *, frees_slot: bool = True) -> None:
    await store.turn([a_move(run, Event.SUCCEED, frees_slot=frees_slot)])


async def test_a_freed_slot_lets_the_oldest_in(store: Store) -> None:
    await store.add_jobs([a_job(1, overlap=one_at_a_time())])
    await put(store, a_run(1), waiting(3), waiting(2, epoch=5), waiting(4))
    [running] = await claim(store)
    await end(store, running.run)
    assert await get(store, 2) == a_run(2, epoch=6)
    assert await states(store, 3, 4) == [State.WAITING, State.WAITING]


async def test_who_is_let_in_can_be_claimed_in_the_same_turn(store: Store) -> None:
    await store.add_jobs([a_job(1, overlap=one_at_a_time())])
    await put(store, a_run(1), waiting(2))
    [running] = await claim(store)
    turn = await store.turn([a_move(running.run, Event.SUCCEED, frees_slot=True)], a_claim())
    assert ids(turn.claimed) == [2]


async def test_a_move_that_frees_no_slot_lets_nobody_in(store: Store) -> None:
    await store.add_jobs([a_job(1, overlap=one_at_a_time())])
    await put(store, a_run(1), waiting(2))
    [running] = await claim(store)
    await end(store, running.run, frees_slot=False)
    assert await states(store, 2) == [State.WAITING]


async def test_a_lost_move_lets_nobody_in(store: Store) -> None:
    await store.add_jobs([a_job(1, overlap=one_at_a_time(2))])
    await put(store, a_run(1), waiting(2))
    [running] = await claim(store)
    await end(store, running.run, frees_slot=False)
    await end(store, running.run)
    assert await states(store, 2) == [State.WAITING]


async def test_no_more_are_let_in_than_the_limit_allows(store: Store) -> None:
    await store.add_jobs([a_job(1, overlap=one_at_a_time(3)), a_job(2, overlap=one_at_a_time())])
    await put(store, *[a_run(n) for n in (1, 2, 3)], *[waiting(n) for n in (4, 5, 6)], waiting(7, 2))
    runs = [one.run for one in await claim(store)]
    retried = a_move(runs[0], Event.RETRY, due_at=NOW + HOUR, frees_slot=True)
    ended = [a_move(run, Event.FAIL, frees_slot=True) for run in runs[1:]]
    await store.turn([retried, *ended])
    assert await states(store, 4, 5, 6, 7) == [State.SCHEDULED, State.SCHEDULED, State.WAITING, State.WAITING]


async def test_runs_that_wait_for_something_else_are_not_let_in(store: Store) -> None:
    await store.add_jobs([a_job(1, overlap=one_at_a_time())])
    await put(store, a_run(1), a_run(2, state=State.WAITING, reason=Reason.DEPENDENCY), waiting(3))
    [running] = await claim(store)
    await end(store, running.run)
    assert await states(store, 2, 3) == [State.WAITING, State.SCHEDULED]


async def test_a_job_whose_limit_was_lifted_lets_everybody_in(store: Store) -> None:
    job = a_job(1, overlap=one_at_a_time())
    await store.add_jobs([job])
    await put(store, a_run(1), *[waiting(n) for n in range(2, 6)])
    [running] = await claim(store)
    lifted = msgspec.structs.replace(job, version=2, overlap=PARALLEL)
    await store.change_jobs([JobChange(version=1, job=lifted)])
    assert await states(store, 1, 2, 3, 4, 5) == [State.RUNNING, *[State.SCHEDULED] * 4]
    await end(store, running.run)


async def test_whoever_waits_for_a_slot_that_became_free_unnoticed_is_found(store: Store) -> None:
    await store.add_jobs([a_job(1, overlap=one_at_a_time())])
    await put(store, a_run(1), waiting(2), waiting(3))
    [running] = await claim(store)
    await store.turn([a_move(running.run, Event.SUCCEED)])
    assert await states(store, 2, 3) == [State.WAITING, State.WAITING]
    assert await store.admit_waiting() == 1
    assert await states(store, 2, 3) == [State.SCHEDULED, State.WAITING]
    assert await store.admit_waiting() == 0


async def test_nobody_is_left_waiting_for_a_free_slot(store: Store, reopen: Reopen) -> None:
    """Firing, triggering, ending and cancelling race for one job's slots; the limit holds and nobody is forgotten."""
    limit, rounds = 2, 40
    await store.add_jobs([a_planned_job(1, overlap=one_at_a_time(limit))])
    nodes = [store, await reopen()]
    fresh = itertools.count(1)

    def admit(job: Job, active: int, run: Run) -> Run:
        assert job.overlap.rule is OverlapRule.QUEUE
        return admit_manual(job, active, run)

    def decide(due: list[DueJob]) -> list[Fire]:
        return [
            Fire(1, [admit(one.job, one.active, slot_run(one, next(fresh)))], [], after, after)
            for one in due
            if (after := one.slot_at + SECOND)
        ]

    async def work(node: Store, node_id: int) -> None:
        for _ in range(rounds):
            for one in await claim(node, node_id=node_id, now=NOW + HOUR, limit=1):
                await end(node, one.run)

    async def fire(node: Store) -> None:
        for _ in range(rounds):
            await node.fire_due(NOW + HOUR, 1, decide)

    async def trigger_and_cancel(node: Store) -> None:
        for _ in range(rounds):
            run = await node.add_run(1, lambda job, active: admit(job, active, a_run(next(fresh))))
            frees = run.state is not State.WAITING
            await node.turn([a_move(run, Event.CANCEL, frees_slot=frees)])

    async def watch(node: Store) -> None:
        for _ in range(rounds):
            page = await node.find_runs(RunQuery(states=frozenset({State.SCHEDULED, State.RUNNING})))
            assert page.total <= limit

    await asyncio.gather(
        work(nodes[0], 1), work(nodes[1], 2), fire(nodes[1]), trigger_and_cancel(nodes[0]), watch(nodes[0])
    )
    await work(store, 1)
    while (await store.find_runs(RunQuery(states=frozenset({State.SCHEDULED})))).total:
        await work(store, 1)
    counts = await store.counts(NOW + HOUR)
    assert counts.unfinished == {}


async def test_a_waiting_run_that_is_canceled_is_not_let_in_and_its_turn_passes_on(
    store: Store, reopen: Reopen
) -> None:
    await store.add_jobs([a_job(n, overlap=one_at_a_time()) for n in range(1, 21)])
    other = await reopen()
    for n in range(1, 21):
        await put(store, a_run(n * 10, n), waiting(n * 10 + 1, n), waiting(n * 10 + 2, n))
    running = [one.run for one in await claim(store)]
    firsts = await store.get_runs([n * 10 + 1 for n in range(1, 21)])
    turns = [end(store, run) for run in running]
    turns += [other_turn(other, run) for run in firsts]
    await asyncio.gather(*turns)
    for n in range(1, 21):
        first, second = await states(store, n * 10 + 1, n * 10 + 2)
        assert (first, second) in [(State.CANCELED, State.SCHEDULED), (State.SCHEDULED, State.WAITING)]


async def other_turn(store: Store, run: Run) -> None:
    await store.turn([a_move(run, Event.CANCEL)])
