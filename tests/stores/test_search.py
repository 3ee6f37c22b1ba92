"""Filters, sorting and paging."""

from contextlib import suppress
from typing import Any

from ksana.domain.changes import JobChange
from ksana.domain.errors import InvalidArgument
from ksana.domain.fires import DueJob
from ksana.domain.jobs import TargetSpec
from ksana.domain.ports import Store
from ksana.domain.queries import JobQuery, JobSort, RunQuery, RunSort
from ksana.domain.runs import Run, Trigger
from ksana.domain.states import Reason, State
from tests.stores.builders import (
    HOUR,
    NOW,
    SECOND,
    a_gap,
    a_job,
    a_planned_job,
    a_run,
    fires,
    put,
    slot_run,
)


async def found_jobs(store: Store, **said: Any) -> list[int]:
    page = await store.find_jobs(JobQuery(**said))
    assert page.total >= len(page.items)
    return [job.id for job in page.items]


async def found_runs(store: Store, **said: Any) -> list[int]:
    page = await store.find_runs(RunQuery(**said))
    assert page.total >= len(page.items)
    return [run.id for run in page.items]


JOB_FILTERS: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [1, 2, 3, 4]),
    ({"surface": "v2"}, [1, 3, 4]),
    ({"surface": "v"}, []),
    ({"name": "report"}, [1, 2]),
    ({"name": "REPORT"}, [1, 2]),
    ({"name": "größe"}, [3]),
    ({"name": "grösse"}, [3]),
    ({"name": "任"}, [4]),
    ({"exact_name": "Report"}, [1]),
    ({"exact_name": "report"}, []),
    ({"ref": "r-2"}, [2]),
    ({"ref": "R-2"}, []),
    ({"kind": "http"}, [2, 4]),
    ({"tag": "red"}, [1, 3]),
    ({"tag": "Red"}, [2]),
    ({"tag": "re"}, []),
    ({"enabled": True}, [1, 2, 4]),
    ({"enabled": False}, [3]),
    ({"surface": "v2", "tag": "red", "enabled": True, "name": "rep", "kind": "noop"}, [1]),
]


async def test_every_filter_of_jobs_filters(store: Store) -> None:
    await store.add_jobs(
        [
            a_job(1, name="Report", tags=("red", "blue")),
            a_job(2, name="my reports", surface="tasks", ref="r-2", target=TargetSpec("http"), tags=("Red",)),
            a_job(3, name="GRÖßE", tags=("red",), enabled=False),
            a_job(4, name="任务", target=TargetSpec("http")),
            a_job(5, name="Report", ref="r-5", tags=("red",), deleted_at=NOW),
        ]
    )
    for said, expected in JOB_FILTERS:
        assert await found_jobs(store, **said) == expected, said
        assert (await store.find_jobs(JobQuery(**said, limit=1))).total == len(expected), said


async def test_no_character_of_a_name_means_more_than_itself(store: Store) -> None:
    parts = ["%", "_", "\\", "'", '"', "!", "*", "[a]", "?s", ":name", "{word}", "🚀"]
    await store.add_jobs([a_job(n, name=f"x{part}y") for n, part in enumerate(parts)] + [a_job(99, name="plain")])
    await put(store, *[a_run(n, n) for n in range(len(parts))])
    for n, part in enumerate(parts):
        assert await found_jobs(store, name=part) == [n], part
        assert await found_runs(store, job_name=part) == [n], part


