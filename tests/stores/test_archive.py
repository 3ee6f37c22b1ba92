"""Whole stores in and out: what is restored is just what was exported, and lives on as if it had always been there."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from ksana.domain.alerts import AlertQuery
from ksana.domain.archive import Extent, Section, Standing, key_of, place_of
from ksana.domain.ports import Store
from ksana.domain.queries import JobQuery, RunQuery
from ksana.domain.states import State
from tests.stores.builders import HOUR, LEASE, MINUTE, NOW, a_job, a_run, claim, ids
from tests.stores.conftest import MakeStore, Reopen
from tests.stores.everything import CARRIED, LARGE, NOBODY, contents, everything, fill, read, standing


@pytest.fixture
async def itself(store: Store) -> AsyncIterator[Standing]:
    """How the store stands; the shared databases keep who they are from test to test."""
    before = await standing(store)
    yield before
    await store.restore(Section.STANDING, [before])


def test_there_is_something_of_every_section_to_try() -> None:
    assert {section for section, items in everything().items() if items} == set(CARRIED)


async def test_no_table_is_forgotten(sqlite_stores: MakeStore, tmp_path: Path) -> None:
    store = sqlite_stores()
    await store.open()
    await fill(store)
    await store.close()
    # What is left empty by everything there is has no section: the first two live and die with the nodes, and buckets
    # tell of moments.
    assert _tables(tmp_path / "ksana.db", is_empty=True) == {"ksana_nodes", "ksana_taken", "ksana_buckets"}
    assert len(_tables(tmp_path / "ksana.db", is_empty=False)) > len(CARRIED)


def _tables(path: Path, is_empty: bool) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name for name in names if (connection.execute(f"SELECT 1 FROM {name}").fetchone() is None) is is_empty}


async def test_what_was_restored_is_exported_value_by_value(store: Store) -> None:
    things = await fill(store)
    assert await contents(store) == things


async def test_pages_go_on_where_the_last_ended(store: Store) -> None:
    things = await fill(store)
    for limit in (1, 2, 3):
        assert await contents(store, limit) == things, limit


async def test_reading_goes_on_behind_the_key_of_any_thing(store: Store) -> None:
    for section, items in (await fill(store)).items():
        for number, item in enumerate(items, 1):
            assert await read(store, section, after=place_of(key_of(section, item))) == items[number:], section


async def test_an_extent_is_the_number_and_the_last_key(store: Store) -> None:
    assert [await store.extent(section) for section in CARRIED] == [Extent(0, None)] * len(CARRIED)
    things = await fill(store)
    for section, items in things.items():
        assert await store.extent(section) == Extent(len(items), place_of(key_of(section, items[-1])))


async def test_restoring_twice_changes_nothing(store: Store) -> None:
    things = await fill(store)
    before = await standing(store)
    assert [await store.restore(section, items) for section, items in things.items()] == [0] * len(things)
    assert await contents(store) == things
    assert await standing(store) == before


async def test_only_what_is_missing_is_added(store: Store) -> None:
    # What is about others comes before them: no section needs another to be there.
    for section, items in reversed(everything().items()):
        assert await store.restore(section, items[1:2]) == 1, section
        assert await store.restore(section, items) == len(items) - 1, section
        assert await read(store, section) == items
        assert await store.restore(section, []) == 0


async def test_what_is_there_is_left_alone(store: Store) -> None:
    await store.add_jobs([a_job(1, name="mine", tags=("mine",))])
    assert await store.restore(Section.JOBS, [a_job(1, name="other"), a_job(2, name="new")]) == 1
    [mine, new] = (await store.find_jobs(JobQuery())).items
    assert (mine.name, new.name) == ("mine", "new")
    assert (await store.find_jobs(JobQuery(tag="mine"))).total == 1


async def test_a_job_whose_ref_is_taken_is_left_out_with_its_cursor(store: Store) -> None:
    await store.add_jobs([a_job(1, ref="taken")])
    other = a_job(2, ref="taken", next_slot_at=NOW, next_fire_at=NOW)
    assert await store.restore(Section.JOBS, [other]) == 0
    assert await store.next_fire_at() is None


async def test_restored_things_are_found_like_any_other(store: Store) -> None:
    things = await fill(store)
    jobs = {job.id: job for job in things[Section.JOBS]}
    assert await store.keys() == things[Section.KEYS]
    assert (await store.find_jobs(JobQuery(surface="v2"))).items == [jobs[1], jobs[3], jobs[100]]
    assert [job.id for job in (await store.find_jobs(JobQuery(tag="a"))).items] == [1]
    assert await store.get_jobs([2]) == [jobs[2]]
    assert await store.next_fire_at() == jobs[100].next_fire_at
    assert (await store.find_runs(RunQuery())).total == len(things[Section.RUNS])
    assert (await store.run_by_token("t" * 43)) == things[Section.RUNS][-2]
    assert await store.attempts(41) == things[Section.ATTEMPTS][1:3]
    assert await store.callbacks(42) == things[Section.CALLBACKS][::2]
    assert (await store.progress([42]))[42] == things[Section.PROGRESS][1]
    assert (await store.find_alerts(AlertQuery())).total == len(things[Section.ALERTS])
    assert sorted(record.count for record in await store.fire_log(1, NOW, NOW + HOUR, 10)) == [3, 4]
    record = await store.find_idempotency("v2", "Z")
    assert record is not None
    assert record.body == LARGE


async def test_minutes_are_not_summed_up_a_second_time(store: Store, itself: Standing) -> None:
    things = await fill(store)
    rolled = msgspec.structs.replace(itself, rolled_until=NOW + MINUTE)
    await store.restore(Section.STANDING, [rolled])
    assert await store.roll_up(NOW + MINUTE) == 0
    assert await store.minutes(NOW - 601 * MINUTE, NOW) == things[Section.MINUTES]


async def test_ids_handed_out_later_lie_above_what_was_restored(store: Store) -> None:
    things = await fill(store)
    assert (await store.reserve_ids("job", 1)).start > max(job.id for job in things[Section.JOBS])
    assert (await store.reserve_ids("run", 1)).start > max(run.id for run in things[Section.RUNS])
    assert (await store.reserve_ids("callback", 1)).start > max(record.id for record in things[Section.CALLBACKS])
    assert (await store.join("new", NOW, LEASE)).id > NOBODY


async def test_a_standing_is_taken_on_but_sequences_never_go_back(
    store: Store, reopen: Reopen, itself: Standing
) -> None:
    higher = {name: next_id + 1000 for name, next_id in itself.next_ids.items()}
    new = Standing(identity=~itself.identity, next_ids=higher, rolled_until=NOW)
    assert await store.restore(Section.STANDING, [new]) == 1
    assert await standing(store) == new
    assert await store.restore(Section.STANDING, [new]) == 0
    older = msgspec.structs.replace(itself, rolled_until=NOW - HOUR)
    await store.restore(Section.STANDING, [older])
    assert await standing(await reopen()) == msgspec.structs.replace(new, identity=itself.identity)
    assert await store.identity() == itself.identity
    assert (await store.reserve_ids("job", 1)).start == higher["job"]


async def test_a_run_whose_node_did_not_come_along_is_found_as_lapsed(store: Store) -> None:
    await store.restore(Section.JOBS, [a_job(1)])
    await store.restore(Section.RUNS, [a_run(1, state=State.RUNNING, node_id=1), a_run(2)])
    node = await store.join("new", NOW, LEASE)
    assert ids(await store.lapsed(NOW, 10)) == [1]
    assert ids(await claim(store, node_id=node.id)) == [2]
    assert ids(await store.lapsed(NOW, 10)) == [1]


async def test_a_page_of_large_things_ends_early(store: Store) -> None:
    runs = [a_run(number, input=LARGE) for number in range(1, 21)]
    await store.restore(Section.RUNS, runs)
    assert await read(store, Section.RUNS) == runs
    page = await store.export(Section.RUNS, None, 1000)
    assert page.after is not None
    assert 1 <= len(page.items) < 20


async def test_restoring_from_two_sides_at_once_adds_everything_once(store: Store, reopen: Reopen) -> None:
    other = await reopen()
    things = everything()
    for section, items in things.items():
        added = await asyncio.gather(store.restore(section, items), other.restore(section, items))
        assert sum(added) == len(items)
    assert await contents(store) == things


async def test_later_than_any_instant_there_is_fits_too(store: Store) -> None:
    far = a_run(1, due_at=NOW + timedelta(days=365 * 7000), created_at=NOW - timedelta(days=365 * 60))
    await store.restore(Section.RUNS, [far])
    assert await read(store, Section.RUNS) == [far]
