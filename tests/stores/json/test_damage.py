"""Files that are broken, cut short, missing or of another time."""

import logging
import os
from pathlib import Path

import pytest

from ksana.domain.errors import StoreUnavailable
from ksana.domain.queries import JobQuery, RunQuery
from ksana.domain.states import Event, State
from tests.stores.builders import HOUR, NOW, a_job, a_move, a_run, an_attempt, claim, get_job, put
from tests.stores.json.files import Place, a_timer


@pytest.mark.parametrize(
    "garbage", ["", "{", "[]", "{}", '{"jobs": {}}', '{"jobs": [1,]}', "\x00\x01", '{"jobs":[NaN]}']
)
async def test_a_file_that_does_not_parse_is_set_aside_and_the_server_starts(place: Place, garbage: str) -> None:
    """K-62"""
    place.write(garbage)
    store = place.store()
    await store.open()
    assert (await store.find_jobs(JobQuery())).total == 0
    assert place.read()["jobs"] == []
    assert (place.path / "jobs.bad.json").read_text() == garbage
    await store.add_jobs([a_timer(1)])
    await store.close()


async def test_earlier_bad_files_are_kept_with_a_time_stamp(place: Place) -> None:
    """X-138"""
    for number in range(3):
        place.write(f"bad {number}")
        if (earlier := place.path / "jobs.bad.json").exists():
            os.utime(earlier, (NOW.timestamp(), NOW.timestamp()))
        store = place.store()
        await store.open()
        await store.close()
    kept = {path.name: path.read_text() for path in place.path.glob("jobs.bad*")}
    assert kept == {
        "jobs.bad.json": "bad 2",
        "jobs.bad.20300101T120000.json": "bad 0",
        "jobs.bad.20300101T120000.1.json": "bad 1",
    }


async def test_the_previous_generation_is_offered_and_good_to_go_back_to(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    store = place.store()
    await store.open()
    await store.add_jobs([a_timer(1)])
    await store.add_jobs([a_timer(2)])
    await store.close()
    place.write('{"jobs": [')
    with caplog.at_level(logging.ERROR):
        await store.open()
    await store.add_jobs([a_timer(9)])
    await store.close()
    good = place.path / "jobs.good.json"
    assert f"copy it to {place.file}" in caplog.text
    assert str(good) in caplog.text
    place.file.write_bytes(good.read_bytes())
    await store.open()
    assert [job.id for job in (await store.find_jobs(JobQuery())).items] == [1]
    await store.close()


async def test_a_file_of_a_later_version_is_refused_and_left_alone(place: Place) -> None:
    place.write({"version": 2, "jobs": []})
    with pytest.raises(StoreUnavailable, match="version 2"):
        await place.store().open()
    assert place.read() == {"version": 2, "jobs": []}


async def test_what_died_between_the_two_steps_of_a_rename_is_found(place: Place) -> None:
    """K-64: where a file is removed before another takes its name, the new one is there under its temporary name."""
    store = place.store()
    await store.open()
    await store.add_jobs([a_timer(1)])
    await store.close()
    place.file.rename(place.path / "jobs.json.tmp")
    await store.open()
    assert await get_job(store, 1) == a_timer(1)
    await store.close()


async def test_a_first_save_that_was_cut_short_leaves_an_empty_store(place: Place) -> None:
    place.path.mkdir()
    (place.path / "jobs.json.tmp").write_text('{"version": 1, "jo')
    store = place.store()
    await store.open()
    await store.close()
    assert place.read()["jobs"] == []
    assert "jobs.bad.json" not in place.names


async def test_a_rename_that_does_not_go_over_a_file_is_done_in_two_steps(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K-64"""
    store = place.store()
    await store.open()
    refused: list[Path] = []

    def replace(self: Path, target: Path) -> None:
        refused.append(target)
        raise PermissionError("Windows says no")

    monkeypatch.setattr(Path, "replace", replace)
    await store.add_jobs([a_timer(1)])
    assert refused == [place.file]
    assert place.entry("timer-1")["name"] == "job 1"
    await store.close()


async def with_history(place: Place) -> None:
    """A store in which run 1 has ended and run 2 has not."""
    store = place.store()
    await store.open()
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1), a_run(2, due_at=NOW + HOUR))
    [one] = await claim(store)
    await store.turn([a_move(one.run, Event.SUCCEED, attempt=an_attempt(one.run))])
    await store.close()


async def test_lines_behind_what_counts_never_were(place: Place) -> None:
    """A change is in the history first and counts with the rename of `jobs.json`; dying between them undoes it."""
    await with_history(place)
    before = place.file.read_bytes()
    store = place.store()
    await store.open()
    await store.turn([a_move(a_run(2), Event.CANCEL)])
    await store.close()
    place.file.write_bytes(before)
    await store.open()
    assert [run.state for run in (await store.find_runs(RunQuery())).items] == [State.SCHEDULED, State.SUCCESS]
    assert len(await store.attempts(1)) == 1
    await store.turn([a_move(a_run(2), Event.CANCEL)])
    await store.close()
    await store.open()
    assert [run.state for run in (await store.find_runs(RunQuery())).items] == [State.CANCELED, State.SUCCESS]
    await store.close()


async def test_a_history_that_is_gone_costs_the_history_and_nothing_else(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    await with_history(place)
    (place.path / "history-1.jsonl").unlink()
    store = place.store()
    with caplog.at_level(logging.ERROR):
        await store.open()
    assert "history" in caplog.text
    assert [run.id for run in (await store.find_runs(RunQuery())).items] == [2]
    assert await get_job(store, 1) == a_job(1)
    await store.close()


async def test_a_line_of_the_history_that_cannot_be_read_is_passed_over(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    await with_history(place)
    path = place.path / "history-1.jsonl"
    path.write_bytes(path.read_bytes().replace(b'{"attempt":', b'{"attemp!":'))
    store = place.store()
    with caplog.at_level(logging.ERROR):
        await store.open()
    assert "1 lines" in caplog.text
    assert (await store.find_runs(RunQuery())).total == 2
    assert await store.attempts(1) == []
    await store.close()


async def test_a_history_nobody_points_at_is_left_alone(place: Place) -> None:
    await with_history(place)
    history = (place.path / "history-1.jsonl").read_bytes()
    place.write_jobs()
    store = place.store()
    await store.open()
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1, state=State.SUCCESS, ended_at=NOW))
    await store.close()
    assert (place.path / "history-1.jsonl").read_bytes() == history
    assert "history-2.jsonl" in place.names
