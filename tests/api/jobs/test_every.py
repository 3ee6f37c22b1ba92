"""Timers at intervals: a grid that does not drift, jitter that stays within its bounds, nothing made up for."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.api.jobs.conftest import MakeTimers
from tests.api.jobs.timers import UNWELL, Timers, text_of
from tests.kit.clock import START
from tests.kit.script import Reply

SECOND = timedelta(seconds=1)


def after(*seconds: float) -> list[datetime]:
    return [START + timedelta(seconds=each) for each in seconds]


async def test_the_first_fire_is_one_interval_after_creation(any_timers: Timers) -> None:
    """K-34, K-3, K-1, K-99, on every store."""
    timers = any_timers
    made = await timers.every("3s")
    assert made["next_run_at"] == "2030-01-01T12:00:03Z"
    await timers.advance("10s")
    assert timers.sink.times == after(3, 6, 9)
    assert (await timers.look(made))["next_run_at"] == "2030-01-01T12:00:12Z"


async def test_a_start_in_the_future_is_the_first_fire(timers: Timers) -> None:
    """K-35, K-99"""
    made = await timers.every("5m", start_at="2030-01-01T12:00:30Z")
    assert made["next_run_at"] == "2030-01-01T12:00:30Z"
    await timers.advance("6m")
    assert timers.sink.times == after(30, 330)


async def test_a_start_in_the_past_sets_the_grid(timers: Timers) -> None:
    """K-35, K-99"""
    made = await timers.every("5m", start_at="2029-12-31T00:02:00Z")
    assert made["next_run_at"] == "2030-01-01T12:02:00Z"
    assert timers.sink.count == 0


async def test_slow_calls_do_not_move_the_grid(timers: Timers) -> None:
    """K-37, X-42: every 2 s, 0.7 s each."""
    timers.sink.always = Reply(after=timedelta(seconds=0.7))
    await timers.every("2s")
    await timers.advance("20s")
    assert timers.sink.times == after(*range(2, 21, 2))


async def test_jitter_delays_each_fire_a_little_and_never_the_grid(timers: Timers) -> None:
    """K-38, K-99, X-43: in [0, jitter), not always the same, and fire 100 is no later than fire 1 may be."""
    made = await timers.every("10s", jitter="5s")
    await timers.advance("1005s")
    runs = await timers.runs()
    late = [(run.due_at - run.slot_at).total_seconds() for run in runs if run.slot_at]
    assert [run.slot_at for run in runs] == after(*range(10, 1001, 10))
    assert all(0 <= each < 5 for each in late)
    assert len(set(late)) > 50
    assert max(late) > 3 > 2 > min(late)
    assert timers.sink.times == [run.due_at for run in runs]
    assert "2030-01-01T12:16:50Z" <= (await timers.look(made))["next_run_at"] < "2030-01-01T12:16:55Z"


async def test_the_next_run_shown_is_the_instant_it_fires(timers: Timers) -> None:
    """X-43: the jitter drawn is part of `next_run_at`."""
    made = await timers.every("1h", jitter="30m")
    await timers.advance("90m")
    [at] = timers.sink.times
    assert made["next_run_at"] == text_of(at)[:19] + "Z"


async def test_after_a_downtime_it_goes_straight_to_the_next_slot(any_timers: Timers) -> None:
    """K-36, K-39, K-93, K-99, on every store: one request per interval afterwards, no burst."""
    timers = any_timers
    made = await timers.every("1m")
    await timers.advance("1m")
    await timers.down_for("330s")
    assert timers.sink.count == 1
    assert (await timers.look(made))["next_run_at"] == "2030-01-01T12:07:00Z"
    await timers.advance("3m")
    assert timers.sink.times == after(60, 420, 480, 540)


async def test_what_a_downtime_left_out_is_recorded(timers: Timers) -> None:
    """K-36, R13: one line that says from when to when, and how many."""
    await timers.every("1m")
    await timers.down_for("330s")
    await timers.advance("1m")
    [_, gap] = await timers.seen("/api/v2/jobs/1/fires")
    assert (gap["decision"], gap["reason"], gap["count"]) == ("left_out", "misfire", 5)


async def test_a_tick_that_meets_its_own_run_is_dropped_and_recorded(any_timers: Timers) -> None:
    """K-57, X-44, on every store: no two at once, the next fire is on the grid, the record says overlap."""
    timers = any_timers
    timers.sink.replies(Reply(after=timedelta(seconds=25)))
    made = await timers.every("10s", timeout="1m")
    await timers.advance("40s")
    assert timers.sink.times == after(10, 40)
    history = await timers.history(made)
    assert [run["status"] for run in history] == ["success", "skipped", "skipped", "success"]
    assert [run["reason"] for run in history[1:3]] == ["overlap", "overlap"]
    assert (await timers.look(made))["last_status"] == "success"


async def test_retries_hold_the_next_ticks_off(timers: Timers) -> None:
    """K-57, X-75: every 2 s, two retries 2.5 s apart: never two requests of the job at once, none in between."""
    timers.sink.replies(Reply(UNWELL), Reply(UNWELL), Reply(UNWELL))
    made = await timers.every("2s", max_retries=2, retry_backoff="2.5s")
    await timers.advance("10s")
    assert timers.sink.times == after(2, 4.5, 7, 8, 10)
    assert timers.sink.most_at_once[1] == 1
    statuses = [run["status"] for run in await timers.history(made)]
    assert statuses == ["failed", "skipped", "skipped", "success", "success"]


async def test_a_dropped_tick_does_not_hide_how_the_job_does(timers: Timers) -> None:
    """X-44, X-48: `last_status` keeps the real result; `skipped` shows only while there is none."""
    timers.sink.replies(Reply(after=timedelta(seconds=15)), Reply(hangs=True))
    made = await timers.every("10s", timeout="1h")
    await timers.advance("21s")
    assert (await timers.look(made))["last_status"] == "skipped"
    await timers.advance("4s")
    first = await timers.look(made)
    assert (first["last_status"], first["last_run_at"]) == ("success", "2030-01-01T12:00:10Z")
    await timers.advance("60s")
    seen = await timers.look(made)
    assert (seen["last_status"], seen["last_run_at"]) == ("success", "2030-01-01T12:00:10Z")
    assert (await timers.history(made))[-1]["status"] == "skipped"


async def test_a_disabled_timer_never_fires(any_timers: Timers) -> None:
    """K-77"""
    timers = any_timers
    made = await timers.every("1s", enabled=False)
    assert (made["next_run_at"], made["enabled"]) == ("", False)
    await timers.advance("1m")
    await timers.down_for("1m")
    assert timers.sink.count == 0
    assert (await timers.look(made))["next_run_at"] == ""


@pytest.mark.parametrize("workers", [2, 4])
async def test_no_more_calls_are_under_way_than_there_are_workers(make_timers: MakeTimers, workers: int) -> None:
    """K-45, K-82"""
    timers = await make_timers(workers=workers)
    timers.sink.always = Reply(after=timedelta(seconds=1))
    for _ in range(6):
        await timers.once(timers.now + SECOND)
    most = 0
    for _ in range(40):
        await timers.advance("100ms")
        most = max(most, len(timers.sink.running))
    assert (most, timers.sink.count) == (workers, 6)


async def test_the_shortest_interval_is_a_tenth_of_a_second(timers: Timers) -> None:
    """K-44"""
    await timers.every("100ms")
    await timers.advance("1s")
    assert timers.sink.count == 10
