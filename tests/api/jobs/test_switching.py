"""Pause and resume: nothing fires in between, nothing is made up for afterwards, and `last_status` says so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.jobs.timers import REFUSED, Timers
from tests.kit.clock import START
from tests.kit.script import Reply

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("by_patch", [True, False])
async def test_a_paused_timer_does_not_fire_and_goes_on_with_the_next_slot(any_timers: Timers, by_patch: bool) -> None:
    """K-72, K-77, K-4, on every store: no fire while paused, no burst after, the grid is the old one."""
    timers = any_timers
    made = await timers.every("1m")

    async def switch(on: bool) -> None:
        await (timers.patch(made, enabled=on) if by_patch else timers.do(made, "resume" if on else "pause"))

    await timers.advance("1m")
    await switch(False)
    assert (await timers.look(made))["enabled"] is False
    await timers.advance("290s")
    assert timers.sink.count == 1
    await switch(True)
    assert (await timers.look(made))["next_run_at"] == "2030-01-01T12:06:00Z"
    await timers.advance("2m")
    assert timers.sink.times == [START + n * MINUTE for n in (1, 6, 7)]


async def test_the_status_is_paused_until_it_is_resumed(timers: Timers) -> None:
    """K-22, X-48: resuming shows the last run's result again."""
    timers.sink.replies(REFUSED)
    made = await timers.every("1m")
    await timers.advance("90s")
    before = await timers.look(made)
    assert (before["last_status"], before["last_error"]) == ("failed", "answered 404")
    paused = await timers.do(made, "pause")
    assert paused == {**before, "enabled": False, "next_run_at": "", "last_status": "paused", "last_error": ""}
    assert await timers.look(made) == paused
    assert await timers.do(made, "resume") == before


async def test_a_run_that_outlives_the_pause_says_how_it_ended(timers: Timers) -> None:
    """K-51, X-48"""
    timers.sink.replies(Reply(after=timedelta(seconds=30)))
    made = await timers.every("1m", timeout="1m")
    await timers.advance("70s")
    assert (await timers.do(made, "pause"))["last_status"] == "paused"
    await timers.advance("1m")
    assert (await timers.look(made))["last_status"] == "success"


async def test_pausing_and_resuming_twice_changes_nothing(timers: Timers) -> None:
    """K-72"""
    made = await timers.every("1m")
    assert await timers.do(made, "pause") == await timers.do(made, "pause")
    assert await timers.do(made, "resume") == await timers.do(made, "resume") == made


async def test_a_once_whose_time_passed_in_a_pause_is_missed_when_it_is_resumed(any_timers: Timers) -> None:
    """X-47, K-33, on every store: no surprise; a new `run_at` arms it again."""
    timers = any_timers
    made = await timers.once(timers.now + MINUTE)
    await timers.do(made, "run-now")
    await timers.advance("1s")
    await timers.do(made, "pause")
    await timers.advance("1h")
    assert (await timers.look(made))["last_status"] == "paused"
    resumed = await timers.do(made, "resume")
    assert (resumed["last_status"], resumed["next_run_at"]) == ("missed", "")
    assert (await timers.look(made))["last_status"] == "missed"
    assert timers.sink.count == 1
    armed = await timers.patch(made, schedule={"run_at": timers.later(60)})
    assert armed["next_run_at"] == "2030-01-01T13:01:01Z"
    await timers.advance("1m")
    assert (timers.sink.count, (await timers.look(made))["last_status"]) == (2, "success")


async def test_a_once_resumed_before_its_time_runs_on_time(timers: Timers) -> None:
    """K-31, K-72"""
    made = await timers.once(timers.now + MINUTE)
    await timers.do(made, "pause")
    await timers.advance("30s")
    assert (await timers.do(made, "resume"))["next_run_at"] == "2030-01-01T12:01:00Z"
    await timers.advance("1h")
    assert timers.sink.times == [START + MINUTE]


async def test_a_once_that_ran_is_not_missed_after_a_pause(timers: Timers) -> None:
    """K-32, X-46"""
    made = await timers.once(timers.now + MINUTE)
    await timers.advance("2m")
    done = await timers.look(made)
    await timers.do(made, "pause")
    await timers.advance("1h")
    assert await timers.do(made, "resume") == done
    assert timers.sink.count == 1


@pytest.mark.parametrize("seconds", [-60, 0, 60])
async def test_a_once_made_disabled_is_missed_if_it_is_switched_on_too_late(timers: Timers, seconds: int) -> None:
    """K-33, K-77, X-46"""
    made = await timers.once(timers.now + timedelta(seconds=seconds), enabled=False)
    assert (made["last_status"], made["next_run_at"]) == ("paused", "")
    await timers.advance("10m")
    resumed = await timers.do(made, "resume")
    assert (resumed["last_status"], resumed["next_run_at"]) == ("missed", "")
    await timers.advance("10m")
    assert (await timers.look(made))["last_status"] == "missed"
    assert timers.sink.count == 0
