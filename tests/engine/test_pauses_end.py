"""A pause that is to end at an instant ends at it, whoever is there by then."""

from datetime import timedelta

import pytest

from ksana.domain.audit import AuditQuery
from ksana.domain.errors import InvalidArgument
from ksana.domain.policies import MisfireRule
from ksana.domain.states import Reason, State
from tests.kit.world import World

MINUTE = timedelta(minutes=1)


async def test_a_job_paused_until_an_instant_resumes_at_it(any_world: World) -> None:
    world, start = any_world, any_world.now
    job = await world.job(every="1m")
    await world.advance("90s")
    paused = await world.pause(job, until=start + 10 * MINUTE, reason="moving house")
    assert (paused.enabled, paused.resumes_at, paused.pause_reason) == (False, start + 10 * MINUTE, "moving house")
    await world.advance("8m29s")
    assert world.sink.slots == [start + MINUTE]
    await world.advance("2m1s")
    # The slot at the very end of the pause counts; those within it are one gap.
    assert world.sink.slots == [start + MINUTE * k for k in (1, 10, 11, 12)]
    [gap] = await world.gaps(job)
    assert (gap.from_at, gap.to_at, gap.count, gap.reason) == (start + 2 * MINUTE, start + 9 * MINUTE, 8, Reason.PAUSED)
    resumed = await world.main.engine.jobs.get(job.id)
    assert (resumed.enabled, resumed.paused_at, resumed.paused_until, resumed.pause_reason) == (True, None, None, "")
    entries = (await world.store.find_audit(AuditQuery())).items
    assert [(entry.action, entry.actor) for entry in entries] == [("job.resume", "scheduler")]


async def test_the_end_of_a_pause_survives_a_restart(any_world: World) -> None:
    world, start = any_world, any_world.now
    job = await world.job(every="1m")
    await world.pause(job, until=start + 5 * MINUTE)
    await world.restart()
    await world.advance("6m")
    assert world.sink.slots == [start + 5 * MINUTE, start + 6 * MINUTE]


@pytest.mark.parametrize(("rule", "slots"), [(MisfireRule.SKIP, [10]), (MisfireRule.CATCH_UP, [5, 6, 7, 8, 9, 10])])
async def test_what_came_due_after_the_pause_while_nobody_was_there_is_up_to_the_misfire_rule(
    world: World, rule: MisfireRule, slots: list[int]
) -> None:
    start = world.now
    job = await world.job(every="1m", misfire=rule, catch_up=10)
    await world.pause(job, until=start + 5 * MINUTE)
    await world.stop()
    world.clock.move_to(start + 10 * MINUTE)
    await world.node("a")
    await world.settle()
    assert [run.planned_at for run in await world.runs(job)] == [start + MINUTE * k for k in slots]
    gaps = {gap.reason: gap.count for gap in await world.gaps(job)}
    assert gaps[Reason.PAUSED] == 4


async def test_a_pause_may_be_told_another_end_or_none(world: World) -> None:
    start = world.now
    job = await world.job(every="1m")
    await world.pause(job, until=start + 2 * MINUTE, reason="first")
    again = await world.pause(job, until=start + 4 * MINUTE)
    assert (again.paused_at, again.pause_reason) == (start, "first")
    await world.advance("3m")
    assert world.sink.count == 0
    assert (await world.pause(job, reason="for good")).resumes_at is None
    await world.advance("10m")
    assert world.sink.count == 0
    with pytest.raises(InvalidArgument, match="has passed"):
        await world.pause(job, until=world.now)


async def test_a_job_resumed_by_hand_or_deleted_is_left_alone_at_the_end(world: World) -> None:
    start = world.now
    by_hand, gone = await world.job(every="1m"), await world.job(every="1m")
    for job in (by_hand, gone):
        await world.pause(job, until=start + 5 * MINUTE)
    resumed = await world.resume(by_hand)
    await world.main.engine.jobs.delete(gone.id)
    await world.advance("6m")
    assert (await world.main.engine.jobs.get(by_hand.id)).version == resumed.version
    assert await world.runs(gone) == []
    assert await world.states(by_hand) == [State.SUCCESS] * 6


async def test_the_loops_of_a_node_wake_for_the_end_of_a_pause(world: World) -> None:
    start = world.now
    job = await world.job(every="1h")
    async with world.started():
        await world.pass_time("3s")
        await world.pause(job, until=start + timedelta(seconds=4.25))
        await world.pass_time("1.25s")
        assert world.now == start + timedelta(seconds=4.25)
        assert (await world.main.engine.jobs.get(job.id)).enabled
