"""Word of runs that ended in failure: one for each such end, told at least once, kept when nobody takes it."""

import asyncio
import json
from datetime import datetime, timedelta

import pytest

from ksana.domain.alerts import Alert, AlertQuery, AlertState
from ksana.domain.policies import OnUncertain, OverlapRule, Retry
from ksana.domain.runs import Run
from ksana.domain.states import State
from tests.engine.conftest import Create
from tests.kit.script import FAIL, RETRY, TIMED_OUT, WAIT, Reply
from tests.kit.world import World


class Listener:
    """A hook that writes down what it is told, and answers as it is told to."""

    def __init__(self, name: str = "listener") -> None:
        self.name = name
        self.told: list[Alert] = []
        self.answers: list[str | BaseException] = []
        self.always = ""
        self.hangs: asyncio.Event | None = None

    async def deliver(self, alert: Alert) -> str:
        self.told.append(alert)
        if self.hangs is not None:
            await self.hangs.wait()
        answer = self.answers.pop(0) if self.answers else self.always
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def close(self) -> None: ...

    @property
    def runs(self) -> list[int]:
        return [alert.run_id for alert in self.told]


@pytest.fixture
def listener() -> Listener:
    return Listener()


async def outbox(world: World, **said: object) -> list[Alert]:
    return (await world.store.find_alerts(AlertQuery(**said))).items  # type: ignore[arg-type]


async def test_a_run_that_fails_for_good_is_told_of_once(create_any_world: Create, listener: Listener) -> None:
    """C-14, C-143: after the last retry, with the data of the run."""
    world = await create_any_world(hooks=[listener])
    world.sink.replies(RETRY, RETRY, RETRY)
    job = await world.job(retry=Retry(3), tags=("billing",), name="nightly")
    run = await world.trigger(job)
    assert (run.state, listener.told) == (State.RETRYING, [])
    await world.advance("1m")
    run = await world.run(run.id)
    assert (run.state, listener.runs) == (State.FAILED, [run.id])
    [alert] = await outbox(world)
    assert (alert.state, alert.ended_at, alert.attempts) == (AlertState.DELIVERED, run.ended_at, 1)
    assert json.loads(alert.body) == {
        "event": "run.failed",
        "id": f"alert_{run.id}_{run.epoch}",
        "at": _text(run.ended_at),
        "run": {
            "id": run.id,
            "state": "FAILED",
            "reason": None,
            "trigger": "manual",
            "attempt": 3,
            "failures": 3,
            "planned_at": _text(run.created_at),
            "started_at": _text(run.started_at),
            "ended_at": _text(run.ended_at),
            "error": "said not now",
        },
        "job": {
            "id": job.id,
            "ref": "",
            "name": "nightly",
            "surface": "test",
            "kind": "script",
            "tags": ["billing"],
        },
    }
    await world.advance("1h")
    assert len(listener.told) == 1


def _text(at: datetime | None) -> str:
    assert at is not None
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def events(world: World) -> list[str]:
    return sorted(json.loads(alert.body)["event"] for alert in await outbox(world))


async def test_timeouts_and_callbacks_that_failed_or_never_came_are_failures(
    create_world: Create, listener: Listener
) -> None:
    """C-56, C-144."""
    world = await create_world(hooks=[listener])
    world.sink.replies(TIMED_OUT)
    await world.trigger(await world.job())
    waiting = await world.job(callback=True, callback_timeout="1m")
    world.sink.replies(WAIT, WAIT)
    answered, _ = await world.trigger(waiting), await world.trigger(waiting)
    await world.call_back(answered, succeeded=False)
    await world.call_back(answered, succeeded=False)
    await world.advance("2m")
    assert await events(world) == ["run.failed", "run.timeout", "run.timeout"]
    assert len(listener.told) == 3


