"""Random jobs, random answers, random deaths, freezes and outages over virtual hours; the promises hold at the end."""

import random
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest

from ksana.domain.alerts import ALERTING, Alert, AlertQuery, AlertState
from ksana.domain.callbacks import CallbackStatus, Word
from ksana.domain.errors import ConcurrencyLimit, InvalidState, StoreUnavailable
from ksana.domain.fires import DueJob, Fire
from ksana.domain.jobs import Job
from ksana.domain.outcomes import SUCCESS, AttemptContext
from ksana.domain.policies import MisfireRule, OnUncertain, OverlapRule, Retry, RetryStrategy
from ksana.domain.runs import Run
from ksana.domain.schedules import next_slot
from ksana.domain.states import Reason
from tests.engine.conftest import Create
from tests.kit.script import FAIL, RETRY, TIMED_OUT, WAIT, Reply
from tests.kit.world import World

NODES = ("a", "b", "c")
VERBS = (
    *(
        "fire_due",
        "fire_foreseen",
        "look_ahead",
        "turn",
        "beat",
        "lapsed",
        "next_fire_at",
        "next_due_at",
        "reserve_ids",
        "change_jobs",
        "add_run",
    ),
    *("hear", "add_attempts", "lease_alerts", "settle_alerts"),
)


class Moody:
    """A hook that takes an alert or does not."""

    name = "moody"

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.is_friendly = False
        self.taken: set[str] = set()

    async def deliver(self, alert: Alert) -> str:
        if not self.is_friendly and self._rng.random() < 0.3:
            return "not now"
        self.taken.add(alert.id)
        return ""

    async def close(self) -> None: ...


class Fate:
    """Decides what happens next, and remembers what must never be undone."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.jobs: list[Job] = []
        self.ended: dict[int, Run] = {}
        world.sink.improvise = self.reply

    def reply(self, context: AttemptContext) -> Reply:
        rng = self.rng
        if rng.random() < 0.05:
            return Reply(hangs=True, is_deaf=rng.random() < 0.3)
        outcomes: list[Any] = [SUCCESS] * 6 + [RETRY, FAIL, TIMED_OUT]
        if context.callback_token:
            outcomes += [WAIT] * 4
        after = timedelta(seconds=rng.choice([0, 0, 0, 0.3, 2, 9]))
        return Reply(rng.choice(outcomes), after=after)

    async def create_job(self) -> None:
        rng = self.rng
        when: dict[str, Any] = rng.choice(
            [
                {"every": timedelta(seconds=rng.randint(3, 90))},
                {"every": timedelta(seconds=rng.randint(20, 90)), "jitter": timedelta(seconds=rng.randint(1, 19))},
                {"cron": rng.choice(["* * * * *", "*/20 * * * * *", "*/3 * * * *"])},
            ]
        )
        retry = Retry(rng.randint(1, 4), rng.choice(list(RetryStrategy)), timedelta(seconds=rng.choice([0, 1, 10])))
        job = await self.world.job(
            **when,
            overlap=rng.choice(list(OverlapRule)),
            max_concurrency=rng.randint(1, 3),
            misfire=rng.choice(list(MisfireRule)),
            catch_up=rng.randint(0, 20),
            retry=retry,
            callback=rng.random() < 0.3,
            callback_timeout="40s",
            on_uncertain=rng.choice(list(OnUncertain)),
        )
        self.jobs.append(job)

    async def step(self) -> None:
        world, rng = self.world, self.rng
        deed = rng.choice([self.kill, self.freeze, self.outage, self.outage, self.meddle, self.meddle, self.wait])
        await deed()
        await world.advance(timedelta(seconds=rng.choice([0.5, 3, 10, 45])))
        await self.look()

    async def wait(self) -> None:
        await self.world.advance("1m")

    async def kill(self) -> None:
        name = self.rng.choice(NODES)
        if len(self.world.live) > 1 and not self.world.nodes[name].is_dead:
            self.world.kill(name)
        else:
            await self.world.node(name)

    async def freeze(self) -> None:
        node = self.world.nodes[self.rng.choice(NODES)]
        if node.clock.is_frozen:
            await self.world.thaw(node.name)
        elif node.is_live and len(self.world.live) > 1:
            self.world.freeze(node.name)

    async def outage(self) -> None:
        rng = self.rng
        verbs = tuple(rng.sample(VERBS, rng.randint(1, 3))) if rng.random() < 0.8 else ()
        times = rng.choice([1, 2, 5, None])
        with self.world.store_away(*verbs, after_commit=rng.random() < 0.6, times=times):
            await self.world.advance(timedelta(seconds=rng.choice([1, 8, 40])))

    async def meddle(self) -> None:
        world, rng = self.world, self.rng
        engine, job = world.main.engine, rng.choice(self.jobs)
        runs = await world.runs(job)
        with suppress(ConcurrencyLimit, InvalidState, StoreUnavailable):
            match rng.randrange(8):
                case 0:
                    await engine.jobs.pause(job.id)
                case 1 | 2:
                    await engine.jobs.resume(job.id)
                case 3:
                    await engine.runs.trigger(job.id)
                case 4 if runs:
                    await engine.runs.cancel(rng.choice(runs).id)
                case 5 if runs:
                    run = rng.choice(runs)
                    self.ended.pop(run.id, None)
                    await engine.runs.rerun(run.id)
                case 6 | 7 if awaited := [run for run in runs if run.callback_token]:
                    word = rng.choice([Word(succeeded=True), Word(succeeded=False), Word(progress=0.5, extend=_MORE)])
                    await engine.runs.call_back(rng.choice(awaited).callback_token or "", word)

    async def look(self) -> None:
        """A final state is never left, but by trying again."""
        for run in await self.world.runs():
            before = self.ended.get(run.id)
            assert before is None or run == before, "a final state was left"
            if run.state.is_final:
                self.ended[run.id] = run

    async def make_peace(self) -> None:
        """Everybody comes back and every target succeeds; what is left is finished."""
        world = self.world
        world.sink.improvise = None
        for name in NODES:
            if world.nodes[name].clock.is_frozen:
                await world.thaw(name)
            await world.node(name)
        for job in self.jobs:
            await world.main.engine.jobs.resume(job.id)
        await world.advance("2m")
        for job in self.jobs:
            await world.main.engine.jobs.pause(job.id)
        await world.advance("2m")


async def accounted(world: World, job: Job) -> None:
    """Every slot from the job's creation to its pause has one run, or lies in one gap."""
    job = await world.get(job)
    assert job.schedule is not None
    assert job.paused_at is not None
    gaps = await world.gaps(job)
    traces: Counter[datetime] = Counter(run.slot_at for run in await world.runs(job) if run.slot_at is not None)
    expected = []
    slot = next_slot(job.schedule, job.created_at)
    while slot is not None and slot <= job.paused_at:
        expected.append(slot)
        traces.update([slot] * sum(gap.from_at <= slot <= gap.to_at for gap in gaps))
        slot = next_slot(job.schedule, slot)
    assert traces == Counter(expected)
    for gap in gaps:
        assert gap.count == sum(gap.from_at <= slot <= gap.to_at for slot in expected)


