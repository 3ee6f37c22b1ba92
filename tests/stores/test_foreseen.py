"""Slots made ready ahead of their instant, and fired as far as they still stand."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

import msgspec
import pytest

from ksana.domain.changes import JobChange
from ksana.domain.fires import DueJob, Lateness
from ksana.domain.foresight import Births, Foreseen, Prospect, Sight, foresee
from ksana.domain.jobs import Job
from ksana.domain.policies import Priority
from ksana.domain.ports import Store
from ksana.domain.queries import RunQuery
from ksana.domain.states import State
from tests.domain.test_fires import Counting
from tests.stores.builders import HOUR, NOW, SECOND, a_planned_job, a_run, get, get_job, ids, one_at_a_time, put
from tests.stores.conftest import Reopen

NODE = 5


def prospect_of(due: DueJob) -> Prospect | None:
    return foresee(due, Lateness(), Counting(), NODE if due.job.queue == "default" else None)


async def look(store: Store, at: datetime = NOW, after_id: int = 0, limit: int = 1000) -> Sight:
    return await store.look_ahead(at, after_id, limit, prospect_of)


async def only(store: Store) -> Foreseen:
    return (await look(store)).foreseen


def jobs_of(foreseen: Foreseen) -> list[int]:
    return [one.job.id for one in foreseen.prospects]


def births(foreseen: Foreseen, first: int = 100, claims: int = 0) -> Births:
    return Births(NOW + SECOND / 10, range(first, first + len(foreseen.prospects)), claims)


async def change(store: Store, job: Job, **said: object) -> None:
    changed = msgspec.structs.replace(job, version=job.version + 1, **said)
    await store.change_jobs([JobChange(version=job.version, job=changed, moves_cursor="next_fire_at" in said)])


async def test_bursts_are_the_instants_at_which_enough_come_due(store: Store) -> None:
    at = [NOW - HOUR, NOW, NOW, NOW, NOW + SECOND / 2, NOW + SECOND, NOW + SECOND, NOW + HOUR, NOW + HOUR]
    await store.add_jobs([a_planned_job(n, fire_at) for n, fire_at in enumerate(at, 1)])
    assert await store.bursts(NOW - HOUR, NOW + SECOND, 2) == [(NOW, 3), (NOW + SECOND, 2)]
    assert await store.bursts(NOW, NOW + HOUR, 2) == [(NOW + SECOND, 2), (NOW + HOUR, 2)]
    assert await store.bursts(NOW, NOW + SECOND, 3) == []
    sight = await look(store)
    assert (jobs_of(sight.foreseen), sight.through) == ([2, 3, 4], None)
    assert [one.fire_at for one in sight.foreseen.prospects] == [NOW] * 3
    # A short look says where the next one goes on.
    sight = await look(store, limit=2)
    assert (jobs_of(sight.foreseen), sight.through) == ([2, 3], 3)
    sight = await look(store, after_id=3, limit=2)
    assert (jobs_of(sight.foreseen), sight.through) == ([4], None)
    assert jobs_of((await look(store, NOW + 2 * SECOND)).foreseen) == []
    assert await store.next_fire_at() == NOW - HOUR


async def test_what_stands_is_fired_and_the_first_are_born_claimed(store: Store) -> None:
    await store.add_jobs(
        [
            a_planned_job(1, queue="elsewhere", priority=Priority.HIGH),
            a_planned_job(2),
            a_planned_job(3, priority=Priority.HIGH, awaits_callback=True),
            a_planned_job(4),
        ]
    )
    foreseen = await only(store)
    # In the order of claims; last what this node may not claim.
    assert jobs_of(foreseen) == [3, 2, 4, 1]
    born = births(foreseen, claims=2)
    fired = await store.fire_foreseen(foreseen, born)
    assert (ids(fired.runs), fired.gaps, fired.looked_at) == ([100, 101, 102, 103], [], 4)
    assert [(one.run.job_id, one.run.state) for one in fired.runs] == [
        (3, State.RUNNING),
        (2, State.RUNNING),
        (4, State.SCHEDULED),
        (1, State.SCHEDULED),
    ]
    for one in fired.runs:
        assert await get(store, one.run.id) == one.run
        assert one.job is not None and one.job.id == one.run.job_id
        assert (one.run.slot_at, one.run.due_at, one.run.created_at) == (NOW, NOW, born.now)
    assert [(one.run.node_id, one.run.epoch, one.run.started_at) for one in fired.runs[1:3]] == [
        (NODE, 1, born.now),
        (None, 0, None),
    ]
    assert fired.runs[0].run.callback_token == "token"
    assert await store.next_fire_at() == NOW + SECOND
    assert (await store.fire_foreseen(foreseen, births(foreseen, 200))).looked_at == 0


@pytest.mark.parametrize("in_the_way", ["a change", "a pause", "a cursor", "a slot", "a limit"])
async def test_one_of_many_that_does_not_stand_keeps_nobody_else(store: Store, in_the_way: str) -> None:
    jobs = [a_planned_job(n, overlap=one_at_a_time(2)) for n in range(1, 41)]
    await store.add_jobs(jobs)
    foreseen = await only(store)
    left = {"a change": NOW, "a pause": None, "a cursor": NOW + HOUR, "a slot": NOW + SECOND, "a limit": NOW}
    match in_the_way:
        case "a change":
            await change(store, jobs[6], name="renamed")
        case "a pause":
            await change(store, jobs[6], enabled=False, next_slot_at=None, next_fire_at=None)
        case "a cursor":
            await change(store, jobs[6], next_slot_at=NOW, next_fire_at=NOW + HOUR)
        case "a slot":
            await put(store, a_run(1, 7, slot_at=NOW, state=State.SUCCESS, ended_at=NOW))
        case "a limit":
            await put(store, *(a_run(n, 7, state=State.RUNNING) for n in (1, 2)))
    fired = await store.fire_foreseen(foreseen, births(foreseen, claims=30))
    assert [one.run.job_id for one in fired.runs] == [job.id for job in jobs if job.id != 7]
    assert fired.looked_at == 39 + (in_the_way == "a slot")
    assert {one.run.id: one.run for one in fired.runs} == {run.id: run for run in await store.get_runs(ids(fired.runs))}
    standing = {job.id: job.next_fire_at for job in await store.get_jobs(range(1, 41))}
    assert standing == {n: left[in_the_way] if n == 7 else NOW + SECOND for n in range(1, 41)}


async def test_what_does_not_stand_is_left_as_it_is(store: Store) -> None:
    jobs = [a_planned_job(n, overlap=one_at_a_time(2)) for n in range(1, 8)]
    await store.add_jobs(jobs)
    await put(store, *(a_run(n, 6, state=State.RUNNING) for n in (1, 2)), a_run(3, 7, state=State.RUNNING))
    foreseen = await only(store)
    await change(store, jobs[0], name="renamed")
    await change(store, jobs[1], enabled=False, next_slot_at=None, next_fire_at=None)
    await change(store, jobs[2], next_slot_at=NOW, next_fire_at=NOW + SECOND)
    # Somebody has brought the cursor of this one back to a slot that has its run.
    await put(store, a_run(4, 4, slot_at=NOW, state=State.SUCCESS, ended_at=NOW))
    fired = await store.fire_foreseen(foreseen, births(foreseen))
    assert [one.run.job_id for one in fired.runs] == [5, 7]
    assert fired.looked_at == 3
    standing = {job.id: job.next_fire_at for job in await store.get_jobs(range(1, 8))}
    moved = NOW + SECOND
    assert standing == {1: NOW, 2: None, 3: moved, 4: moved, 5: moved, 6: NOW, 7: moved}
    assert (await store.find_runs(RunQuery())).total == 6


async def test_a_large_instant_is_fired_whatever_its_cursors_move_to(store: Store) -> None:
    """Jobs with one next slot in common, and jobs with hardly any."""
    alike = [a_planned_job(n) for n in range(1, 601)]
    apart = [
        a_planned_job(n, schedule=msgspec.structs.replace(alike[0].schedule, every=n * SECOND, origin_at=NOW))  # type: ignore[type-var]
        for n in range(601, 701)
    ]
    for jobs in (alike, apart):
        await store.add_jobs(jobs)
        foreseen = await only(store)
        fired = await store.fire_foreseen(foreseen, births(foreseen, 10 * jobs[0].id + 10_000, claims=550))
        assert fired.looked_at == len(fired.runs) == len(jobs)
        assert sum(one.run.state is State.RUNNING for one in fired.runs) == min(550, len(jobs))
        expected = {one.job.id: one.next_fire_at for one in foreseen.prospects}
        found = {job.id: job.next_fire_at for job in await store.get_jobs(expected)}
        assert found == expected
        assert len(set(expected.values())) == (1 if jobs is alike else 100)
        page = await store.get_runs(ids(fired.runs))
        assert sorted(page, key=lambda run: run.id) == sorted((one.run for one in fired.runs), key=lambda run: run.id)
        await delete(store, jobs)


async def delete(store: Store, jobs: Sequence[Job]) -> None:
    await store.change_jobs(
        [
            JobChange(
                version=job.version,
                job=msgspec.structs.replace(job, version=2, deleted_at=NOW, next_slot_at=None, next_fire_at=None),
                moves_cursor=True,
            )
            for job in jobs
        ]
    )


async def test_nodes_that_have_foreseen_the_same_make_one_run_per_slot(store: Store, reopen: Reopen) -> None:
    await store.add_jobs([a_planned_job(n) for n in range(1, 41)])
    nodes = [store, await reopen(), await reopen()]
    ahead = [(await look(node, limit=30)).foreseen for node in nodes]
    fired = await asyncio.gather(
        *(
            node.fire_foreseen(foreseen, births(foreseen, 1000 * n, claims=15))
            for n, (node, foreseen) in enumerate(zip(nodes, ahead, strict=True), 1)
        )
    )
    made = [one.run for each in fired for one in each.runs]
    assert sorted(run.job_id or 0 for run in made) == list(range(1, 31))
    assert sum(each.looked_at for each in fired) == 30
    assert await get_job(store, 1) != await get_job(store, 31)
    assert (await store.find_runs(RunQuery())).total == 30