async def test_nobody_is_told_of_runs_that_did_not_fail(create_world: Create, listener: Listener) -> None:
    """Success, cancel, skip: no row, no call."""
    world = await create_world(hooks=[listener])
    await world.trigger(await world.job())
    world.sink.replies(RETRY)
    await world.cancel(await world.trigger(await world.job(retry=Retry(2))))
    world.sink.replies(Reply(hangs=True))
    await world.job(every="1s", overlap=OverlapRule.SKIP, timeout="1h")
    await world.advance("3s")
    assert (await outbox(world), listener.told) == ([], [])


async def test_without_hooks_nothing_is_written(world: World) -> None:
    world.sink.replies(FAIL)
    await world.trigger(await world.job())
    assert await outbox(world) == []


async def test_each_failure_of_a_run_is_told_of(create_world: Create, listener: Listener) -> None:
    """One for each transition: a run that is tried again by hand may fail again."""
    world = await create_world(hooks=[listener])
    world.sink.replies(FAIL, FAIL)
    run = await world.trigger(await world.job())
    await world.rerun(run)
    assert listener.runs == [run.id, run.id]
    assert len({alert.id for alert in listener.told}) == 2


async def test_every_hook_is_told_and_none_waits_for_another(create_world: Create) -> None:
    good, bad = Listener("good"), Listener("bad")
    bad.answers = ["503 from there", ConnectionError("hook broke")]
    world = await create_world(hooks=[good, bad])
    world.sink.replies(FAIL)
    await world.trigger(await world.job())
    assert (len(good.told), len(bad.told)) == (1, 1)
    [owed] = await outbox(world, state=AlertState.PENDING)
    assert (owed.hook, owed.error, owed.due_at) == ("bad", "503 from there", world.now + timedelta(seconds=5))
    await world.advance("5s")
    [owed] = await outbox(world, state=AlertState.PENDING)
    assert (owed.error, owed.due_at) == ("ConnectionError: hook broke", world.now + timedelta(seconds=10))
    await world.advance("10s")
    assert (len(good.told), len(bad.told)) == (1, 3)
    assert await outbox(world, state=AlertState.PENDING) == []


