"""The file of the json store says what the API says, as soon as the API has said it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.jobs.conftest import ManyTimers
from tests.api.jobs.timers import REFUSED, Timers


@pytest.fixture
async def timers(json_world_url: str) -> AsyncIterator[Timers]:
    worlds = ManyTimers(json_world_url)
    yield await worlds.create()
    await worlds.close()


@pytest.fixture
def file(json_world_url: str) -> Path:
    return Path(json_world_url.removeprefix("json:")) / "jobs.json"


def jobs_in(file: Path) -> list[Any]:
    """The documented fields of the jobs in the file."""
    return [
        {name: value for name, value in job.items() if name != "core"} for job in json.loads(file.read_text())["jobs"]
    ]


async def test_every_change_is_in_the_file_when_it_is_answered(timers: Timers, file: Path) -> None:
    """K-5, K-43, K-70, K-1, K-16: create, change, pause, resume, delete; the file is read right after the answer."""
    made = await timers.every("90s", jitter="1s", id="one", timeout="2.50s")
    assert jobs_in(file) == [made]
    changed = await timers.patch(made, schedule={"every": "2s", "jitter": ""}, name="other")
    assert changed["next_run_at"] == "2030-01-01T12:00:02Z"
    assert jobs_in(file) == [changed]
    for verb in ("pause", "resume"):
        switched = await timers.do(made, verb)
        assert jobs_in(file) == [switched]
    assert (await timers.send("DELETE", "/jobs/one")).status == 204
    assert jobs_in(file) == []


async def test_results_are_written_back_to_the_file(timers: Timers, file: Path) -> None:
    """K-51, K-43: the four fields of the file are those of the API."""
    timers.sink.replies(REFUSED)
    every = await timers.every("1m")
    once = await timers.once(timers.now)
    for _ in range(3):
        await timers.advance("30s")
        assert jobs_in(file) == [await timers.look(every), await timers.look(once)]
    assert jobs_in(file)[1]["last_status"] in ("success", "failed")


async def test_what_is_in_the_file_is_there_after_a_restart(timers: Timers, file: Path) -> None:
    """K-24, K-39, K-32: durations as they were written, the next slot, and a once that ran."""
    every = await timers.every("90s", timeout="2.50s")
    once = await timers.once(timers.now)
    done = await timers.look(once)
    await timers.down_for("100s")
    assert await timers.look(once) == done
    assert await timers.look(every) == {**every, "next_run_at": "2030-01-01T12:03:00Z"}
    assert timers.sink.count == 1
