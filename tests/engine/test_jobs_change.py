"""What people do to jobs takes hold with the answer, and every slot still leaves a trace."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from ksana.domain.errors import InvalidArgument, NotFound, VersionConflict
from ksana.domain.jobs import TargetSpec
from ksana.domain.policies import OverlapRule, Retry
from ksana.domain.schedules import Every, Once
from ksana.domain.states import Reason, State
from tests.kit.script import RETRY, Reply
from tests.kit.world import World

MINUTE = timedelta(minutes=1)


async def test_a_pause_cancels_what_has_not_started_and_plans_nothing(any_world: World) -> None:
    world = any_world
    job = await world.job(every="1m", overlap=OverlapRule.QUEUE, timeout="1h")
    world.sink.replies(Reply(hangs=True))
    await world.advance("3m")
    paused = await world.pause(job)
    running, *others = await world.runs(job)
    assert running.state is State.RUNNING
    assert [(run.state, run.reason) for run in others] == [(State.CANCELED, Reason.PAUSED)] * 2
    assert (paused.next_slot_at, paused.next_fire_at) == (None, None)
    await world.advance("1h")
    assert world.sink.count == 1


async def test_a_run_under_way_may_finish_though_its_job_is_paused(world: World) -> None:
    job = await world.job(every="1m", timeout="1h")
    world.sink.replies(Reply(hangs=True))
    await world.advance("1m")
    await world.pause(job)
    [run] = await world.runs(job)
    await world.answer(run)
    assert await world.states(job) == [State.SUCCESS]


async def test_resuming_records_what_the_pause_left_out_as_one_gap(any_world: World) -> None:
    world, start = any_world, any_world.now
    job = await world.job(every="1m")
    await world.advance("2m30s")
    await world.pause(job)
    await world.advance("1h")
    await world.resume(job)
    [gap] = await world.gaps(job)
    assert (gap.from_at, gap.to_at, gap.count) == (start + MINUTE * 3, start + MINUTE * 62, 60)
    assert gap.reason is Reason.PAUSED
    await world.advance("1m")
    assert world.sink.slots == [start + MINUTE * k for k in (1, 2, 63)]


async def test_a_pause_between_two_slots_leaves_no_gap(world: World) -> None:
    job = await world.job(every="1m")
    await world.advance("90s")
    await world.pause(job)
    await world.resume(job)
    await world.advance("1m")
    assert await world.gaps(job) == []
    assert world.sink.count == 2


async def test_slots_that_came_due_unseen_before_a_pause_are_recorded(any_world: World) -> None:
    world, start = any_world, any_world.now
    job = await world.job(every="1m")
    # Nobody fires: time passes, and somebody pauses before the planner looks.
    world.clock.move_to(start + MINUTE * 5)
    await world.pause(job)
    await world.advance("5m")
    await world.resume(job)
    owed, paused = await world.gaps(job)
    assert (owed.from_at, owed.to_at, owed.count) == (start + MINUTE, start + MINUTE * 5, 5)
    assert (paused.from_at, paused.to_at, paused.count) == (start + MINUTE * 6, start + MINUTE * 10, 5)


async def test_a_slot_whose_jitter_is_not_over_when_its_job_is_paused_is_recorded(world: World) -> None:
    start = world.now
    job = await world.job(every="1h", jitter="59m")
    fire_at = (await world.get(job)).next_fire_at
    assert fire_at is not None
    world.clock.move_to(fire_at - timedelta(microseconds=1))
    await world.pause(job)
    [gap] = await world.gaps(job)
    assert (gap.from_at, gap.count, gap.reason) == (start + timedelta(hours=1), 1, Reason.PAUSED)


async def test_what_the_old_schedule_still_owed_is_recorded_when_it_is_changed(world: World) -> None:
    start = world.now
    job = await world.job(every="1m")
    world.clock.move_to(start + MINUTE * 5)
    await world.change(job, schedule=Every(timedelta(hours=1), world.now))
    [gap] = await world.gaps(job)
    assert (gap.from_at, gap.to_at, gap.count) == (start + MINUTE, start + MINUTE * 5, 5)
    assert world.sink.count == 0


async def test_a_once_whose_time_passed_in_a_pause_is_missed_and_does_not_fire(world: World) -> None:
    job = await world.job(once="10m")
    await world.pause(job)
    await world.advance("1h")
    assert await world.runs(job) == []
    await world.resume(job)
    await world.advance("1h")
    [run] = await world.runs(job)
    assert (run.state, run.slot_at, world.sink.count) == (State.MISSED, job.next_slot_at, 0)
    assert (await world.get(job)).next_slot_at is None


async def test_a_once_that_ran_is_not_planned_again_by_a_pause(world: World) -> None:
    job = await world.job(once="10m")
    await world.advance("10m")
    await world.pause(job)
    await world.advance("1h")
    await world.resume(job)
    assert (await world.get(job)).next_slot_at is None
    assert await world.states(job) == [State.SUCCESS]


async def test_a_once_given_a_past_instant_while_paused_and_resumed_with_it_is_missed(world: World) -> None:
    job = await world.job(every="1h", enabled=False)
    await world.change(job, enabled=True, schedule=Once(world.now - MINUTE))
    await world.advance("1m")
    assert await world.states(job) == [State.MISSED]
    assert world.sink.count == 0


async def test_pausing_a_paused_job_changes_nothing(world: World) -> None:
    job = await world.job(every="1m")
    paused = await world.pause(job)
    assert await world.pause(job) == paused


async def test_a_paused_job_can_be_triggered(world: World) -> None:
    job = await world.job(every="1m")
    await world.pause(job)
    assert (await world.trigger(job)).state is State.SUCCESS


async def test_a_run_that_is_tried_again_outlives_a_pause(world: World) -> None:
    job = await world.job(retry=Retry(2, initial_delay=MINUTE))
    world.sink.replies(RETRY)
    run = await world.trigger(job)
    await world.pause(job)
    await world.advance("1m")
    assert (await world.run(run.id)).state is State.SUCCESS


async def test_a_deleted_job_starts_nothing_any_more(any_world: World) -> None:
    world = any_world
    job = await world.job(every="1m", retry=Retry(5, initial_delay=timedelta(seconds=30)))
    world.sink.replies(RETRY)
    await world.advance("1m")
    await world.main.engine.jobs.delete(job.id)
    await world.advance("1h")
    [run] = await world.runs(job)
    assert (run.state, run.reason, world.sink.count) == (State.CANCELED, Reason.DELETED, 1)
    with pytest.raises(NotFound):
        await world.main.engine.jobs.get(job.id)
    with pytest.raises(NotFound):
        await world.trigger(job)


async def test_a_changed_schedule_is_planned_anew(any_world: World) -> None:
    world, start = any_world, any_world.now
    job = await world.job(every="1h")
    await world.advance("30m")
    await world.change(job, schedule=Every(timedelta(minutes=10), world.now))
    await world.advance("30m")
    assert world.sink.slots == [start + MINUTE * k for k in (40, 50, 60)]
    assert await world.gaps(job) == []


async def test_a_change_of_anything_else_keeps_the_cursor(any_world: World) -> None:
    world, start = any_world, any_world.now
    job = await world.job(every="1h")
    await world.advance("30m")
    changed = await world.change(job, name="another name")
    assert changed.version == job.version + 1
    await world.advance("30m")
    assert world.sink.slots == [start + timedelta(hours=1)]
    assert world.sink.deliveries[0].context.job_name == "another name"


async def test_a_change_does_not_bring_a_cursor_back_that_moved_meanwhile(world: World) -> None:
    job = await world.job(every="1m")
    node = world.main

    async def fire_first() -> None:
        await world.advance("1m")

    node.gate.before["change_jobs"] = fire_first
    await world.change(job, name="another name")
    await world.advance("1m")
    assert len(set(world.sink.slots)) == world.sink.count == 2


async def test_a_pause_that_races_with_a_fire_records_no_slot_twice(any_world: World) -> None:
    world = any_world
    job = await world.job(every="1m")

    async def fire_first() -> None:
        await world.settle()

    # The slot is due when the pause reads the job, and fired before the pause is stored.
    world.clock.move_to(world.now + MINUTE)
    world.main.gate.before["change_jobs"] = fire_first
    await world.pause(job)
    assert len(await world.runs(job)) == 1
    assert await world.gaps(job) == []


async def test_a_once_can_be_armed_again(world: World) -> None:
    job = await world.job(once="1m")
    await world.advance("2m")
    await world.change(job, schedule=Once(world.now + MINUTE))
    await world.advance("2m")
    assert await world.states(job) == [State.SUCCESS] * 2


async def test_switching_off_and_on_by_a_change_is_a_pause(world: World) -> None:
    job = await world.job(every="1m")
    await world.change(job, enabled=False)
    await world.advance("10m")
    await world.change(job, enabled=True, schedule=Every(timedelta(hours=1), world.now))
    [gap] = await world.gaps(job)
    assert (gap.count, gap.reason) == (10, Reason.PAUSED)


async def test_a_change_asked_for_at_an_old_version_is_refused(world: World) -> None:
    job = await world.job(every="1m")
    await world.change(job, name="another name")
    with pytest.raises(VersionConflict):
        await world.main.engine.jobs.change(job.id, lambda job: msgspec.structs.replace(job, name="x"), version=1)


async def test_of_many_changes_at_once_that_name_no_version_none_is_refused(world: World) -> None:
    job = await world.job(every="1m")
    tags = [str(n) for n in range(30)]

    async def add(tag: str) -> None:
        await world.main.engine.jobs.change(job.id, lambda job: msgspec.structs.replace(job, tags=[*job.tags, tag]))

    await asyncio.gather(*map(add, tags))
    [stored] = await world.main.engine.store.get_jobs([job.id])
    assert (stored.version, sorted(stored.tags)) == (31, sorted(tags))


async def test_an_unknown_target_is_refused_with_the_ones_there_are(world: World) -> None:
    with pytest.raises(InvalidArgument) as refused:
        await world.job(target=TargetSpec("telegraph"), name="")
    assert [problem.field for problem in refused.value.problems] == ["name", "target.kind"]
    assert "script" in refused.value.message


async def test_a_config_the_target_refuses_is_refused(world: World) -> None:
    with pytest.raises(InvalidArgument, match=r"target\.config\.colour"):
        await world.job(target=TargetSpec("script", {"colour": "red"}))
