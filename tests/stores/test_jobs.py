"""Adding and changing jobs."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from ksana.domain.changes import CursorMoved, JobChange
from ksana.domain.errors import AlreadyExists, NotFound, VersionConflict
from ksana.domain.idempotency import IdempotencyClaim, IdempotencyReplay
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.policies import (
    Misfire,
    MisfireRule,
    OnUncertain,
    Overlap,
    OverlapRule,
    Priority,
    Retry,
    RetryStrategy,
    Timeouts,
)
from ksana.domain.ports import Store
from ksana.domain.queries import JobQuery
from ksana.domain.schedules import CronSchedule, Every, Once
from ksana.domain.states import AT_REST, UNSTARTED, Reason, State
from tests.stores.builders import (
    HOUR,
    NOW,
    SECOND,
    a_gap,
    a_job,
    a_planned_job,
    a_run,
    claim,
    get,
    get_job,
    one_at_a_time,
    put,
)

MEGABYTES = 5 * 1024 * 1024


def changed(job: Job, **said: Any) -> Job:
    return msgspec.structs.replace(job, **({"version": job.version + 1} | said))


def change(job: Job, **said: Any) -> JobChange:
    return JobChange(version=job.version - 1, job=job, **said)


SAID: list[dict[str, Any]] = [
    {},
    {"ref": "nightly", "description": "every night\n" * 500, "tags": ("a", "b"), "enabled": False},
    {"schedule": Every(every=timedelta(milliseconds=1500), origin_at=NOW)},
    {"schedule": Once(run_at=NOW + timedelta(microseconds=1)), "next_slot_at": NOW, "next_fire_at": NOW + SECOND},
    {"schedule": CronSchedule(expr="*/5 2 * * *", timezone="Asia/Shanghai")},
    {"queue": "队列 one", "priority": Priority.HIGH, "on_uncertain": OnUncertain.FAIL, "awaits_callback": True},
    {"retry": Retry(7, RetryStrategy.EXPONENTIAL, timedelta(seconds=0.25), 1.5, HOUR)},
    {"overlap": Overlap(OverlapRule.SKIP, 3), "misfire": Misfire(MisfireRule.CATCH_UP, 9)},
    {"timeouts": Timeouts(SECOND, 2 * SECOND, 3 * SECOND), "deleted_at": NOW, "paused_at": NOW, "version": 12},
    {"enabled": False, "paused_at": NOW, "paused_until": NOW + HOUR, "pause_reason": "搬家 'til then"},
    {"name": "Größe 任务 🚀 'quoted\" \\ %s %% _"},
    {"target": TargetSpec("http", {"url": "http://x/?a=%20", "deep": {"list": [1, 2.5, None, True, "é🚀\0"]}})},
]


async def test_a_job_comes_back_as_it_was_stored(store: Store) -> None:
    jobs = [a_job(id, **said) for id, said in enumerate(SAID, 1)]
    for job in jobs:
        await store.add_jobs([job])
    for job in jobs:
        assert await store.get_jobs([job.id]) == [job]


async def test_pauses_that_end_are_found_by_their_end(store: Store) -> None:
    def paused(id: int, hours: int, **said: Any) -> Job:
        return a_job(id, **{"enabled": False, "paused_at": NOW, "paused_until": NOW + hours * HOUR} | said)

    assert await store.pauses(10) == []
    late, early, soon = paused(1, 3), paused(2, 1), paused(3, 2)
    others = [a_job(4), a_job(5, enabled=False, paused_at=NOW), paused(6, 1, deleted_at=NOW)]
    await store.add_jobs([late, early, soon, *others])
    assert await store.pauses(10) == [(2, NOW + HOUR), (3, NOW + 2 * HOUR), (1, NOW + 3 * HOUR)]
    assert await store.pauses(1) == [(2, NOW + HOUR)]

    resumed = changed(early, enabled=True, paused_at=None, paused_until=None)
    later, gone = changed(soon, paused_until=NOW + 4 * HOUR), changed(late, deleted_at=NOW)
    await store.change_jobs([change(resumed), change(later), change(gone)])
    assert await store.pauses(10) == [(3, NOW + 4 * HOUR)]
    assert await get_job(store, 3) == later


async def test_a_job_of_five_megabytes_comes_back_as_it_was_stored(store: Store) -> None:
    job = a_job(1, target=TargetSpec("http", {"body": "x'%\\é" * (MEGABYTES // 6)}), description="y" * 100_000)
    await store.add_jobs([job])
    assert await get_job(store, 1) == job


async def test_many_jobs_are_added_at_once(store: Store) -> None:
    jobs = [a_job(n, ref=f"ref {n}", tags=(f"tag {n}", "all")) for n in range(1, 1201)]
    await store.add_jobs(jobs)
    assert sorted(await store.get_jobs(range(1, 1201)), key=lambda job: job.id) == jobs
    assert (await store.find_jobs(JobQuery(tag="all"))).total == 1200


async def test_adding_no_jobs_does_nothing(store: Store) -> None:
    await store.add_jobs([])
    assert (await store.find_jobs(JobQuery())).total == 0


async def test_jobs_that_are_not_there_are_left_out(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    assert await store.get_jobs([1, 2]) == [a_job(1)]
    assert await store.get_jobs([]) == []


async def test_a_ref_is_unique_within_its_surface(store: Store) -> None:
    await store.add_jobs([a_job(1, ref="daily"), a_job(2, ref="daily", surface="tasks"), a_job(3), a_job(4)])
    with pytest.raises(AlreadyExists, match="daily"):
        await store.add_jobs([a_job(5), a_job(6, ref="daily")])
    assert await store.get_jobs([5, 6]) == []


async def test_two_jobs_added_together_cannot_share_a_ref(store: Store) -> None:
    with pytest.raises(AlreadyExists):
        await store.add_jobs([a_job(1, ref="daily"), a_job(2, ref="daily")])
    assert await store.get_jobs([1, 2]) == []


@pytest.mark.parametrize("other", ["Daily", "daily ", "dáily", "ｄaily"])
async def test_refs_differ_if_any_character_does(store: Store, other: str) -> None:
    await store.add_jobs([a_job(1, ref="daily"), a_job(2, ref=other)])
    assert [job.id for job in (await store.find_jobs(JobQuery(ref=other))).items] == [2]


async def test_the_ref_of_a_deleted_job_can_be_used_again(store: Store) -> None:
    job = a_job(1, ref="daily")
    await store.add_jobs([job])
    gone = changed(job, deleted_at=NOW)
    await store.change_jobs([change(gone)])
    await store.add_jobs([a_job(2, ref="daily")])
    assert await get_job(store, 1) == gone
    assert [found.id for found in (await store.find_jobs(JobQuery(ref="daily"))).items] == [2]


async def test_a_job_cannot_take_the_ref_of_another(store: Store) -> None:
    one, other = a_job(1, ref="one"), a_job(2, ref="other")
    await store.add_jobs([one, other])
    with pytest.raises(AlreadyExists, match="one"):
        await store.change_jobs([change(changed(other, ref="one"))])
    assert await store.get_jobs([1]) == [one]
    assert await store.get_jobs([2]) == [other]


async def test_a_change_replaces_the_job_and_its_tags(store: Store) -> None:
    job = a_job(1, tags=("old", "both"))
    await store.add_jobs([job])
    new = changed(job, name="renamed", tags=("both", "new", "new "), enabled=False, updated_at=NOW + HOUR)
    assert await store.change_jobs([change(new)]) == []
    assert await get_job(store, 1) == new
    found = {tag: (await store.find_jobs(JobQuery(tag=tag))).total for tag in ("old", "both", "new", "new ")}
    assert found == {"old": 0, "both": 1, "new": 1, "new ": 1}
    assert (await store.find_jobs(JobQuery(name="job"))).total == 0


async def test_a_stale_change_is_refused_and_nothing_of_its_group_is_done(store: Store) -> None:
    jobs = [a_job(n, tags=("t",)) for n in (1, 2, 3)]
    await store.add_jobs(jobs)
    await put(store, a_run(1, 1))
    good = change(changed(jobs[0], name="new"), cancels=UNSTARTED, reason=Reason.OPERATOR, gap=a_gap(1, NOW))
    stale = JobChange(version=9, job=changed(jobs[1]))
    with pytest.raises(VersionConflict, match="version 1, not 9"):
        await store.change_jobs([good, stale, change(changed(jobs[2], name="new"))])
    assert sorted(await store.get_jobs([1, 2, 3]), key=lambda job: job.id) == jobs
    assert (await get(store, 1)).state is State.SCHEDULED
    assert await store.fire_log(1, NOW - HOUR, NOW + HOUR, 10) == []


async def test_changing_a_job_that_is_not_there_is_refused_and_nothing_is_done(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    with pytest.raises(NotFound, match="2"):
        await store.change_jobs([change(changed(a_job(1), name="new")), change(changed(a_job(2)))])
    assert await get_job(store, 1) == a_job(1)


async def test_a_change_leaves_the_cursor_alone_unless_it_says_otherwise(store: Store) -> None:
    job = a_planned_job(1)
    await store.add_jobs([job])
    later = changed(job, name="new", next_slot_at=NOW + HOUR, next_fire_at=NOW + HOUR)
    await store.change_jobs([change(later)])
    assert await get_job(store, 1) == msgspec.structs.replace(later, next_slot_at=NOW, next_fire_at=NOW)
    stopped = changed(later, next_slot_at=None, next_fire_at=None)
    await store.change_jobs([change(stopped, moves_cursor=True)])
    assert await get_job(store, 1) == stopped
    assert await store.next_fire_at() is None


async def test_a_change_cancels_runs_in_the_states_it_names(store: Store) -> None:
    job = a_job(1)
    await store.add_jobs([job, a_job(2)])
    states = [State.WAITING, State.SCHEDULED, State.RETRYING, State.RUNNING, State.CALLBACK_PENDING]
    await put(store, *[a_run(n, state=state, epoch=n) for n, state in enumerate(states, 1)])
    await put(store, a_run(9, 2), a_run(10, state=State.SUCCESS, ended_at=NOW))
    new = changed(job, enabled=False, updated_at=NOW + HOUR)
    canceled = await store.change_jobs([change(new, cancels=AT_REST, reason=Reason.PAUSED)])
    assert sorted(run.id for run in canceled) == [1, 2, 3]
    for run in canceled:
        assert await get(store, run.id) == run
        assert (run.state, run.reason, run.epoch) == (State.CANCELED, Reason.PAUSED, run.id + 1)
        assert (run.ended_at, run.job_version) == (NOW + HOUR, 2)
    assert [(await get(store, n)).state for n in (4, 5, 9)] == [
        State.RUNNING,
        State.CALLBACK_PENDING,
        State.SCHEDULED,
    ]


async def test_a_change_that_finds_nothing_to_cancel_is_done_all_the_same(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    assert await store.change_jobs([change(changed(a_job(1)), cancels=AT_REST)]) == []
    assert (await get_job(store, 1)).version == 2


async def test_resting_runs_follow_their_job_to_its_new_version(store: Store) -> None:
    job = a_job(1)
    await store.add_jobs([job])
    await put(store, a_run(1), a_run(2, state=State.RUNNING, node_id=1))
    await claim(store, limit=0)
    await store.change_jobs([change(changed(job, name="new"))])
    assert [(await get(store, n)).job_version for n in (1, 2)] == [2, 1]
    [claimed] = await claim(store)
    assert claimed.job is not None
    assert (claimed.run.id, claimed.job.name) == (1, "new")


async def test_a_change_records_its_gap(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await store.change_jobs([change(changed(a_job(1)), gap=a_gap(1, NOW, 5, Reason.PAUSED))])
    [record] = await store.fire_log(1, NOW - HOUR, NOW + HOUR, 10)
    assert (record.decision, record.reason, record.count) == ("left_out", Reason.PAUSED, 5)


async def test_a_new_limit_counts_for_runs_that_wait(store: Store) -> None:
    job = a_job(1, overlap=one_at_a_time())
    await store.add_jobs([job])
    await store.change_jobs([change(changed(job, overlap=one_at_a_time(2)))])
    seen: list[Job] = []
    await store.add_run(1, lambda job, active: seen.append(job) or a_run(1))  # type: ignore[func-returns-value]
    assert seen[0].overlap == one_at_a_time(2)


async def test_a_repeated_request_creates_nothing(store: Store) -> None:
    wish = IdempotencyClaim("v2", "key-1", b"\x00digest\xff")
    record = wish.answered(201, b'{"id":1}\x00\xff', NOW)
    await store.add_jobs([a_job(1)], record)
    with pytest.raises(IdempotencyReplay) as replay:
        await store.add_jobs([a_job(2)], wish.answered(201, b"other", NOW + SECOND))
    assert replay.value.record == record
    assert await store.get_jobs([2]) == []
    assert await store.find_idempotency("v2", "key-1") == record
    assert await store.find_idempotency("v1", "key-1") is None


async def test_a_refused_request_leaves_its_key_free(store: Store) -> None:
    wish = IdempotencyClaim("v2", "key-1", b"digest")
    await store.add_jobs([a_job(1, ref="taken")])
    with pytest.raises(AlreadyExists):
        await store.add_jobs([a_job(2, ref="taken")], wish.answered(201, b"", NOW))
    assert await store.find_idempotency("v2", "key-1") is None


async def test_a_change_made_from_an_older_cursor_is_refused(store: Store) -> None:
    job = a_planned_job(1)
    await store.add_jobs([job])
    paused = msgspec.structs.replace(job, version=2, enabled=False, next_slot_at=None, next_fire_at=None)
    elsewhere = job.next_slot_at + SECOND if job.next_slot_at else None
    with pytest.raises(CursorMoved):
        await store.change_jobs([JobChange(version=1, job=paused, moves_cursor=True, cursor_was=elsewhere)])
    assert await store.get_jobs([1]) == [job]
    await store.change_jobs([JobChange(version=1, job=paused, moves_cursor=True, cursor_was=job.next_slot_at)])
    assert await store.get_jobs([1]) == [paused]