async def test_a_very_long_needle_finds_nothing(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    assert await found_jobs(store, name="x" * 100_000) == []


async def test_jobs_are_sorted_with_what_has_no_value_last(store: Store) -> None:
    await store.add_jobs(
        [
            a_job(1, name="Ä", updated_at=NOW),
            a_job(2, name="a", updated_at=NOW - SECOND),
            a_planned_job(3, NOW, name="b", updated_at=NOW + SECOND),
            a_planned_job(4, NOW + SECOND, name="B", updated_at=NOW + HOUR),
        ]
    )
    up = {sort: await found_jobs(store, sort=sort) for sort in JobSort}
    assert up == {
        JobSort.ID: [1, 2, 3, 4],
        JobSort.NAME: [4, 2, 3, 1],
        JobSort.UPDATED: [2, 1, 3, 4],
        JobSort.NEXT: [3, 4, 1, 2],
    }
    down = {sort: await found_jobs(store, sort=sort, descending=True) for sort in JobSort}
    assert down == {sort: found[::-1] for sort, found in up.items()} | {JobSort.NEXT: [4, 3, 2, 1]}


async def test_pages_of_jobs_follow_each_other(store: Store) -> None:
    await store.add_jobs([a_job(n, name="same") for n in range(1, 8)])
    pages = [await found_jobs(store, sort=JobSort.NAME, offset=offset, limit=3) for offset in (0, 3, 6, 9)]
    assert pages == [[1, 2, 3], [4, 5, 6], [7], []]
    assert (await store.find_jobs(JobQuery(offset=100))).total == 7


RUN_FILTERS: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [5, 4, 3, 2, 1]),
    ({"descending": False}, [1, 2, 3, 4, 5]),
    ({"surface": "tasks"}, [4]),
    ({"job_id": 1}, [3, 2, 1]),
    ({"job_id": 404}, []),
    ({"job_name": "second"}, [5, 4]),
    ({"parent_id": 1}, [3, 2]),
    ({"states": frozenset({State.SUCCESS, State.FAILED})}, [3, 2]),
    ({"kind": "http"}, [5]),
    ({"tag": "red"}, [5, 4]),
    ({"since": NOW}, [5, 2, 1]),
    ({"until": NOW}, [4, 3]),
    ({"since": NOW + SECOND, "until": NOW + HOUR}, [2]),
    ({"before_id": 4}, [3, 2, 1]),
    ({"before_id": 4, "limit": 1}, [3]),
    ({"after_id": 2}, [5, 4, 3]),
    ({"after_id": 2, "descending": False, "limit": 1}, [3]),
    ({"after_id": 1, "before_id": 4, "job_id": 1}, [3, 2]),
    ({"after_id": 1, "is_child": False, "descending": False}, [4, 5]),
    ({"after_id": 2, "sort": RunSort.ENDED, "states": frozenset({State.SUCCESS, State.FAILED})}, [3]),
    ({"after_id": 1, "descending": False, "offset": 1, "limit": 2}, [3, 4]),
    ({"job_id": 1, "counted": False, "limit": 2}, [3, 2]),
    ({"sort": RunSort.DUE}, [5, 3, 2, 1, 4]),
    ({"sort": RunSort.DUE, "descending": False}, [4, 1, 2, 3, 5]),
    ({"sort": RunSort.ENDED}, [2, 3, 5, 4, 1]),
    ({"sort": RunSort.ENDED, "descending": False}, [3, 2, 1, 4, 5]),
    ({"offset": 1, "limit": 2}, [4, 3]),
]


async def test_every_filter_of_runs_filters(store: Store) -> None:
    await store.add_jobs([a_job(1, name="first"), a_job(2, name="The Second", tags=("red",))])
    await put(
        store,
        a_run(1),
        a_run(2, state=State.SUCCESS, ended_at=NOW + SECOND, parent_id=1, step="a"),
        a_run(3, state=State.FAILED, ended_at=NOW - SECOND, parent_id=1, step="b"),
        a_run(4, 2, due_at=NOW - HOUR, surface="tasks"),
        a_run(5, 2, due_at=NOW + HOUR, kind="http"),
    )
    for said, expected in RUN_FILTERS:
        assert await found_runs(store, **said) == expected, said


