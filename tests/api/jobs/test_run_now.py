"""Run now: at once, whatever else is running, and the schedule does not notice."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.api.jobs.conftest import MakeTimers
from tests.api.jobs.timers import REFUSED, Timers
from tests.kit.clock import START
from tests.kit.script import Reply

MINUTE = timedelta(minutes=1)


async def test_run_now_runs_at_once_and_leaves_the_next_run_alone(any_timers: Timers) -> None:
    """K-71, K-94, K-102, X-51, on every store."""
    timers = any_timers
    made = await timers.every("1m")
    await timers.advance("20s")
    await timers.do(made, "run-now")
    assert timers.sink.count == 1
    seen = await timers.look(made)
    assert seen["next_run_at"] == made["next_run_at"] == "2030-01-01T12:01:00Z"
    assert (seen["last_status"], seen["last_run_at"]) == ("success", "2030-01-01T12:00:20Z")
    await timers.advance("40s")
    assert timers.sink.times == [START + timedelta(seconds=20), START + MINUTE]


async def test_run_now_does_not_wait_for_a_scheduled_run(any_timers: Timers) -> None:
    """K-58, X-49: twenty beside a run that is under way; none is refused."""
    timers = any_timers
    timers.sink.replies(Reply(hangs=True))
    made = await timers.every("1m", timeout="1h")
    await timers.advance("1m")
    for _ in range(20):
        await timers.do(made, "run-now")
    assert timers.sink.count == 21


async def test_a_long_run_now_does_not_cost_a_scheduled_fire(any_timers: Timers) -> None:
    """K-71, X-44, X-49: only a scheduled run keeps ticks off."""
    timers = any_timers
    timers.sink.replies(Reply(hangs=True))
    made = await timers.every("1m", timeout="1h")
    await timers.do(made, "run-now")
    await timers.advance("3m")
    assert [run["status"] for run in await timers.history(made)] == ["running", "success", "success", "success"]


async def test_a_long_run_now_does_not_cost_a_once(timers: Timers) -> None:
    """K-31, K-71"""
    timers.sink.replies(Reply(hangs=True))
    made = await timers.once(timers.now + MINUTE, timeout="1h")
    await timers.do(made, "run-now")
    await timers.advance("1m")
    assert [run["status"] for run in await timers.history(made)] == ["running", "success"]


async def test_run_now_of_a_finished_once_does_not_bring_it_back(timers: Timers) -> None:
    """K-32, K-71"""
    made = await timers.once(timers.now + MINUTE)
    await timers.advance("1m")
    await timers.do(made, "run-now")
    await timers.advance("1h")
    assert timers.sink.count == 2
    assert (await timers.look(made))["next_run_at"] == ""


async def test_a_paused_timer_can_be_run_now(timers: Timers) -> None:
    """X-50: manual means manual; it stays paused, and shows how the run went."""
    made = await timers.every("1m", enabled=False)
    await timers.advance("1s")
    await timers.do(made, "run-now")
    assert timers.sink.count == 1
    seen = await timers.look(made)
    assert (seen["enabled"], seen["next_run_at"], seen["last_status"]) == (False, "", "success")


async def test_what_is_shown_of_many_runs_at_once_is_one_of_them(make_timers: MakeTimers) -> None:
    """K-58, K-102: 20 at once, good and bad by turns; status and error always belong together."""
    timers = await make_timers(workers=4)
    made = await timers.every("1h")
    timers.sink.replies(*[Reply(REFUSED) if n % 2 else Reply() for n in range(20)])
    path = f"/jobs/{made['id']}/run-now"
    answers = await asyncio.gather(*(timers.client.post(path) for _ in range(20)))
    assert [answer.status for answer in answers] == [200] * 20
    assert len({answer.json()["run_id"] for answer in answers}) == 20
    await timers.settle()
    seen = await timers.look(made)
    assert (seen["last_status"], seen["last_error"]) in [("success", ""), ("failed", "answered 404")]
    newest = (await timers.history(made))[-1]
    assert (seen["last_status"], seen["last_error"]) == (newest["status"], newest["error"])
    assert len(await timers.history(made)) == 20


async def test_the_run_that_started_last_has_the_last_word(timers: Timers) -> None:
    """K-58, X-52: a run that started earlier and ends later does not overwrite it."""
    timers.sink.replies(Reply(after=timedelta(seconds=30)), Reply(REFUSED))
    made = await timers.every("1h", timeout="1m")
    await timers.do(made, "run-now")
    await timers.advance("10s")
    await timers.do(made, "run-now")
    await timers.advance("1m")
    seen = await timers.look(made)
    assert (seen["last_status"], seen["last_run_at"]) == ("failed", "2030-01-01T12:00:10Z")


async def test_every_run_has_an_id_of_its_own(timers: Timers) -> None:
    """K-52"""
    made = await timers.every("1s")
    await timers.advance("10s")
    for _ in range(5):
        await timers.do(made, "run-now")
    assert len({delivery.run_id for delivery in timers.sink.deliveries}) == 15
