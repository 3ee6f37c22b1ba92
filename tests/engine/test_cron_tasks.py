"""What the document of cron tasks asks of the core: misfires, limits, retries and recovery, by its numbers.

That every store bears misfires and limits is shown in test_misfires and test_overlap.
"""

import itertools
from datetime import datetime, timedelta

import pytest

from ksana.domain.errors import ConcurrencyLimit
from ksana.domain.policies import MisfireRule, OnUncertain, OverlapRule, Retry, RetryStrategy
from ksana.domain.runs import Trigger
from ksana.domain.states import Reason, State
from tests.engine.conftest import Create
from tests.kit.clock import START
from tests.kit.script import RETRY, WAIT, Reply
from tests.kit.world import World

EVERY_FIVE_SECONDS = "*/5 * * * * *"


def seconds(times: list[datetime]) -> list[int]:
    return [(later - earlier).seconds for earlier, later in itertools.pairwise(times)]


async def missed_five(world: World, misfire: MisfireRule, catch_up: int = 0) -> list[datetime]:
    """A minutely task whose server was down for five of its slots; the slots that ran, in order."""
    job = await world.job(cron="0 * * * * *", misfire=misfire, catch_up=catch_up)
    await world.advance("90s")
    before = world.sink.count
    await world.down_for("5m")
    ran = world.sink.slots[before:]
    log = await world.gaps(job)
    assert len(ran) + sum(gap.count for gap in log) == 5
    await world.advance("2m")
    assert len(world.sink.slots) - before == len(ran) + 2
    return ran


async def test_fire_now_runs_the_latest_missed_slot_once(world: World) -> None:
    """C-35, X-61: one immediate run for the newest missed point, then the normal cadence."""
    [slot] = await missed_five(world, MisfireRule.FIRE_ONCE)
    assert slot == START + timedelta(minutes=6)


async def test_skip_runs_nothing_that_was_missed(world: World) -> None:
    """C-36: all five are recorded as misfires."""
    assert await missed_five(world, MisfireRule.SKIP) == []


async def test_catch_up_limited_runs_the_newest_few_in_order(world: World) -> None:
    """C-37, X-60: three of five, each with its own planned time."""
    ran = await missed_five(world, MisfireRule.CATCH_UP, 3)
    assert ran == [START + timedelta(minutes=minute) for minute in (4, 5, 6)]


async def test_a_task_of_seconds_fires_every_five_of_them(world: World) -> None:
    """C-29, C-149: six runs in thirty seconds, on multiples of five."""
    await world.job(cron=EVERY_FIVE_SECONDS)
    await world.advance("30s")
    assert len(world.sink.slots) == 6
    assert {slot.second % 5 for slot in world.sink.slots} == {0}


async def test_a_limit_of_zero_is_always_full(world: World) -> None:
    """C-41, C-42, C-44, C-150: a trigger is refused and makes no run, a planned slot becomes a SKIPPED run."""
    job = await world.job(cron=EVERY_FIVE_SECONDS, overlap=OverlapRule.SKIP, max_concurrency=0)
    with pytest.raises(ConcurrencyLimit):
        await world.trigger(job)
    assert await world.runs(job) == []
    await world.advance("12s")
    runs = await world.runs(job)
    assert {(run.state, run.reason, run.attempt) for run in runs} == {(State.SKIPPED, Reason.OVERLAP, 0)}
    assert (len(runs) >= 2, world.sink.count) == (True, 0)


async def test_a_slot_at_the_limit_becomes_a_skipped_run(world: World) -> None:
    """C-41: limit 1, every second, a target that takes three: SKIPPED runs and no request for them."""
    world.sink.always = Reply(after=timedelta(seconds=3))
    job = await world.job(cron="* * * * * *", overlap=OverlapRule.SKIP)
    await world.advance("9s")
    states = await world.states(job)
    assert states.count(State.SKIPPED) == len(states) - world.sink.count
    assert (states.count(State.SKIPPED) >= 5, world.sink.most_at_once[job.id]) == (True, 1)
    slots = [run.slot_at for run in await world.runs(job)]
    assert len(set(slots)) == len(slots)


async def test_runs_past_the_limit_wait_and_go_in_the_order_of_their_ids(world: World) -> None:
    """C-39, C-40, C-45: never more than the limit, first in, first out."""
    world.sink.always = Reply(after=timedelta(seconds=2))
    job = await world.job(overlap=OverlapRule.QUEUE, max_concurrency=2)
    runs = [await world.trigger(job) for _ in range(5)]
    assert [run.state for run in runs] == [State.RUNNING] * 2 + [State.WAITING] * 3
    assert {run.trigger for run in runs} == {Trigger.MANUAL}
    await world.advance("10s")
    assert [delivery.run_id for delivery in world.sink.deliveries] == [run.id for run in runs]
    assert world.sink.most_at_once[job.id] == 2


