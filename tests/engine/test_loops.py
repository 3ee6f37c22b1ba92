"""The loops themselves, at work on the virtual clock: what wakes them, what they survive, how they stop."""

from datetime import timedelta

import pytest

from ksana.domain.errors import StoreUnavailable
from ksana.domain.jobs import TargetSpec
from ksana.domain.policies import OverlapRule, Retry
from ksana.domain.states import State
from ksana.engine.loops import Backoff
from tests.kit.script import RETRY, Reply
from tests.kit.world import World
from tests.stores.builders import a_run, put

MS = timedelta(milliseconds=1)


async def test_a_started_engine_fires_each_slot_on_time(world: World) -> None:
    async with world.started() as engine:
        await engine.jobs.create("test", world.spec(every="700ms"))
        start = world.now
        await world.pass_time("7s")
    assert world.sink.times == [start + 700 * MS * k for k in range(1, 11)]


async def test_a_new_job_that_is_due_earlier_rearms_the_planner(world: World) -> None:
    async with world.started() as engine:
        await engine.jobs.create("test", world.spec(every="10m"))
        await world.pass_time("123ms")
        await engine.jobs.create("test", world.spec(once="50ms"))
        due = world.now + 50 * MS
        await world.pass_time("60ms")
    assert world.sink.times == [due]


async def test_a_trigger_is_taken_up_at_once(world: World) -> None:
    async with world.started() as engine:
        job = await engine.jobs.create("test", world.spec())
        await world.pass_time("5.3s")
        await engine.runs.trigger(job.id)
        triggered_at = world.now
        await world.pass_time("0s")
        assert world.sink.times == [triggered_at]


async def test_a_short_rest_before_a_retry_is_kept_to_the_moment(world: World) -> None:
    async with world.started() as engine:
        job = await engine.jobs.create("test", world.spec(retry=Retry(3, initial_delay=120 * MS)))
        await world.pass_time("5.3s")
        world.sink.replies(RETRY, RETRY)
        await engine.runs.trigger(job.id)
        start = world.now
        await world.pass_time("500ms")
    assert world.sink.times == [start, start + 120 * MS, start + 240 * MS]


async def test_the_next_in_line_goes_when_the_one_before_it_ends(world: World) -> None:
    world.sink.always = Reply(after=30 * MS)
    async with world.started() as engine:
        job = await engine.jobs.create("test", world.spec(overlap=OverlapRule.QUEUE))
        await world.pass_time("5.3s")
        start = world.now
        for _ in range(5):
            await engine.runs.trigger(job.id)
        await world.pass_time("200ms")
    assert world.sink.times == [start + 30 * MS * k for k in range(5)]


async def test_the_loops_outlast_an_outage(world: World) -> None:
    async with world.started() as engine:
        job = await engine.jobs.create("test", world.spec(every="1m"))
        await world.pass_time("30s")
        with world.store_away():
            await world.pass_time("10m")
        assert engine.health.available is False
        await world.pass_time("5s")
        assert engine.health.available is True
        assert world.sink.count == 1
        await world.pass_time("1m")
    assert await world.states(job) == [State.SUCCESS] * 2


async def test_a_store_that_reads_but_does_not_write_is_away_until_it_writes_again(world: World) -> None:
    async with world.started() as engine:
        await engine.jobs.create("test", world.spec(every="10s"))
        with world.store_away("fire_due", "beat"):
            await world.pass_time("1m")
            with pytest.raises(StoreUnavailable):
                await engine.check_store()
            assert world.main.diary.store == [False]
        await world.pass_time("5s")
        await engine.check_store()
        assert world.main.diary.store == [False, True]


async def test_a_loop_outlasts_an_error_nobody_expected(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async def trip() -> None:
        raise RuntimeError("a bug")

    async with world.started() as engine:
        await engine.jobs.create("test", world.spec(every="10s"))
        world.main.gate.before["fire_due"] = trip
        await world.pass_time("25s")
    assert world.sink.count == 2
    assert "the planner failed and goes on" in caplog.text


async def test_a_stop_waits_for_what_runs(world: World) -> None:
    async with world.started() as engine:
        job = await engine.jobs.create("test", world.spec())
        world.sink.replies(Reply(after=timedelta(seconds=4)))
        await engine.runs.trigger(job.id)
        await world.pass_time("1s")
        await world.stop("a")
    assert await world.states(job) == [State.SUCCESS]
    assert await world.store.nodes() == []


async def test_a_stop_hands_back_what_is_claimed_at_that_moment(world: World) -> None:
    async with world.started() as engine:
        job = await engine.jobs.create("test", world.spec())
        await world.pass_time("5.3s")

        async def stop_meanwhile() -> None:
            engine.runner._accepting = False

        world.main.gate.before["turn"] = stop_meanwhile
        await engine.runs.trigger(job.id)
        await world.stop("a")
    [run] = await world.runs(job)
    assert (run.state, world.sink.count) == (State.RETRYING, 0)


def test_a_store_that_does_not_answer_is_left_alone_a_little_longer_each_time() -> None:
    backoff = Backoff()
    pauses = [backoff.next() / MS for _ in range(8)]
    assert pauses == [50, 100, 200, 400, 800, 1600, 2000, 2000]
    backoff.reset()
    assert backoff.next() == 50 * MS


async def test_an_engine_that_cannot_join_says_so(world: World) -> None:
    with world.store_away("join"), pytest.raises(StoreUnavailable):
        await world.main.engine.join()


async def test_a_node_that_a_chain_keeps_busy_still_finds_what_others_bring_about(world: World) -> None:
    world.sink.always = Reply(after=300 * MS)
    nodes = [{"id": f"n{n}", "type": "script", "dependsOn": [f"n{n - 1}"] if n else []} for n in range(20)]
    async with world.started() as engine:
        chain = await engine.jobs.create("test", world.spec(target=TargetSpec("chain", {"nodes": nodes})))
        job = await engine.jobs.create("test", world.spec())
        await engine.chains.start(chain.id)
        await world.pass_time("1.1s")
        # As another node does it, without a word to this one.
        await put(world.store, a_run(10_000, job.id, kind="script", due_at=world.now, created_at=world.now))
        added_at = world.now
        await world.pass_time("1.5s")
        [delivery] = world.sink.of(10_000)
        assert delivery.at - added_at <= timedelta(seconds=1)
