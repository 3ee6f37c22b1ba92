"""Somebody sets the wall clock: no slot fires twice, no lease is judged by it, and it is noticed."""

from datetime import UTC, datetime, timedelta

from ksana.domain.states import State
from ksana.engine.clock import ClockWatch
from tests.kit.script import Reply
from tests.kit.world import World

HOUR = timedelta(hours=1)


async def test_a_clock_set_back_fires_no_slot_twice(any_world: World) -> None:
    world = any_world
    job = await world.job(every="1m")
    await world.advance("10m")
    world.main.clock.set_off(-timedelta(minutes=5))
    await world.advance("20m")
    assert len(set(world.sink.slots)) == world.sink.count
    assert len(await world.runs(job)) == world.sink.count
    assert world.main.diary.jumps == [-timedelta(minutes=5)]


async def test_a_schedule_made_again_while_the_clock_is_back_fires_no_slot_twice(world: World) -> None:
    job = await world.job(every="1m")
    await world.advance("10m")
    world.main.clock.set_off(-timedelta(minutes=5))
    await world.pause(job)
    await world.resume(job)
    for _ in range(20):
        await world.advance("30s")
    assert len(set(world.sink.slots)) == world.sink.count


async def test_a_clock_set_forward_misfires_what_it_jumped_over(world: World) -> None:
    job = await world.job(every="1m")
    await world.advance("90s")
    world.main.clock.set_off(HOUR)
    await world.advance("1s")
    assert world.main.diary.jumps == [HOUR]
    assert len(await world.runs(job)) + sum(gap.count for gap in await world.gaps(job)) == 61


async def test_a_clock_set_forward_does_not_take_runs_from_living_nodes(any_world: World) -> None:
    world = any_world
    job = await world.job(timeout="3h")
    world.sink.replies(Reply(hangs=True))
    run = await world.trigger(job)
    b = await world.node("b")
    await world.advance("5s")
    b.clock.set_off(timedelta(seconds=30))
    # The reaper happens to be the first to look.
    await b.engine.reaper.attend()
    await world.advance("5s")
    assert ((await world.run(run.id)).state, world.sink.count) == (State.RUNNING, 1)


def test_a_clock_that_keeps_step_with_real_time_has_not_jumped() -> None:
    ticks = iter([100.0, 160.0, 161.0, 162.0])
    watch = ClockWatch(lambda: next(ticks))
    at = datetime(2030, 1, 1, tzinfo=UTC)
    assert watch.jump(at) is None
    assert watch.jump(at + timedelta(seconds=60.5)) is None
    assert watch.jump(at + timedelta(seconds=61.5) + HOUR) == HOUR
    assert watch.jump(at) == -HOUR - timedelta(seconds=62.5)