async def test_a_run_that_rests_or_waits_for_its_callback_keeps_its_slot(world: World) -> None:
    """X-44, X-64: RETRYING and CALLBACK_PENDING hold it."""
    job = await world.job(callback=True, overlap=OverlapRule.QUEUE, retry=Retry(2))
    world.sink.replies(RETRY, WAIT, WAIT)
    first, second = await world.trigger(job), await world.trigger(job)
    assert (first.state, second.state) == (State.RETRYING, State.WAITING)
    await world.advance("10s")
    assert [run.state for run in await world.runs(job)] == [State.CALLBACK_PENDING, State.WAITING]
    await world.call_back(first)
    assert [run.state for run in await world.runs(job)] == [State.SUCCESS, State.CALLBACK_PENDING]


async def test_a_parallel_task_knows_no_limit(world: World) -> None:
    """C-43."""
    world.sink.always = Reply(hangs=True)
    job = await world.job(overlap=OverlapRule.PARALLEL)
    for _ in range(3):
        await world.trigger(job)
    assert world.sink.most_at_once[job.id] == 3


@pytest.mark.parametrize(
    ("strategy", "gaps"), [(RetryStrategy.FIXED, [1, 1, 1, 1]), (RetryStrategy.EXPONENTIAL, [1, 2, 3, 3])]
)
async def test_the_rest_between_attempts_follows_the_formula(
    world: World, strategy: RetryStrategy, gaps: list[int]
) -> None:
    """C-120, C-121, C-122, R14: four retries after the first attempt, initial 1, max 3."""
    retry = Retry(5, strategy, timedelta(seconds=1), 2.0, timedelta(seconds=3))
    world.sink.always = Reply(RETRY)
    run = await world.trigger(await world.job(retry=retry))
    await world.advance("1m")
    run = await world.run(run.id)
    assert (run.state, run.attempt, seconds(world.sink.times)) == (State.FAILED, 5, gaps)


async def test_a_restart_while_resting_still_retries(any_world: World) -> None:
    """C-124: the retry is in the store, not in a timer."""
    world = any_world
    world.sink.replies(RETRY)
    run = await world.trigger(await world.job(retry=Retry(2, initial_delay=timedelta(minutes=5))))
    assert run.state is State.RETRYING
    await world.down_for("1m")
    assert ((await world.run(run.id)).state, world.sink.count) == (State.RETRYING, 1)
    await world.down_for("5m")
    assert ((await world.run(run.id)).state, world.sink.count) == (State.SUCCESS, 2)


async def test_a_deadline_passed_while_nobody_looked_is_found(any_world: World) -> None:
    """C-126, C-144: the sweep survives a restart."""
    world = any_world
    world.sink.replies(WAIT)
    run = await world.trigger(await world.job(callback=True, callback_timeout="2s"))
    await world.down_for("1m")
    ended = await world.run(run.id)
    assert (ended.state, ended.reason) == (State.TIMEOUT, Reason.CALLBACK_TIMEOUT)


@pytest.mark.parametrize(("rule", "state"), [(OnUncertain.RETRY, State.SUCCESS), (OnUncertain.FAIL, State.FAILED)])
async def test_the_setting_of_the_restarted_server_judges_runs_left_behind(
    create_any_world: Create, rule: OnUncertain, state: State
) -> None:
    """C-141: recovery.running, as it is when the run is found; a job that says nothing follows it."""
    world = await create_any_world()
    world.sink.replies(Reply(hangs=True))
    job = await world.job(on_uncertain=None, timeout="1h")
    run = await world.trigger(job)
    world.kill()
    await world.restart(on_uncertain=rule)
    await world.advance("1m")
    run = await world.run(run.id)
    assert (run.state, world.sink.count) == (state, 2 if rule is OnUncertain.RETRY else 1)


async def test_a_job_that_says_what_to_do_is_not_overruled(create_world: Create) -> None:
    world = await create_world(on_uncertain=OnUncertain.FAIL)
    world.sink.replies(Reply(hangs=True), Reply(hangs=True))
    kept = await world.trigger(await world.job(on_uncertain=OnUncertain.RETRY, timeout="1h"))
    left = await world.trigger(await world.job(on_uncertain=None, timeout="1h"))
    await world.stop()
    assert (await world.run(kept.id)).state is State.RETRYING
    assert ((await world.run(left.id)).state, (await world.run(left.id)).reason) == (State.FAILED, Reason.UNCERTAIN)
