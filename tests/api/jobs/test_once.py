"""Timers that run once: on time, exactly once; missed when late, and never missed after they ran."""

from __future__ import annotations

from datetime import timedelta

from tests.api.jobs.conftest import MakeTimers
from tests.api.jobs.timers import UNWELL, Timers
from tests.kit.script import Reply

SECOND = timedelta(seconds=1)


async def test_a_once_runs_on_time_and_exactly_once(any_timers: Timers) -> None:
    """K-1, K-3, K-31, K-92, K-98, on every store."""
    timers = any_timers
    at = timers.now + 2 * SECOND
    made = await timers.once(at)
    assert (made["next_run_at"], made["last_status"]) == ("2030-01-01T12:00:02Z", "")
    await timers.advance("1.9s")
    assert timers.sink.count == 0
    await timers.advance("1h")
    assert timers.sink.times == [at]
    done = await timers.look(made)
    assert (done["next_run_at"], done["last_status"], done["last_error"]) == ("", "success", "")
    assert done["last_run_at"] == "2030-01-01T12:00:02Z"
    assert done["enabled"] is True


async def test_a_once_that_ran_stays_as_it_ended_over_restarts(any_timers: Timers) -> None:
    """K-32, X-46: no second request, and `success` does not become `missed`."""
    timers = any_timers
    made = await timers.once(timers.now + SECOND)
    await timers.advance("5s")
    done = await timers.look(made)
    for _ in range(2):
        await timers.down_for("1h")
        await timers.advance("1m")
    assert await timers.look(made) == done
    assert timers.sink.count == 1


async def test_a_once_whose_time_passed_while_nobody_was_there_is_missed(any_timers: Timers) -> None:
    """K-33 (a), K-92, K-98, K-12: missed, and not made up for."""
    timers = any_timers
    made = await timers.once(timers.now + 10 * SECOND)
    await timers.down_for("1m")
    await timers.advance("1h")
    seen = await timers.look(made)
    assert (seen["last_status"], seen["next_run_at"], seen["last_run_at"]) == ("missed", "", "")
    assert timers.sink.count == 0
    [run] = await timers.history(made)
    assert (run["status"], run["reason"], run["attempts"]) == ("missed", "misfire", 0)


async def test_a_once_made_for_the_past_is_accepted_and_missed_in_the_answer(timers: Timers) -> None:
    """K-33 (b), X-45: 201, `missed` at once and for good."""
    made = await timers.once(timers.now - 2 * SECOND)
    assert (made["last_status"], made["next_run_at"]) == ("missed", "")
    assert await timers.look(made) == made
    await timers.advance("1h")
    assert await timers.look(made) == made
    assert timers.sink.count == 0


async def test_a_once_of_this_second_is_due_now(timers: Timers) -> None:
    """X-45: a `run_at` within the last second is due, not missed."""
    made = await timers.once(timers.now - SECOND)
    assert made["last_status"] == ""
    assert (await timers.look(made))["last_status"] == "success"
    assert timers.sink.count == 1


async def test_waiting_for_a_free_worker_is_not_being_missed(make_timers: MakeTimers) -> None:
    """X-46, K-45"""
    timers = await make_timers(workers=1)
    timers.sink.replies(Reply(after=timedelta(seconds=30)))
    jobs = [await timers.once(timers.now + n * SECOND, timeout="1m") for n in (1, 2)]
    await timers.advance("40s")
    assert [(await timers.look(job))["last_status"] for job in jobs] == ["success", "success"]


async def test_a_once_under_way_shows_nothing_before_it_has_ended(timers: Timers) -> None:
    """K-22: neither missed nor anything else while its first run is not over."""
    timers.sink.replies(Reply(hangs=True))
    made = await timers.once(timers.now + SECOND)
    await timers.advance("2s")
    seen = await timers.look(made)
    assert (seen["last_status"], seen["last_run_at"], seen["next_run_at"]) == ("", "", "")
    [run] = await timers.history(made)
    assert (run["status"], run["ended_at"], run["latency_ms"]) == ("running", "", None)


async def test_a_once_that_fails_is_tried_again_and_is_over(timers: Timers) -> None:
    """K-32, K-47"""
    timers.sink.always = Reply(UNWELL)
    made = await timers.once(timers.now + SECOND, max_retries=1, retry_backoff="3s")
    await timers.advance("1h")
    seen = await timers.look(made)
    assert (seen["last_status"], seen["last_error"], seen["next_run_at"]) == ("failed", "answered 500", "")
    assert timers.sink.count == 2


async def test_many_onces_go_in_the_order_of_their_times(make_timers: MakeTimers) -> None:
    """K-29: twenty, made in another order, one worker."""
    timers = await make_timers(workers=1)
    order = [(7 * n) % 20 for n in range(20)]
    for n in order:
        await timers.once(timers.now + (n + 1) * timedelta(milliseconds=200), id=f"job-{n}")
    await timers.advance("10s")
    assert [delivery.context.job_ref for delivery in timers.sink.deliveries] == [f"job-{n}" for n in range(20)]


async def test_all_that_is_due_together_starts_together(make_timers: MakeTimers) -> None:
    """K-41: ten at one instant."""
    timers = await make_timers(workers=10)
    timers.sink.always = Reply(after=timedelta(seconds=1))
    at = timers.now + 5 * SECOND
    for _ in range(10):
        await timers.once(at)
    await timers.advance("5s")
    assert timers.sink.times == [at] * 10


async def test_an_earlier_timer_is_not_kept_waiting_by_a_later_one(timers: Timers) -> None:
    """K-42, K-40: loops at work, asleep until something is due, wake for a job that is due before."""
    async with timers.started():
        await timers.client.post("/jobs", {"http": {"url": "https://a.example/"}, "schedule": _at(timers, 3600)})
        await timers.pass_time("10s")
        await timers.client.post("/jobs", {"http": {"url": "https://b.example/"}, "schedule": _at(timers, 2)})
        at = timers.now + 2 * SECOND
        await timers.pass_time("2s")
        assert timers.sink.times == [at]


def _at(timers: Timers, seconds: float) -> dict[str, str]:
    return {"kind": "once", "run_at": timers.later(seconds)}
