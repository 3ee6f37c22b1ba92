"""From any store into any other: all of it, also in two goes, and never over what must not be lost."""

import asyncio
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ksana.domain.archive import Section
from ksana.domain.errors import AlreadyExists, InvalidState
from ksana.domain.ports import Store
from ksana.domain.states import State
from ksana.engine.engine import Engine, EngineOptions
from ksana.stores.copy import Copied, CopyProgress, CopyReport, copy
from ksana.stores.open import open_store
from ksana.stores.sql.statements import SET_ROLLED
from ksana.stores.sql.store import SqlStore
from tests.kit.processes import program
from tests.kit.script import Reply
from tests.kit.world import World
from tests.services.databases import FreshDatabase
from tests.stores.builders import HOUR, LEASE, NOW, SECOND, a_gap, a_job
from tests.stores.conftest import STORES, MakeStore
from tests.stores.cut_short import PAGE
from tests.stores.everything import CARRIED, Everything, contents, everything, fill, standing

ROOT = Path(__file__).parents[2]


class CutShort(Exception):
    """The copy ends here."""


async def unrolled(store: Store) -> None:
    # The shared databases keep the rows of the migration.
    if isinstance(store, SqlStore):
        await store._database.write(lambda tx: tx.run(SET_ROLLED, until=0))


# Every store is where it comes from, and where it goes; in between are values that know no store.
_ROUND = list(zip(STORES, (*STORES[1:], STORES[0]), strict=True))
each_store_once = pytest.mark.parametrize("pair", _ROUND, ids="-".join, indirect=True)
each_store_twice = pytest.mark.parametrize("pair", [*_ROUND, *(p[::-1] for p in _ROUND)], ids="-".join, indirect=True)


@pytest.fixture
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Store, Store]]:
    """Two stores of two kinds; the second is empty."""
    make: list[MakeStore] = [request.getfixturevalue(f"{name}_stores") for name in request.param]
    source, target = make[0](), make[1]()
    for store in (source, target):
        await store.open()
        await unrolled(store)
    before = await standing(target)
    yield source, target
    await target.restore(Section.STANDING, [before])
    for store in (source, target):
        await unrolled(store)
        await store.close()


@pytest.fixture
def source_url(migrated_file: Path, tmp_path: Path) -> str:
    shutil.copy(migrated_file, tmp_path / "source.db")
    return f"sqlite:///{tmp_path}/source.db"


