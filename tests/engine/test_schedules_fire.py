"""Slots become runs on time, once each, and the grid does not drift."""

from datetime import UTC, datetime, timedelta

import pytest

from ksana.domain.states import Reason, State
from tests.engine.conftest import Create
from tests.kit.script import Reply
from tests.kit.world import World

SECOND = timedelta(seconds=1)


async def test_every_fires_once_per_interval(any_world: World) -> None:
    await any_world.job(every="1s")
    await any_world.advance("2s")
    assert any_world.sink.count == 2


async def test_a_once_runs_on_time_and_exactly_once(any_world: World) -> None:
    world = any_world
    job = await world.job(once="90s")
    planned = world.now + timedelta(seconds=90)
    await world.advance("1h")
    assert world.sink.times == world.sink.slots == [planned]
    assert await world.states(job) == [State.SUCCESS]
    assert (await world.get(job)).next_fire_at is None


async def test_a_once_found_within_its_grace_still_runs(world: World) -> None:
    job = await world.job(once=world.now - SECOND)
    assert await world.states(job) == [State.SUCCESS]


async def test_a_once_found_later_than_its_grace_is_marked_missed(world: World) -> None:
    job = await world.job(once=world.now - SECOND - timedelta(microseconds=1))
    [run] = await world.runs(job)
    assert (run.state, run.reason) == (State.MISSED, Reason.MISFIRE)
    assert world.sink.count == 0


async def test_a_once_that_ran_is_never_missed_after_a_restart(any_world: World) -> None:
    job = await any_world.job(once="1s")
    await any_world.advance("2s")
    await any_world.down_for("1h")
    await any_world.restart()
    assert await any_world.states(job) == [State.SUCCESS]
    assert any_world.sink.count == 1


async def test_a_once_that_came_due_while_nobody_was_there_is_missed(any_world: World) -> None:
    job = await any_world.job(once="10s")
    await any_world.down_for("1m")
    assert await any_world.states(job) == [State.MISSED]


async def test_waiting_for_a_free_worker_is_lateness_and_no_misfire(create_world: Create) -> None:
    world = await create_world(workers=1)
    world.sink.always = Reply(after=timedelta(seconds=30))
    jobs = [await world.job(once="1s", timeout="1m") for _ in range(3)]
    await world.advance("2m")
    assert [await world.states(job) for job in jobs] == [[State.SUCCESS]] * 3


async def test_the_grid_does_not_drift_over_hundreds_of_slots(quick_world: World) -> None:
    world = quick_world
    start = world.now
    await world.job(every="7.3s")
    await world.advance(timedelta(seconds=7.3) * 400)
    expected = [start + timedelta(seconds=7.3) * k for k in range(1, 401)]
    assert world.sink.slots == expected
    assert world.sink.times == expected


async def test_short_intervals_found_together_get_a_run_each(quick_world: World) -> None:
    world = quick_world
    job = await world.job(every="100ms")
    for _ in range(100):
        world.clock.move_to(world.now + SECOND)
        await world.settle()
    runs = await world.runs(job)
    assert len(runs) == 1000
    assert len({run.slot_at for run in runs}) == 1000
    assert await world.gaps(job) == []


async def test_a_run_that_takes_long_does_not_shift_the_next(world: World) -> None:
    start = world.now
    await world.job(every="10s")
    world.sink.replies(*[Reply(after=timedelta(seconds=3))] * 5)
    await world.advance("50s")
    assert world.sink.times == [start + timedelta(seconds=10 * k) for k in range(1, 6)]


async def test_jitter_delays_within_its_bound_and_does_not_accumulate(world: World) -> None:
    start = world.now
    await world.job(every="1m", jitter="20s")
    await world.advance("100m30s")
    assert world.sink.slots == [start + timedelta(minutes=k) for k in range(1, 101)]
    delays = [d.at - d.planned_at for d in world.sink.deliveries]
    assert all(timedelta(0) <= delay < timedelta(seconds=20) for delay in delays)
    assert len(set(delays)) > 50


async def test_nothing_fires_before_start_or_after_end(world: World) -> None:
    start = world.now + timedelta(minutes=5)
    job = await world.job(every="1m", start=start, end=start + timedelta(minutes=2))
    await world.advance("1h")
    assert world.sink.slots == [start + timedelta(minutes=k) for k in range(3)]
    assert (await world.get(job)).next_slot_at is None


async def test_a_new_schedule_waits_for_its_next_occurrence(world: World) -> None:
    await world.job(cron="0 0 * * *")
    await world.advance("11h")
    assert world.sink.count == 0
    await world.advance("2h")
    assert world.sink.slots == [datetime(2030, 1, 2, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        # The clocks of Berlin go from 02:00 to 03:00; a time that does not exist fires when the gap ends.
        ("2030-03-30T12:00Z", ["2030-03-31T01:00Z", "2030-04-01T00:30Z"]),
        # They go from 03:00 back to 02:00; a time that occurs twice fires once, the first time.
        ("2030-10-26T12:00Z", ["2030-10-27T00:30Z", "2030-10-28T01:30Z"]),
    ],
)
async def test_a_fixed_time_of_day_fires_once_across_a_change_of_clocks(
    world: World, day: str, expected: list[str]
) -> None:
    world.clock.move_to(datetime.fromisoformat(day))
    await world.job(cron="30 2 * * *", timezone="Europe/Berlin")
    await world.advance("48h")
    assert world.sink.times == [datetime.fromisoformat(at) for at in expected]


@pytest.mark.parametrize("day", ["2030-03-31T00:00Z", "2030-10-27T00:00Z"])
async def test_an_hourly_cron_follows_real_time_through_a_change_of_clocks(world: World, day: str) -> None:
    start = datetime.fromisoformat(day)
    world.clock.move_to(start)
    await world.job(cron="15 * * * *", timezone="Europe/Berlin")
    await world.advance("6h")
    assert world.sink.times == [start + timedelta(hours=k, minutes=15) for k in range(6)]


async def test_a_job_without_a_schedule_runs_only_when_asked(world: World) -> None:
    job = await world.job()
    await world.advance("1h")
    assert world.sink.count == 0
    assert (await world.trigger(job)).state is State.SUCCESS


async def test_an_attempt_is_told_what_it_stands_for(world: World) -> None:
    job = await world.job(every="1m")
    await world.advance("1m")
    [delivery] = world.sink.deliveries
    context = delivery.context
    [run] = await world.runs(job)
    assert (context.run_id, context.job_id, context.attempt, context.fence) == (run.id, job.id, 1, 1)
    assert context.planned_at == run.slot_at


async def test_a_new_job_due_earlier_rearms_the_planner(world: World) -> None:
    await world.job(every="1h")
    await world.job(once="1s")
    await world.advance("1s")
    assert world.sink.count == 1