async def test_runs_are_found_by_why_and_by_the_instant_they_stand_for(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    ended: dict[str, Any] = {"state": State.TIMEOUT, "ended_at": NOW}
    await put(
        store,
        a_run(1, created_at=NOW - SECOND),
        a_run(2, **ended, reason=Reason.CALLBACK_TIMEOUT, slot_at=NOW, trigger=Trigger.SCHEDULE),
        a_run(3, **ended, slot_at=NOW + SECOND, trigger=Trigger.SCHEDULE),
    )
    found: list[tuple[dict[str, Any], list[int]]] = [
        ({"reasons": frozenset({Reason.CALLBACK_TIMEOUT})}, [2]),
        ({"reasons": frozenset({None})}, [3, 1]),
        ({"reasons": frozenset({None, Reason.CALLBACK_TIMEOUT})}, [3, 2, 1]),
        ({"planned_since": NOW}, [3, 2]),
        ({"planned_until": NOW}, [2, 1]),
        ({"planned_since": NOW, "planned_until": NOW}, [2]),
    ]
    for said, expected in found:
        assert await found_runs(store, **said) == expected, said


async def test_a_list_that_continues_before_an_id_still_counts_everything(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, *[a_run(n) for n in range(1, 6)])
    page = await store.find_runs(RunQuery(before_id=3, limit=1))
    assert ([run.id for run in page.items], page.total) == ([2], 5)


async def test_a_question_no_database_understands_is_refused_or_answered_with_nothing(store: Store) -> None:
    for asked in ("nul \0", "half \ud800"):
        for query in (JobQuery(name=asked), JobQuery(tag=asked)):
            with suppress(InvalidArgument):
                assert (await store.find_jobs(query)).items == []


async def test_the_last_run_of_each_job_is_its_newest(store: Store) -> None:
    await store.add_jobs([a_job(n) for n in (1, 2, 3)])
    await put(store, a_run(1, 1), a_run(4, 1), a_run(3, 1), a_run(2, 2))
    assert await store.last_runs([1, 2, 3, 404]) == {1: a_run(4, 1), 2: a_run(2, 2)}
    assert await store.last_runs([]) == {}


async def test_the_last_run_is_the_one_made_last_whichever_node_gave_it_its_id(store: Store) -> None:
    """Two nodes take turns, and each has a block of ids of its own; in between somebody asks for a run by hand."""
    await store.add_jobs([a_job(1)])
    made = [(60, True), (7, True), (61, True), (100, False), (8, True), (101, False), (9, True), (62, True)]
    for n, (id, is_planned) in enumerate(made):
        at = NOW + n * SECOND
        state, ended_at = (State.SKIPPED, at) if id == 9 else (State.SCHEDULED, None)
        slot_at = at if is_planned else None
        await put(store, a_run(id, created_at=at, slot_at=slot_at, state=state, ended_at=ended_at))
        assert (await store.last_runs([1]))[1].id == id
        assert (await store.last_runs([1], {State.SCHEDULED}))[1].id == (101 if id == 9 else id)


async def test_the_newest_run_in_some_states(store: Store) -> None:
    await store.add_jobs([a_job(1), a_job(2)])
    skipped = {"state": State.SKIPPED, "ended_at": NOW}
    await put(store, a_run(1, 1, state=State.SUCCESS, ended_at=NOW), a_run(2, 1, **skipped), a_run(3, 2, **skipped))
    found = await store.last_runs([1, 2], {State.SUCCESS, State.FAILED})
    assert {job_id: run.id for job_id, run in found.items()} == {1: 1}
    assert await store.last_runs([1, 2], set()) == {}


async def test_the_fire_log_says_what_became_of_each_slot(store: Store) -> None:
    await store.add_jobs([a_planned_job(1), a_job(2)])
    decided: list[dict[str, Any]] = [
        {"state": State.SCHEDULED},
        {"state": State.SKIPPED, "reason": Reason.OVERLAP, "ended_at": NOW},
        {"state": State.MISSED, "reason": Reason.OVERLAP, "ended_at": NOW},
    ]
    said = iter(enumerate(decided, 1))

    def next_run(due: DueJob) -> list[Run]:
        id, values = next(said)
        return [slot_run(due, id, **values)]

    for _ in decided:
        await store.fire_due(NOW + HOUR, 1, fires(runs=next_run, gaps=lambda due: [a_gap(1, NOW - HOUR, 60)]))
    await put(store, a_run(9))
    log = await store.fire_log(1, NOW - HOUR, NOW + HOUR, 10)
    assert [(record.decision, record.run_id, record.count) for record in log] == [
        ("missed", 3, 1),
        ("skipped", 2, 1),
        ("fired", 1, 1),
        ("left_out", None, 60),
    ]
    assert [record.reason for record in log] == [Reason.OVERLAP, Reason.OVERLAP, None, Reason.MISFIRE]
    assert [record.from_at for record in log] == [NOW + 2 * SECOND, NOW + SECOND, NOW, NOW - HOUR]
    assert log[3].to_at == NOW - HOUR + 59 * SECOND
    assert await store.fire_log(1, NOW - HOUR, NOW + HOUR, 2) == log[:2]
    assert await store.fire_log(1, NOW, NOW + SECOND, 10) == [log[2]]
    assert await store.fire_log(1, NOW - HOUR + 59 * SECOND, NOW, 10) == [log[3]]
    assert await store.fire_log(2, NOW - HOUR, NOW + HOUR, 10) == []


async def test_counts_count(store: Store) -> None:
    empty = await store.counts(NOW)
    assert (empty.jobs, empty.unfinished, empty.due, empty.oldest_due_at) == ({}, {}, 0, None)
    await store.add_jobs([a_job(1), a_job(2), a_job(3, enabled=False), a_job(4, surface="gone"), a_job(5, surface="x")])
    gone = a_job(4, surface="gone", version=2, deleted_at=NOW)
    await store.change_jobs([JobChange(version=1, job=gone)])
    await put(
        store,
        a_run(1, due_at=NOW - HOUR, state=State.RETRYING),
        a_run(2, due_at=NOW),
        a_run(3, due_at=NOW + SECOND),
        a_run(4, due_at=NOW - 2 * HOUR, state=State.RUNNING),
        a_run(5, state=State.DEAD_LETTER, ended_at=NOW),
        a_run(6, state=State.SUCCESS, ended_at=NOW),
    )
    counts = await store.counts(NOW)
    assert counts.jobs == {("v2", True): 2, ("v2", False): 1, ("x", True): 1}
    assert counts.dead_letters == 1
    assert counts.unfinished == {State.RETRYING: 1, State.SCHEDULED: 2, State.RUNNING: 1}
    assert (counts.due, counts.oldest_due_at) == (2, NOW - HOUR)
