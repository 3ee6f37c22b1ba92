"""From due cursors to runs, and runs outside the schedule."""

import asyncio

import pytest

from ksana.domain.claims import Fired
from ksana.domain.errors import AlreadyExists, ConcurrencyLimit, NotFound
from ksana.domain.fires import DueJob, Fire
from ksana.domain.idempotency import IdempotencyClaim, IdempotencyReplay
from ksana.domain.jobs import Job
from ksana.domain.ports import Store
from ksana.domain.queries import RunQuery
from ksana.domain.runs import Run
from ksana.domain.states import Reason, State
from tests.stores.builders import (
    HOUR,
    NOW,
    PARALLEL,
    SECOND,
    a_gap,
    a_job,
    a_planned_job,
    a_run,
    fires,
    get,
    get_job,
    ids,
    one_at_a_time,
    put,
    slot_run,
)
from tests.stores.conftest import Reopen


def nothing(due: list[DueJob]) -> list[Fire]:
    return []


async def test_a_fire_adds_its_runs_and_moves_the_cursor(store: Store) -> None:
    job = a_planned_job(1)
    await store.add_jobs([job])
    fired = await store.fire_due(NOW, 10, fires(runs=lambda due: [slot_run(due, 11)]))
    assert ids(fired.runs) == [11]
    assert (fired.gaps, fired.looked_at) == ([], 1)
    assert await get(store, 11) == fired.runs[0].run == a_run(11, slot_at=NOW)
    assert (await get_job(store, 1)).next_fire_at == NOW + SECOND
    assert await store.next_fire_at() == NOW + SECOND


async def test_what_is_due_comes_earliest_first_and_no_more_than_asked_for(store: Store) -> None:
    late, early, tie, future = (
        a_planned_job(1, NOW - SECOND),
        a_planned_job(2, NOW - HOUR),
        a_planned_job(3, NOW - SECOND),
        a_planned_job(4, NOW + SECOND),
    )
    await store.add_jobs([late, early, tie, future, a_job(5)])
    seen: list[DueJob] = []

    def look(due: list[DueJob]) -> list[Fire]:
        seen[:] = due
        return []

    assert await store.fire_due(NOW, 10, look) == Fired([], [], 3)
    assert [(one.job.id, one.slot_at, one.fire_at) for one in seen] == [
        (2, NOW - HOUR, NOW - HOUR),
        (1, NOW - SECOND, NOW - SECOND),
        (3, NOW - SECOND, NOW - SECOND),
    ]
    await store.fire_due(NOW, 2, look)
    assert [one.job.id for one in seen] == [2, 1]


async def test_nothing_due_asks_for_no_decision(store: Store) -> None:
    await store.add_jobs([a_planned_job(1, NOW + SECOND)])

    def refuse(due: list[DueJob]) -> list[Fire]:
        raise AssertionError

    assert await store.fire_due(NOW, 10, refuse) == Fired([], [], 0)


async def test_a_decision_sees_the_slot_and_the_jittered_instant(store: Store) -> None:
    await store.add_jobs([a_planned_job(1, next_slot_at=NOW - SECOND, next_fire_at=NOW)])
    seen: list[DueJob] = []
    await store.fire_due(NOW, 10, lambda due: seen.extend(due) or [])  # type: ignore[func-returns-value]
    assert [(one.slot_at, one.fire_at) for one in seen] == [(NOW - SECOND, NOW)]


async def test_jobs_a_decision_leaves_out_stay_due(store: Store) -> None:
    await store.add_jobs([a_planned_job(n) for n in (1, 2, 3)])
    decide = fires(runs=lambda due: [slot_run(due, due.job.id)])
    await store.fire_due(NOW, 10, lambda due: decide(due[:1]))
    fired = await store.fire_due(NOW, 10, decide)
    assert ids(fired.runs) == [2, 3]