@pytest.fixture
async def source(source_url: str) -> AsyncIterator[Store]:
    store = open_store(source_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[Store]:
    store = open_store(f"sqlite:///{tmp_path}/target.db")
    await store.open()
    yield store
    await store.close()


async def copied(source: Store, target: Store, **said: Any) -> CopyReport:
    return await copy(source, target, NOW, lambda progress: None, **said)


async def cut(source: Store, target: Store, after: int, **said: Any) -> None:
    """Begin a copy that is cut short after so many words of progress."""
    left = iter(range(after))

    def on_progress(progress: CopyProgress) -> None:
        if next(left, None) is None:
            raise CutShort

    with pytest.raises(CutShort):
        await copy(source, target, NOW, on_progress, page=PAGE, **said)


def sizes(things: Everything) -> dict[Section, int]:
    return {section: len(items) for section, items in things.items()}


@each_store_twice
async def test_everything_arrives_value_by_value(pair: tuple[Store, Store]) -> None:
    source, target = pair
    things = await fill(source)
    rolled = msgspec.structs.replace(await standing(source), rolled_until=NOW)
    await source.restore(Section.STANDING, [rolled])
    report = await copied(source, target)
    assert await contents(target) == await contents(source) == things
    assert report == CopyReport([Copied(section, len(things[section]), 0) for section in CARRIED], resumed=False)
    arrived = await standing(target)
    assert (arrived.identity, arrived.rolled_until) == (rolled.identity, NOW)
    assert all(arrived.next_ids[name] >= next_id for name, next_id in rolled.next_ids.items())


@each_store_once
async def test_a_copy_cut_short_goes_on_where_it_was(pair: tuple[Store, Store]) -> None:
    source, target = pair
    things = await fill(source)
    await cut(source, target, after=20)
    assert await target.identity() < 0
    there = sizes(await contents(target))
    assert 0 < sum(there.values()) < sum(sizes(things).values())
    report = await copied(source, target)
    assert report.resumed
    assert {one.section: one.present for one in report.sections} == there
    assert {one.section: one.copied + one.present for one in report.sections} == sizes(things)
    assert await contents(target) == things
    assert await target.identity() == await source.identity()


async def test_a_copy_may_be_cut_short_after_every_single_page(source: Store, target: Store) -> None:
    things = await fill(source)
    begun: dict[Section, int] = {}

    def on_progress(progress: CopyProgress) -> None:
        if progress.done > begun.setdefault(progress.section, progress.done):
            raise CutShort

    is_done, cuts = False, 0
    while not is_done:
        begun.clear()
        try:
            is_done = bool(await copy(source, target, NOW, on_progress, page=PAGE))
        except CutShort:
            cuts += 1
    assert cuts == sum(-(-size // PAGE) for size in sizes(things).values())
    assert await contents(target) == things
    assert await target.identity() == await source.identity()


@pytest.mark.parametrize("name", STORES)
async def test_a_copy_that_was_killed_is_finished_by_the_next(
    request: pytest.FixtureRequest, source: Store, source_url: str, tmp_path: Path, name: str
) -> None:
    fresh: FreshDatabase = request.getfixturevalue(f"fresh_{name}_database")
    url = fresh()
    things = await fill(source)
    command = (sys.executable, "-m", "tests.stores.cut_short", source_url, url, "17")
    async with program(*command, directory=tmp_path, environment={"PYTHONPATH": str(ROOT)}) as process:
        assert await process.ended() == -signal.SIGKILL, process.output
    target = open_store(url)
    await target.open()
    try:
        assert await target.identity() == ~await source.identity()
        assert (await copied(source, target)).resumed
        assert await contents(target) == things
        assert await target.identity() == await source.identity()
    finally:
        await target.close()


async def test_progress_is_told_against_the_total_of_each_section(source: Store, target: Store) -> None:
    things = await fill(source)
    told: list[CopyProgress] = []
    await copy(source, target, NOW, told.append, page=PAGE)
    for section, items in things.items():
        steps = [progress for progress in told if progress.section is section]
        assert {progress.total for progress in steps} == {len(items)}
        done = [progress.done for progress in steps]
        assert done == sorted(done)
        assert (done[0], done[-1]) == (0, len(items))


async def test_an_empty_store_is_copied_too(source: Store, target: Store) -> None:
    report = await copied(source, target)
    assert {(one.copied, one.present) for one in report.sections} == {(0, 0)}
    assert await standing(target) == await standing(source)


async def test_other_data_is_not_mixed_up_with_a_copy(source: Store, target: Store) -> None:
    await fill(source)
    await target.add_jobs([a_job(1, name="mine")])
    before = await standing(target)
    with pytest.raises(AlreadyExists, match=r"TO holds other data.*--force"):
        await copied(source, target)
    assert sizes(await contents(target)) | {Section.JOBS: 0} == dict.fromkeys(CARRIED, 0)
    assert await standing(target) == before


async def test_force_adds_what_is_missing_and_leaves_the_rest(source: Store, target: Store) -> None:
    things = await fill(source)
    await target.add_jobs([a_job(1, name="mine")])
    identity = await target.identity()
    report = await copied(source, target, force=True)
    assert report.sections[1] == Copied(Section.JOBS, len(things[Section.JOBS]) - 1, 1)
    found = await contents(target)
    assert found[Section.JOBS][0].name == "mine"
    assert found | {Section.JOBS: found[Section.JOBS][1:]} == things | {Section.JOBS: things[Section.JOBS][1:]}
    # It has a life of its own, and traces that refer to it.
    assert await target.identity() == identity


async def test_a_finished_copy_is_not_made_again(source: Store, target: Store) -> None:
    things = await fill(source)
    await copied(source, target)
    with pytest.raises(AlreadyExists, match="a copy of FROM, finished before"):
        await copied(source, target)
    report = await copied(source, target, force=True)
    assert {one.section: one.present for one in report.sections} == sizes(things)
    assert {one.copied for one in report.sections} == {0}
    assert await contents(target) == things


async def test_a_copy_does_not_go_on_after_its_source_lived_on(source: Store, target: Store) -> None:
    await fill(source)
    await cut(source, target, after=20)
    node = await source.join("back", NOW, LEASE)
    await source.leave(node.id)
    with pytest.raises(InvalidState, match=r"in use after the copy to TO was cut short.*empty TO"):
        await copied(source, target)
    assert await target.identity() < 0
    await copied(source, target, force=True)
    assert await contents(target) == everything()
    assert await target.identity() == await source.identity()


async def test_a_half_copy_is_no_source(source: Store, target: Store, tmp_path: Path) -> None:
    await fill(source)
    await cut(source, target, after=20)
    third = open_store(f"sqlite:///{tmp_path}/third.db")
    await third.open()
    try:
        with pytest.raises(InvalidState, match="cut short; finish it first"):
            await copied(target, third)
        await copied(target, third, force=True)
        assert await third.identity() == await source.identity()
    finally:
        await third.close()


async def test_what_changes_during_a_copy_is_noticed(source: Store, target: Store) -> None:
    await fill(source)
    late = asyncio.Event()

    def on_progress(progress: CopyProgress) -> None:
        if progress.section is Section.RECORDS:
            late.set()

    copying = asyncio.create_task(copy(source, target, NOW, on_progress, page=1))
    await late.wait()
    await source.restore(Section.GAPS, [a_gap(1, NOW + HOUR)])
    with pytest.raises(InvalidState, match=r"FROM has 6 gaps and TO got 5"):
        await copying
    assert await target.identity() < 0


async def test_a_node_that_starts_during_a_copy_is_noticed(source: Store, target: Store) -> None:
    await fill(source)
    begun = asyncio.Event()
    copying = asyncio.create_task(copy(source, target, NOW, lambda progress: begun.set(), page=1))
    await begun.wait()
    node = await source.join("early", NOW, LEASE)
    await source.leave(node.id)
    with pytest.raises(InvalidState, match="a node was started on FROM during the copy"):
        await copying
    assert await target.identity() < 0


@pytest.mark.parametrize("which", ["FROM", "TO"])
async def test_no_copy_is_made_while_nodes_are_at_work(source: Store, target: Store, which: str) -> None:
    await fill(source)
    store = source if which == "FROM" else target
    await store.join("busy 🐝", NOW - LEASE + SECOND, LEASE)
    with pytest.raises(InvalidState, match=rf"{which} has nodes at work \(busy 🐝\).*stop them"):
        await copied(source, target)
    assert sizes(await contents(target)) == dict.fromkeys(CARRIED, 0)
    await copied(source, target, force=True)
    assert await contents(target) == everything()


async def test_a_node_whose_lease_has_lapsed_is_no_hindrance(source: Store, target: Store) -> None:
    await source.join("dead", NOW - LEASE, LEASE)
    await copied(source, target)


async def test_no_node_starts_on_half_a_copy(source: Store, target: Store) -> None:
    await fill(source)
    await cut(source, target, after=20)
    engine = Engine(target, {}, EngineOptions(name="early"))
    with pytest.raises(InvalidState, match=r"cut short; repeat `ksana store copy`"):
        await engine.start()
    assert await target.nodes() == []


@each_store_once
async def test_what_was_due_at_the_move_fires_once_after_it(pair: tuple[Store, Store]) -> None:
    source, target = pair
    old = await World(lambda: _same(source)).open()
    every = await old.job(every="20s")
    old.sink.replies(Reply(hangs=True))
    under_way = await old.trigger(await old.job(timeout="10m"))
    await old.advance("25s")
    old.kill()
    now = old.now + timedelta(seconds=16)
    await copy(source, target, now, lambda progress: None)
    new = World(lambda: _same(target))
    new.clock.move_to(now)
    await new.open()
    await new.advance("20s")
    slots = [run.slot_at for run in await new.runs(every)]
    assert slots == [every.created_at + timedelta(seconds=20 * n) for n in (1, 2, 3)]
    assert [delivery.planned_at for delivery in new.sink.deliveries if delivery.context.job_id == every.id] == slots[1:]
    # What the old node was doing is found, and done again by the rules; its fence has risen and its trace is the same.
    [again] = new.sink.of(under_way.id)
    [first] = old.sink.of(under_way.id)
    assert again.context.fence > first.context.fence
    assert again.context.trace_id == first.context.trace_id
    assert (await new.run(under_way.id)).state is State.SUCCESS
    await old.close()
    await new.close()


async def _same(store: Store) -> Store:
    return store
