"""What becomes of slots found too late: each gets a run or lies in one gap, as the job's misfire rule says."""

from datetime import datetime, timedelta

import pytest

from ksana.domain.fires import Lateness
from ksana.domain.policies import MisfireRule
from ksana.domain.runs import Trigger
from ksana.domain.states import Reason
from tests.engine.conftest import Create
from tests.kit.world import World

MINUTE = timedelta(minutes=1)
# A little after the hour, so that no slot of a whole minute is fresh when the node comes back.
LATE = timedelta(minutes=60, seconds=30)


def slots(world: World, start: datetime, first: int, last: int) -> list[datetime]:
    return [start + MINUTE * k for k in range(first, last + 1)]


async def test_skip_leaves_out_all_of_them_in_one_gap(any_world: World) -> None:
    world, start = any_world, any_world.now
    job = await world.job(every="1m", misfire=MisfireRule.SKIP)
    await world.down_for(LATE)
    assert world.sink.count == 0
    [gap] = await world.gaps(job)
    assert (gap.from_at, gap.to_at, gap.count) == (start + MINUTE, start + MINUTE * 60, 60)
    assert gap.reason is Reason.MISFIRE
    await world.advance("1m")
    assert world.sink.slots == [start + MINUTE * 61]


async def test_fire_once_runs_the_newest(any_world: World) -> None:
    world, start = any_world, any_world.now
    job = await world.job(every="1m", misfire=MisfireRule.FIRE_ONCE)
    await world.down_for(LATE)
    assert world.sink.slots == [start + MINUTE * 60]
    [gap] = await world.gaps(job)
    assert (gap.from_at, gap.to_at, gap.count) == (start + MINUTE, start + MINUTE * 59, 59)
    [run] = await world.runs(job)
    assert run.trigger is Trigger.CATCH_UP


async def test_catch_up_runs_the_newest_few_in_order(any_world: World) -> None:
    world, start = any_world, any_world.now
    job = await world.job(every="1m", misfire=MisfireRule.CATCH_UP, catch_up=3)
    await world.down_for(LATE)
    assert world.sink.slots == slots(world, start, 58, 60)
    [gap] = await world.gaps(job)
    assert (gap.from_at, gap.to_at, gap.count) == (start + MINUTE, start + MINUTE * 57, 57)
    assert gap.reason is Reason.CATCH_UP_LIMIT


async def test_catch_up_of_more_than_were_missed_runs_all_and_leaves_no_gap(world: World) -> None:
    start = world.now
    job = await world.job(every="1m", misfire=MisfireRule.CATCH_UP, catch_up=100)
    await world.down_for(LATE)
    assert world.sink.slots == slots(world, start, 1, 60)
    assert await world.gaps(job) == []


async def test_catch_up_of_none_is_the_same_as_skip(world: World) -> None:
    job = await world.job(every="1m", misfire=MisfireRule.CATCH_UP, catch_up=0)
    await world.down_for(LATE)
    assert world.sink.count == 0
    [gap] = await world.gaps(job)
    assert gap.count == 60


@pytest.mark.parametrize("late_by", [timedelta(seconds=5), timedelta(seconds=5, microseconds=1)])
async def test_a_slot_is_a_misfire_only_past_the_threshold(world: World, late_by: timedelta) -> None:
    job = await world.job(every="1m", misfire=MisfireRule.SKIP)
    await world.down_for(MINUTE + late_by)
    is_misfire = late_by > timedelta(seconds=5)
    assert world.sink.count == (not is_misfire)
    assert len(await world.gaps(job)) == is_misfire


async def test_a_fresh_slot_runs_though_older_ones_were_misfires(world: World) -> None:
    start = world.now
    job = await world.job(every="1m", misfire=MisfireRule.SKIP)
    await world.down_for(MINUTE * 60 + timedelta(seconds=2))
    assert world.sink.slots == [start + MINUTE * 60]
    [gap] = await world.gaps(job)
    assert gap.count == 59
    [run] = await world.runs(job)
    assert run.trigger is Trigger.SCHEDULE


async def test_a_single_misfire_is_a_gap_of_one(world: World) -> None:
    start = world.now
    job = await world.job(every="1m", misfire=MisfireRule.SKIP)
    await world.down_for("90s")
    [gap] = await world.gaps(job)
    assert (gap.from_at, gap.to_at, gap.count) == (start + MINUTE, start + MINUTE, 1)


async def test_the_threshold_can_be_set(create_world: Create) -> None:
    world = await create_world(lateness=Lateness(timedelta(minutes=10)))
    await world.job(every="1m", misfire=MisfireRule.SKIP)
    await world.down_for("9m")
    assert world.sink.count == 9


async def test_more_fresh_slots_than_one_decision_may_make_leave_a_gap(create_world: Create) -> None:
    world = await create_world(lateness=Lateness(timedelta(hours=1)))
    job = await world.job(every="100ms")
    await world.down_for("200s")
    runs, gaps = await world.runs(job), await world.gaps(job)
    assert len(runs) + sum(gap.count for gap in gaps) == 2000
    assert gaps[0].to_at < min(run.planned_at for run in runs)


async def test_many_jobs_that_catch_up_a_lot_outlast_the_ids_at_hand(create_world: Create) -> None:
    world = await create_world(workers=500)
    jobs = [await world.job(every="1m", misfire=MisfireRule.CATCH_UP, catch_up=1000) for _ in range(4)]
    await world.down_for(MINUTE * 1200 + timedelta(seconds=30))
    await world.advance("10s")
    for job in jobs:
        assert len(await world.runs(job)) == 1000
        [gap] = await world.gaps(job)
        assert gap.count == 200
    assert len({d.run_id for d in world.sink.deliveries}) == world.sink.count == 4000


async def test_a_misfired_cron_counts_its_gap_without_visiting_every_slot(world: World) -> None:
    job = await world.job(cron="* * * * *", misfire=MisfireRule.FIRE_ONCE)
    await world.down_for(timedelta(days=365, seconds=30))
    [gap] = await world.gaps(job)
    assert gap.count == 365 * 24 * 60 - 1