async def test_a_decision_that_raises_changes_nothing(store: Store) -> None:
    job = a_planned_job(1)
    await store.add_jobs([job])

    def broken(due: list[DueJob]) -> list[Fire]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.fire_due(NOW, 10, broken)
    assert await get_job(store, 1) == job
    assert ids((await store.fire_due(NOW, 10, fires(runs=lambda due: [slot_run(due, 1)]))).runs) == [1]


async def test_a_slot_that_has_a_run_gets_no_other(store: Store) -> None:
    await store.add_jobs([a_planned_job(1), a_planned_job(2)])
    await put(store, a_run(1, slot_at=NOW, state=State.SUCCESS, ended_at=NOW))
    fired = await store.fire_due(NOW, 10, fires(runs=lambda due: [slot_run(due, 10 + due.job.id)]))
    assert ids(fired.runs) == [12]
    assert await store.get_runs([11]) == []
    assert (await get_job(store, 1)).next_fire_at == NOW + SECOND


async def test_a_fire_may_bring_several_runs_and_gaps(store: Store) -> None:
    await store.add_jobs([a_planned_job(1)])

    def runs(due: DueJob) -> list[Run]:
        return [a_run(n, slot_at=NOW + n * SECOND, error="é🚀") for n in range(1, 601)]

    gap = a_gap(1, NOW - HOUR, 7)
    fired = await store.fire_due(NOW, 10, fires(runs=runs, gaps=lambda due: [gap]))
    assert (len(fired.runs), fired.gaps) == (600, [gap])
    assert (await store.find_runs(RunQuery(job_id=1))).total == 600


async def test_the_same_gap_is_recorded_once(store: Store) -> None:
    await store.add_jobs([a_planned_job(1)])
    gaps = [a_gap(1, NOW - HOUR, 7), a_gap(1, NOW - HOUR, 7, Reason.CATCH_UP_LIMIT)]
    for _ in range(2):
        await store.fire_due(NOW + HOUR, 10, fires(runs=lambda due: [], gaps=lambda due: gaps))
    assert len(await store.fire_log(1, NOW - 2 * HOUR, NOW, 10)) == 2


async def test_the_cursor_can_come_to_its_end(store: Store) -> None:
    await store.add_jobs([a_planned_job(1)])
    await store.fire_due(NOW, 10, lambda due: [Fire(1, [], [], None, None)])
    assert await store.next_fire_at() is None
    assert (await store.fire_due(NOW + HOUR, 10, nothing)).looked_at == 0


async def test_runs_can_be_born_running(store: Store) -> None:
    await store.add_jobs([a_planned_job(1)])
    node = await store.join("node", NOW, SECOND)
    born = fires(
        runs=lambda due: [slot_run(due, 1, state=State.RUNNING, epoch=1, attempt=1, node_id=node.id, started_at=NOW)]
    )
    fired = await store.fire_due(NOW, 10, born)
    assert await get(store, 1) == fired.runs[0].run
    assert ids(await store.lapsed(NOW + SECOND, 10)) == [1]


async def test_a_decision_sees_how_many_runs_are_unfinished(store: Store) -> None:
    await store.add_jobs([a_planned_job(1, overlap=one_at_a_time()), a_planned_job(2, overlap=PARALLEL)])
    for job_id in (1, 2):
        await put(
            store,
            a_run(job_id * 10, job_id, state=State.RUNNING),
            a_run(job_id * 10 + 1, job_id, state=State.WAITING, reason=Reason.SLOT),
            a_run(job_id * 10 + 2, job_id, state=State.SUCCESS, ended_at=NOW),
        )
    seen: list[DueJob] = []
    await store.fire_due(NOW, 10, lambda due: seen.extend(due) or [])  # type: ignore[func-returns-value]
    assert {one.job.id: one.active for one in seen} == {1: 2, 2: 0}


