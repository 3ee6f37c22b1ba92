"""A run that fails is tried again as its job says, and how often it failed survives everything."""

from datetime import timedelta

from ksana.domain.outcomes import Outcome, Verdict
from ksana.domain.policies import Retry, RetryStrategy
from ksana.domain.states import State
from tests.kit.script import FAIL, RETRY, TIMED_OUT, Reply
from tests.kit.world import World


def seconds(world: World) -> list[float]:
    """How long after the first delivery each came."""
    times = world.sink.times
    return [(at - times[0]).total_seconds() for at in times]


async def test_a_fixed_rest_lies_between_the_attempts(any_world: World) -> None:
    world = any_world
    job = await world.job(retry=Retry(max_attempts=3, initial_delay=timedelta(seconds=7)))
    world.sink.always = Reply(RETRY)
    run = await world.trigger(job)
    assert (run.state, run.failures) == (State.RETRYING, 1)
    await world.advance("1m")
    assert seconds(world) == [0, 7, 14]
    run = await world.run(run.id)
    assert (run.state, run.failures, run.attempt, run.error) == (State.FAILED, 3, 3, "said not now")
    assert [attempt.number for attempt in await world.attempts(run)] == [1, 2, 3]


async def test_an_exponential_rest_grows_to_its_cap(world: World) -> None:
    retry = Retry(6, RetryStrategy.EXPONENTIAL, timedelta(seconds=1), 2.0, timedelta(seconds=5))
    job = await world.job(retry=retry)
    world.sink.always = Reply(RETRY)
    await world.trigger(job)
    await world.advance("1m")
    assert seconds(world) == [0, 1, 3, 7, 12, 17]


async def test_the_target_may_ask_for_a_longer_rest_up_to_the_cap(world: World) -> None:
    job = await world.job(retry=Retry(4, initial_delay=timedelta(seconds=5), max_delay=timedelta(seconds=60)))
    asked = [Outcome(Verdict.RETRY, retry_after=timedelta(seconds=s)) for s in (1, 20, 3600)]
    world.sink.replies(*asked)
    await world.trigger(job)
    await world.advance("5m")
    assert seconds(world) == [0, 5, 25, 85]


async def test_a_rest_survives_a_restart(any_world: World) -> None:
    world = any_world
    job = await world.job(retry=Retry(3, initial_delay=timedelta(minutes=10)))
    world.sink.replies(RETRY, RETRY)
    run = await world.trigger(job)
    await world.advance("5m")
    await world.restart()
    await world.advance("20m")
    assert seconds(world) == [0, 600, 1200]
    assert (await world.run(run.id)).state is State.SUCCESS
    assert {delivery.planned_at for delivery in world.sink.deliveries} == {run.planned_at}


async def test_a_plain_no_is_not_tried_again(world: World) -> None:
    job = await world.job(retry=Retry(5))
    world.sink.replies(FAIL)
    run = await world.trigger(job)
    await world.advance("1h")
    assert ((await world.run(run.id)).state, world.sink.count) == (State.FAILED, 1)


async def test_a_run_whose_last_attempt_timed_out_ends_as_timeout(world: World) -> None:
    job = await world.job(retry=Retry(2, initial_delay=timedelta(seconds=1)))
    world.sink.replies(RETRY, TIMED_OUT)
    run = await world.trigger(job)
    await world.advance("1m")
    assert (await world.run(run.id)).state is State.TIMEOUT


async def test_every_attempt_has_a_higher_fence(world: World) -> None:
    job = await world.job(retry=Retry(5, initial_delay=timedelta(seconds=1)))
    world.sink.always = Reply(RETRY)
    await world.trigger(job)
    await world.advance("1m")
    fences = [delivery.context.fence for delivery in world.sink.deliveries]
    assert fences == sorted(set(fences))
    assert len(fences) == 5


async def test_losing_a_worker_is_not_counted_as_a_failure(world: World) -> None:
    job = await world.job(retry=Retry(2, initial_delay=timedelta(seconds=1)), timeout="10m")
    world.sink.replies(Reply(hangs=True), RETRY)
    run = await world.trigger(job)
    await world.restart()
    await world.advance("1m")
    run = await world.run(run.id)
    assert (run.state, run.failures, run.reclaims, run.attempt) == (State.SUCCESS, 1, 1, 3)
