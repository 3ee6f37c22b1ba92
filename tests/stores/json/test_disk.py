"""Writing: together, before the answer, whole or not at all."""

import asyncio
import errno
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ksana.domain.changes import JobChange
from ksana.domain.errors import AlreadyExists, InvalidArgument, StoreUnavailable
from ksana.domain.queries import RunQuery
from ksana.domain.retention import Retention
from ksana.domain.states import Event, State
from ksana.stores.json import disk, files
from tests.stores.builders import HOUR, NOW, a_job, a_move, a_run, an_attempt, an_exchange, claim, get_job, put
from tests.stores.json.files import Place, a_timer


class Saves:
    """Watches the saves of a store, and can make them wait or fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.error: OSError | None = None
        self.go = threading.Event()
        self.go.set()
        self.begun = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._write = files.write_whole
        monkeypatch.setattr(disk, "write_whole", self._watched)

    def _watched(self, *arguments: Any) -> None:
        self._loop.call_soon_threadsafe(self.begun.set)
        assert self.go.wait(30)
        if self.error is not None:
            raise self.error
        self._write(*arguments)
        self.count += 1


@pytest.fixture
async def saves(monkeypatch: pytest.MonkeyPatch) -> Saves:
    return Saves(monkeypatch)


async def test_changes_of_the_same_moment_share_a_write(place: Place, saves: Saves) -> None:
    """K-61"""
    store = place.store()
    await store.open()
    jobs = [a_timer(n) for n in range(1, 51)]
    await store.add_jobs(jobs)
    before = saves.count
    renamed = [msgspec.structs.replace(job, version=2, name=f"new {job.id}") for job in jobs]
    await asyncio.gather(*(store.change_jobs([JobChange(version=1, job=job)]) for job in renamed))
    assert saves.count - before <= 2
    assert [entry["name"] for entry in place.read()["jobs"]] == [f"new {n}" for n in range(1, 51)]
    await store.close()


async def test_nobody_sees_a_change_before_it_is_on_the_disk(place: Place, saves: Saves) -> None:
    store = place.store()
    await store.open()
    saves.go.clear()
    saves.begun.clear()
    adding = asyncio.ensure_future(store.add_jobs([a_timer(1)]))
    await asyncio.wait_for(saves.begun.wait(), 30)
    assert await store.get_jobs([1]) == []
    assert await store.next_fire_at() is None
    assert not adding.done()
    saves.go.set()
    await adding
    assert await store.get_jobs([1]) == [a_timer(1)]
    await store.close()


async def test_a_disk_that_is_full_leaves_everything_as_it_was(place: Place, saves: Saves) -> None:
    store = place.store()
    await store.open()
    await store.add_jobs([a_timer(1), a_job(2)])
    await put(store, a_run(1, 2))
    [one] = await claim(store)
    before = place.read()
    saves.error = OSError(errno.ENOSPC, "No space left on device")
    steps = [
        store.add_jobs([a_timer(3)]),
        store.turn([a_move(one.run, Event.SUCCEED, attempt=an_attempt(one.run))]),
        # It would be refused because of a job that now never was.
        store.add_jobs([a_timer(4, ref="timer-3")]),
    ]
    answers = await asyncio.gather(*steps, return_exceptions=True)
    assert [str(answer) for answer in answers] == [f"{place.path} cannot be written: No space left on device"] * 3
    assert {type(answer) for answer in answers} == {StoreUnavailable}
    assert await store.get_jobs([3, 4]) == []
    assert await store.get_runs([1]) == [one.run]
    assert await store.attempts(1) == []
    assert place.read() == before
    saves.error = None
    await store.add_jobs([a_timer(4, ref="timer-3")])
    assert (await store.turn([a_move(one.run, Event.SUCCEED, attempt=an_attempt(one.run))])).lost == frozenset()
    await store.close()
    await store.open()
    assert await get_job(store, 4) == a_timer(4, ref="timer-3")
    assert await store.attempts(1) == [an_attempt(one.run)]
    await store.close()


async def test_a_save_that_failed_half_way_leaves_no_temporary_file(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = place.store()
    await store.open()
    before = place.file.read_bytes()

    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", fail)
        with pytest.raises(StoreUnavailable, match="Input/output error"):
            await store.add_jobs([a_timer(1)])
    assert place.file.read_bytes() == before
    assert "jobs.json.tmp" not in place.names
    await store.close()


async def test_a_value_no_file_can_hold_is_refused_alone(place: Place) -> None:
    store = place.store()
    await store.open()
    steps = [
        store.add_jobs([a_job(1)]),
        store.add_jobs([a_job(2), a_job(3, name="\ud800")]),
        store.add_jobs([a_job(4)]),
    ]
    answers = await asyncio.gather(*steps, return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None), InvalidArgument, type(None)]
    assert sorted(job.id for job in await store.get_jobs([1, 2, 3, 4])) == [1, 4]
    assert [entry["id"] for entry in place.read()["other_jobs"]] == [1, 4]
    await store.close()


async def test_a_refused_step_leaves_the_others_of_its_group_alone(place: Place) -> None:
    store = place.store()
    await store.open()
    steps = [store.add_jobs([a_timer(1)]), store.add_jobs([a_timer(2), a_timer(3, ref="timer-1")])]
    answers = await asyncio.gather(*steps, return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None), AlreadyExists]
    assert [entry["id"] for entry in place.read()["jobs"]] == ["timer-1"]
    await store.close()


async def test_a_history_of_what_is_gone_is_written_anew(place: Place) -> None:
    store = place.store()
    await store.open()
    await store.add_jobs([a_job(1)])
    body = bytes(range(256)) * 2000
    for number in range(1, 5):
        await put(store, a_run(number, due_at=NOW))
        [one] = await claim(store)
        attempt = an_attempt(one.run, exchange=an_exchange(response_body=body + bytes([number])))
        ended_at = NOW + HOUR if number == 4 else NOW
        await store.turn([a_move(one.run, Event.SUCCEED, ended_at, attempt=attempt)])
    await put(store, a_run(5, state=State.RUNNING))
    kept = await store.attempts(4)
    full = (place.path / "history-1.jsonl").stat().st_size
    assert await store.prune(Retention(NOW + HOUR, NOW + HOUR, 0, 10)) == 3
    await store.close()
    assert place.read()["history"]["file"] == "history-2.jsonl"
    assert (place.path / "history-2.jsonl").stat().st_size < full / 2
    # What the previous generation points at is still there.
    assert "history-1.jsonl" in place.names
    await store.open()
    assert await store.attempts(4) == kept
    assert [run.id for run in (await store.find_runs(RunQuery())).items] == [5, 4]
    await put(store, a_run(6, state=State.FAILED, ended_at=NOW))
    await store.close()
    await store.open()
    assert (await store.find_runs(RunQuery())).total == 3
    await store.close()


async def test_the_directory_may_be_deep_and_not_there_yet(tmp_path: Path) -> None:
    place = Place(tmp_path / "a" / "b")
    store = place.store()
    await store.open()
    assert place.file.exists()
    await store.close()