async def test_stores_that_fire_at_once_make_one_run_per_slot(store: Store, reopen: Reopen) -> None:
    jobs = [a_planned_job(n) for n in range(1, 41)]
    await store.add_jobs(jobs)
    nodes = [store, await reopen(), await reopen()]
    id_blocks = {id(node): iter(range(10_000 * n, 10_000 * n + 9_000)) for n, node in enumerate(nodes, 1)}

    async def fire_all(node: Store) -> list[int]:
        made: list[int] = []
        fresh = id_blocks[id(node)]
        while True:
            fired = await node.fire_due(NOW + 4 * SECOND, 7, fires(runs=lambda due: [slot_run(due, next(fresh))]))
            made += ids(fired.runs)
            if fired.looked_at == 0:
                return made

    made = [id for share in await asyncio.gather(*map(fire_all, nodes)) for id in share]
    # A node that finds every due job in another's hands stops; whoever holds them goes on.
    made += await fire_all(store)
    page = await store.find_runs(RunQuery(limit=1000))
    slots = {(run.job_id, run.slot_at) for run in page.items}
    assert slots == {(job.id, NOW + n * SECOND) for job in jobs for n in range(5)}
    assert sorted(made) == sorted(run.id for run in page.items)
    assert len(made) == len(slots)


# Runs outside the schedule


async def test_a_run_is_made_from_its_job_and_the_number_of_unfinished_runs(store: Store) -> None:
    job = a_job(1)
    await store.add_jobs([job])
    await put(store, a_run(1), a_run(2, state=State.FAILED, ended_at=NOW))
    seen: list[tuple[Job, int]] = []

    def make(job: Job, active: int) -> Run:
        seen.append((job, active))
        return a_run(3, input=b"\0\xff")

    assert await store.add_run(1, make) == a_run(3, input=b"\0\xff") == await get(store, 3)
    assert seen == [(job, 1)]


async def test_a_run_of_a_job_that_is_not_there_is_refused(store: Store) -> None:
    with pytest.raises(NotFound, match="404"):
        await store.add_run(404, lambda job, active: a_run(1, 404))


async def test_a_slot_that_has_a_run_takes_none_that_is_filled_in(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await store.add_run(1, lambda job, active: a_run(1, slot_at=NOW))
    with pytest.raises(AlreadyExists):
        await store.add_run(1, lambda job, active: a_run(2, slot_at=NOW))
    await store.add_run(1, lambda job, active: a_run(3, slot_at=NOW + SECOND))
    assert {run.id for run in await store.get_runs([1, 2, 3])} == {1, 3}


async def test_a_refusal_by_the_maker_leaves_nothing_behind(store: Store) -> None:
    await store.add_jobs([a_job(1)])

    def refuse(job: Job, active: int) -> Run:
        raise ConcurrencyLimit("full")

    with pytest.raises(ConcurrencyLimit):
        await store.add_run(1, refuse)
    assert (await store.find_runs(RunQuery())).total == 0


async def test_a_repeated_run_is_not_made_again(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    wish = IdempotencyClaim("v2", "k" * 255, b"digest")
    await store.add_run(1, lambda job, active: a_run(1), lambda run: wish.answered(202, b"%d" % run.id, NOW))
    with pytest.raises(IdempotencyReplay) as replay:
        await store.add_run(1, lambda job, active: a_run(2), lambda run: wish.answered(202, b"%d" % run.id, NOW))
    assert replay.value.record.body == b"1"
    assert await store.get_runs([2]) == []


async def test_the_same_request_sent_to_many_nodes_at_once_is_done_once(store: Store, reopen: Reopen) -> None:
    await store.add_jobs([a_job(n) for n in range(1, 7)])
    nodes = [store, await reopen(), await reopen()]

    async def trigger(node: Store, key: str, run_id: int) -> bool:
        wish = IdempotencyClaim("v2", key, b"")
        job_id = run_id % 6 + 1
        try:
            await node.add_run(
                job_id, lambda job, active: a_run(run_id, job_id), lambda run: wish.answered(202, b"", NOW)
            )
        except IdempotencyReplay:
            return False
        return True

    for round in range(10):
        done = await asyncio.gather(
            *(trigger(node, f"key {round}", round * 100 + n) for n, node in enumerate(nodes * 2))
        )
        assert sum(done) == 1
    assert (await store.find_runs(RunQuery())).total == 10