async def all_told(world: World, hook: Moody) -> None:
    """Of every run that ended in failure there is one alert, and it was taken."""
    hook.is_friendly = True
    while owed := (await world.store.find_alerts(AlertQuery(state=AlertState.PENDING, limit=100_000))).items:
        world.clock.move_to(min(alert.due_at for alert in owed if alert.due_at is not None))
        await world.settle()
    alerts = (await world.store.find_alerts(AlertQuery(limit=100_000))).items
    assert {alert.state for alert in alerts} <= {AlertState.DELIVERED}
    assert {alert.id for alert in alerts} <= hook.taken
    told = Counter((alert.run_id, alert.epoch) for alert in alerts)
    failed = [(run.id, run.epoch) for run in await world.runs() if run.state in ALERTING]
    assert all(told[key] == 1 for key in failed)
    assert set(told.values()) <= {1}


async def all_heard(world: World) -> None:
    """A run that ended by a callback has one in its ledger that counted."""
    for run in await world.runs():
        if run.state.is_final and run.reason is Reason.CALLBACK:
            assert CallbackStatus.RECEIVED in {record.status for record in await world.store.callbacks(run.id)}


_MORE = timedelta(seconds=30)


async def live_through(create: Create, seed: int, steps: int) -> None:
    hook = Moody(random.Random(seed))
    world = await create(workers=5, batch=7, foresees_from=1, hooks=[hook])
    # The engine draws its jitter from here.
    random.seed(seed)
    fate = Fate(world, seed)
    for name in NODES[1:]:
        await world.node(name)
    for _ in range(6):
        await fate.create_job()
    for _ in range(steps):
        await fate.step()
    await fate.make_peace()
    await fate.look()

    for job in fate.jobs:
        await accounted(world, job)
    unfinished = [run for run in await world.runs() if not run.state.is_final]
    assert unfinished == []
    fences: dict[int, int] = {}
    for delivery in world.sink.deliveries:
        context = delivery.context
        assert context.fence > fences.get(context.run_id, 0), "a delivery came with an old fence"
        fences[context.run_id] = context.fence
        assert delivery.at >= context.planned_at, "an attempt started before its slot"
    for node in world.live:
        assert node.engine.runner.is_idle
    await all_told(world, hook)
    await all_heard(world)


# Lives in which nodes vanish while they work, operators step in, and it stays unknown what a target did.
@pytest.mark.parametrize("seed", [133])
async def test_whatever_happens_every_slot_leaves_one_trace(create_quick_world: Create, seed: int) -> None:
    await live_through(create_quick_world, seed, steps=20)


@pytest.mark.parametrize("seed", [121])
async def test_whatever_happens_every_slot_leaves_one_trace_on_every_store(create_any_world: Create, seed: int) -> None:
    await live_through(create_any_world, seed, steps=5)


async def test_the_check_itself_notices_a_slot_without_a_trace(world: World) -> None:
    job = await world.job(every="1m")
    await world.advance("2m")
    await world.pause(job)
    await accounted(world, job)
    await world.resume(job)
    world.clock.move_to(world.now + timedelta(minutes=1))
    await world.store.fire_due(world.now, 10, lambda due: [_forgetful(d) for d in due])
    await world.pause(job)
    with pytest.raises(AssertionError):
        await accounted(world, job)


def _forgetful(due: DueJob) -> Fire:
    return Fire(due.job.id, [], [], due.slot_at + timedelta(minutes=1), due.slot_at + timedelta(minutes=1))