async def test_a_hook_that_never_takes_it_is_given_up_and_the_alert_is_kept(
    create_world: Create, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    world = await create_world(hooks=[listener])
    listener.always = "nobody there"
    world.sink.replies(FAIL)
    await world.trigger(await world.job())
    began_at = world.now
    await world.advance("6h")
    gaps = [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600]
    assert len(listener.told) == len(gaps) + 1
    [kept] = await outbox(world)
    assert (kept.state, kept.error, kept.attempts) == (AlertState.FAILED, "nobody there", 12)
    assert kept.ended_at == began_at + timedelta(seconds=sum(gaps))
    assert "given up" in caplog.text
    await world.advance("24h")
    assert len(listener.told) == 12


async def test_an_alert_outlives_the_node_that_was_to_deliver_it(create_any_world: Create, listener: Listener) -> None:
    """At least once: the node dies with the alert in its hands, another takes it up when the lease has lapsed."""
    world = await create_any_world(hooks=[listener])
    world.sink.replies(FAIL)
    with world.store_away("settle_alerts"):
        await world.trigger(await world.job())
    assert len(listener.told) == 1
    world.kill()
    await world.node("b")
    await world.advance("59s")
    assert len(listener.told) == 1
    await world.advance("2s")
    assert len(listener.told) == 2
    assert listener.told[0].id == listener.told[1].id
    [alert] = await outbox(world)
    assert (alert.state, alert.attempts) == (AlertState.DELIVERED, 2)


async def test_the_alert_of_a_run_whose_worker_vanished_is_written_by_whoever_finds_it(
    create_world: Create, listener: Listener
) -> None:
    world = await create_world(hooks=[listener])
    world.sink.replies(Reply(hangs=True))
    run = await world.trigger(await world.job(on_uncertain=OnUncertain.FAIL, timeout="1h"))
    world.kill()
    await world.node("b")
    await world.advance("1m")
    assert ((await world.run(run.id)).state, listener.runs) == (State.FAILED, [run.id])


async def test_an_alert_is_delivered_by_one_of_many_nodes(create_any_world: Create, listener: Listener) -> None:
    world = await create_any_world(hooks=[listener])
    for name in ("b", "c"):
        await world.node(name)
    world.sink.replies(*[FAIL] * 30)
    job = await world.job()
    runs: list[Run] = [await world.main.engine.runs.trigger(job.id) for _ in range(30)]
    await world.advance("2m")
    assert sorted(listener.runs) == sorted(run.id for run in runs)


async def minutes_pass(world: World, count: int) -> None:
    for _ in range(count):
        await world.advance("1m")


@pytest.mark.parametrize("others", [["other"], []])
async def test_what_is_owed_to_a_hook_that_left_the_settings_is_given_up_and_says_why(
    create_any_world: Create, caplog: pytest.LogCaptureFixture, others: list[str]
) -> None:
    gone = Listener("gone")
    gone.always = "nobody there"
    world = await create_any_world(hooks=[gone])
    world.sink.replies(FAIL)
    run = await world.trigger(await world.job())
    await world.restart(hooks=[Listener(name) for name in others])
    await minutes_pass(world, 9)
    [owed] = await outbox(world)
    assert (owed.state, owed.attempts) == (AlertState.PENDING, 1)
    await minutes_pass(world, 3)
    [kept] = await outbox(world, state=AlertState.FAILED)
    assert (kept.run_id, kept.hook, kept.due_at, kept.attempts) == (run.id, "gone", None, 1)
    assert kept.error == "no node has this hook in its settings any more"
    assert kept.ended_at is not None and kept.ended_at > world.now - timedelta(minutes=3)
    assert "1 alerts for gone are given up" in caplog.text


async def test_a_hook_that_another_node_has_is_left_to_it(create_quick_world: Create, listener: Listener) -> None:
    """Even while it is refused, and after everybody was away for long."""
    world = await create_quick_world(hooks=[listener])
    listener.always = "nobody there"
    await world.node("b", hooks=[])
    world.sink.replies(FAIL)
    await world.trigger(await world.job())
    await minutes_pass(world, 30)
    [owed] = await outbox(world)
    assert (owed.state, owed.error) == (AlertState.PENDING, "nobody there")
    for name in ("a", "b"):
        world.kill(name)
    world.clock.move_to(world.now + timedelta(hours=5))
    await world.node("c", hooks=[])
    await minutes_pass(world, 5)
    listener.always = ""
    await world.node("a")
    await minutes_pass(world, 20)
    [told] = await outbox(world)
    assert told.state is AlertState.DELIVERED


async def test_a_result_whose_answer_got_lost_is_told_of_once(create_world: Create, listener: Listener) -> None:
    world = await create_world(hooks=[listener])
    world.sink.replies(FAIL)
    job = await world.job()
    with world.store_away("turn", after_commit=True, times=2):
        run = await world.main.engine.runs.trigger(job.id)
        await world.advance("10s")
    await world.advance("1m")
    assert ((await world.run(run.id)).state, listener.runs) == (State.FAILED, [run.id])


async def test_a_hook_that_hangs_is_cut_off_and_tried_again(create_world: Create, listener: Listener) -> None:
    world = await create_world(hooks=[listener])
    listener.hangs = asyncio.Event()
    world.sink.replies(FAIL)
    job = await world.job()
    async with world.started():
        await world.nodes["a"].engine.runs.trigger(job.id)
        await world.pass_time("31s")
        [alert] = await outbox(world)
        assert (alert.state, alert.error) == (AlertState.PENDING, "the hook did not answer in time")
        listener.hangs.set()
        await world.pass_time("10s")
        [alert] = await outbox(world)
        assert (alert.state, alert.attempts) == (AlertState.DELIVERED, 2)


async def test_the_loops_of_an_engine_deliver_by_themselves(create_world: Create, listener: Listener) -> None:
    world = await create_world(hooks=[listener])
    world.sink.replies(FAIL)
    job = await world.job()
    async with world.started():
        await world.nodes["a"].engine.runs.trigger(job.id)
        await world.pass_time("2s")
    assert len(listener.told) == 1
