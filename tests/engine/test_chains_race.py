"""Chains of any shape under workers that die, stores that give no answer and people who step in at any moment: nothing
starts too early, nothing is done twice, and what is left alone comes to the end that follows from its steps."""

import asyncio
import os
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ksana.domain.callbacks import Word
from ksana.domain.chains import Shape
from ksana.domain.errors import ConcurrencyLimit, InvalidState, NotFound, StoreUnavailable
from ksana.domain.graph import When
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.moves import Move, advance
from ksana.domain.outcomes import SUCCESS, AttemptContext
from ksana.domain.runs import Run
from ksana.domain.states import Event, State
from ksana.domain.steering import UNSUCCESSFUL, Family
from tests.domain.chain_shapes import shapes
from tests.engine.chain_rules import Witness
from tests.engine.conftest import Create
from tests.kit.script import FAIL, RETRY, TIMED_OUT, WAIT, Reply
from tests.kit.world import World

NODES = ("a", "b", "c")
VERBS = (
    *("turn", "turn", "steer", "steer", "hear", "add_run", "reserve_ids", "keep_checkpoint", "change_jobs"),
    *("beat", "lapsed", "children", "kept", "get_runs", "get_jobs", "find_jobs"),
)
REFUSALS = (ConcurrencyLimit, InvalidState, NotFound)
EXPLORE = os.environ.get("KSANA_TEST_EXPLORE") == "1"
LIVES, LIVES_ELSEWHERE = (60, 12) if EXPLORE else (3, 1)


class Fate:
    """Decides what happens next."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.witness = Witness(world)
        self.chains: list[Job] = []
        self.plain: Job | None = None
        world.sink.improvise = self.reply

    def reply(self, context: AttemptContext) -> Reply:
        rng = self.rng
        if rng.random() < 0.06:
            return Reply(hangs=True)
        outcomes: list[Any] = [SUCCESS] * 8 + [RETRY, FAIL, FAIL, TIMED_OUT]
        if context.callback_token:
            outcomes += [WAIT] * 8
        return Reply(rng.choice(outcomes), after=timedelta(seconds=rng.choice([0, 0, 0, 0.3, 2, 9])))

    # What there is to do

    def dag(self, depth: int = 0) -> dict[str, Any]:
        rng = self.rng
        size = rng.randint(1, 8 if depth == 0 else 3)
        dag: dict[str, Any] = {"nodes": [self.node(place, depth) for place in range(size)]}
        # The order of the definition says nothing about the order of the steps.
        rng.shuffle(dag["nodes"])
        if rng.random() < 0.35:
            dag["maxParallel"] = rng.randint(1, 3)
        if rng.random() < 0.2:
            dag["failFast"] = True
        if rng.random() < 0.15:
            dag["timeout"] = f"{rng.randint(20, 200)}s"
        return dag

    def node(self, place: int, depth: int) -> dict[str, Any]:
        rng = self.rng
        needs = rng.sample(range(place), rng.randint(0, min(place, 3)))
        node: dict[str, Any] = {
            "id": f"n{place}",
            "dependsOn": [f"n{need}" for need in needs],
            "when": rng.choice([*[When.ALL_SUCCESS] * 5, When.ALL_DONE, When.ANY_FAILED]) if needs else "",
            "retry": {"maxAttempts": rng.randint(1, 3), "backoff": rng.choice([0, 1000, 5000])},
            "timeout": "15s",
            "type": "script",
            "cfg": {"awaits_callback": rng.random() < 0.2},
        }
        if rng.random() < 0.1:
            node["onUncertain"] = "fail"
        match rng.randrange(11):
            case 10:
                node |= {"type": "noop", "cfg": {}}
            case 0:
                node |= {"map": list(range(rng.randint(0, 4))), "maxParallel": rng.randint(1, 3)}
            case 1 if depth < 2:
                node |= {"type": "chain", "cfg": self.dag(depth + 1)}
            case 2 if self.plain is not None:
                node |= {"type": "job", "cfg": {"job": self.plain.id}}
            case 3 if self.chains and depth < 2:
                node |= {"type": "chain", "cfg": {"chain": self.chains[0].id}}
        return node

    async def begin(self, chains: int) -> None:
        self.plain = await self.world.job(name="plain", callback=self.rng.random() < 0.5)
        for _ in range(chains):
            target = TargetSpec("chain", self.dag(depth=0 if self.chains else 2))
            self.chains.append(await self.world.job(target=target))
            await self.start()

    # What happens

    async def step(self) -> None:
        rng, world = self.rng, self.world
        await rng.choice([self.kill, self.freeze, self.outage, *[self.meddle] * 6])()
        await world.advance(timedelta(seconds=rng.choice([0, 0.5, 3, 10, 30])))
        await self.witness.look()

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
        verbs = tuple(rng.sample(VERBS, rng.randint(1, 4))) if rng.random() < 0.8 else ()
        with self.world.store_away(*verbs, after_commit=rng.random() < 0.6, times=rng.choice([1, 2, 5, None])):
            for _ in range(rng.randint(0, 3)):
                await self.meddle()
            await self.world.advance(timedelta(seconds=rng.choice([1, 8, 40])))

    async def meddle(self) -> None:
        """Somebody does something, while the nodes stand still or while they go on with their work."""
        deeds = [self.start, self.stop, self.retry_failed, self.edit, self.cancel]
        deeds += [self.retry_step, self.complete_step, self.call_back] * 2
        deed = self.rng.choice(deeds)
        if self.rng.random() < 0.5:
            await self.dare(deed)
        else:
            await asyncio.gather(self.dare(deed), self.world.settle())

    async def dare(self, deed: Callable[[], Any]) -> None:
        try:
            await deed()
        except StoreUnavailable:
            self.witness.is_torn = True
        except REFUSALS:
            pass

    async def start(self) -> None:
        await self.world.main.engine.chains.start(self.rng.choice(self.chains).id)

    async def stop(self) -> None:
        if run := await self.some_parent():
            await self.world.main.engine.chains.cancel(run.id)

    async def retry_failed(self) -> None:
        if run := await self.some_parent(lambda run: run.state in UNSUCCESSFUL and run.parent_id is None):
            await self.try_again(run)

    async def retry_step(self) -> None:
        if step := await self.some_step(lambda run: run.state in UNSUCCESSFUL):
            await self.touch(step)
            await self.world.main.engine.chains.retry_step(step.parent_id or 0, step.step or "")

    async def complete_step(self) -> None:
        if step := await self.some_step():
            await self.touch(step)
            await self.world.main.engine.chains.complete_step(step.parent_id or 0, step.step or "", artifact=b"1")

    async def cancel(self) -> None:
        if step := await self.some_step():
            await self.world.main.engine.chains.cancel(step.id)

    async def call_back(self) -> None:
        if step := await self.some_step(lambda run: run.callback_token is not None):
            word = Word(succeeded=self.rng.random() < 0.8)
            await self.world.main.engine.runs.call_back(step.callback_token or "", word)

    async def edit(self) -> None:
        chain = self.rng.choice(self.chains)
        target = TargetSpec("chain", self.dag(depth=2 if chain is self.chains[0] else 0))
        await self.world.main.engine.jobs.change(chain.id, lambda job: msgspec.structs.replace(job, target=target))

    async def try_again(self, run: Run) -> None:
        await self.touch(run)
        await self.world.main.engine.chains.retry_failed(run.id)

    async def touch(self, run: Run) -> None:
        """Somebody steps in here: those above are moved by it, too, and those below a step with children."""
        below = [run]
        while below:
            self.witness.touched.update(one.id for one in below)
            below = [child for one in below for child in await self.world.store.children(one.id)]
        while run.parent_id is not None:
            self.witness.touched.add(run.parent_id)
            run = await self.world.run(run.parent_id)

    async def some_parent(self, wanted: Callable[[Run], bool] = lambda run: True) -> Run | None:
        return self.one_of([run for run in await self.world.runs() if run.kind == "chain" and wanted(run)])

    async def some_step(self, wanted: Callable[[Run], bool] = lambda run: True) -> Run | None:
        return self.one_of([run for run in await self.world.runs() if run.parent_id is not None and wanted(run)])

    def one_of(self, runs: list[Run]) -> Run | None:
        # The newest are where the life is.
        return self.rng.choice(runs[-25:]) if runs else None

    # How it ends

    async def make_peace(self) -> None:
        """Everybody comes back and every target succeeds; what is left comes to its end by itself."""
        world = self.world
        world.sink.improvise = None
        for name in NODES:
            if name in world.nodes and world.nodes[name].clock.is_frozen:
                await world.thaw(name)
            await world.node(name)
        await self.come_to_an_end()

    async def come_to_an_end(self) -> None:
        world = self.world
        for _ in range(30):
            await world.advance("1m")
            runs = await world.runs()
            for run in runs:
                if run.state is State.CALLBACK_PENDING and run.callback_token is not None:
                    await world.main.engine.runs.call_back(run.callback_token, Word(succeeded=True))
                elif run.state is State.CALLBACK_PENDING:
                    await world.main.engine.chains.complete_step(run.parent_id or 0, run.step or "")
            if not any(_is_open(run) for run in runs):
                break
        unfinished = [run for run in runs if _is_open(run)]
        assert not unfinished, [(run.id, run.step, run.state, run.reason) for run in unfinished]
        await self.witness.look()


def _is_open(run: Run) -> bool:
    """Whether a run should still come to an end: of a chain that was stopped some steps are left as they were."""
    return not run.state.is_final and (run.parent_id is None or run.state is not State.WAITING)


async def live_through(create: Create, seed: int, chains: int, steps: int) -> None:
    world = await create(workers=4, batch=5)
    random.seed(seed)
    fate = Fate(world, seed)
    for name in NODES[1:]:
        await world.node(name)
    await fate.begin(chains)
    for _ in range(steps):
        await fate.step()
    await fate.make_peace()
    # Whatever did not succeed does so when it is tried again and nothing is in its way.
    failed = [run for run in await world.runs() if run.parent_id is None and run.state in UNSUCCESSFUL]
    for run in failed:
        await fate.try_again(run)
    await fate.come_to_an_end()
    fate.witness.is_torn = False
    await fate.witness.look()
    again = await world.store.get_runs([run.id for run in failed])
    assert {run.state for run in again} <= {State.SUCCESS, State.TIMEOUT}
    for node in world.live:
        assert node.engine.runner.is_idle


@pytest.mark.parametrize("seed", range(LIVES))
async def test_whatever_happens_to_a_chain_it_keeps_its_rules(create_quick_world: Create, seed: int) -> None:
    await live_through(create_quick_world, seed, chains=3, steps=30)


@pytest.mark.parametrize("seed", range(101, 101 + LIVES_ELSEWHERE))
async def test_whatever_happens_to_a_chain_it_keeps_its_rules_on_every_store(
    create_any_world: Create, seed: int
) -> None:
    await live_through(create_any_world, seed, chains=2, steps=20 if EXPLORE else 6)


async def test_a_chain_that_is_its_own_step_comes_to_an_end(world: World) -> None:
    own = {"nodes": [{"id": "again", "type": "chain", "cfg": {"chain": "own"}}]}
    chain = await world.job(name="own", target=TargetSpec("chain", own))
    run = await world.main.engine.chains.start(chain.id)
    await world.settle()
    run = await world.run(run.id)
    assert (run.state, "20 deep" in run.error) == (State.FAILED, True)
    assert len(await world.runs()) == 22


async def test_the_witness_itself_notices_a_step_that_begins_too_early_or_once_more(world: World) -> None:
    witness = Witness(world)
    world.sink.improvise = lambda context: Reply(hangs=context.step == "a")
    nodes = [{"id": "a", "type": "script"}, {"id": "b", "type": "script", "dependsOn": ["a"]}]
    chain = await world.job(target=TargetSpec("chain", {"nodes": nodes}))
    run = await world.main.engine.chains.start(chain.id)
    await world.settle()
    await witness.look()
    [delivery] = world.sink.deliveries

    def admit(family: Family) -> list[Move]:
        b = family.children[1]
        return [Move(b.epoch, advance(b, Event.ADMIT, world.now, due_at=world.now))]

    await world.store.steer(run.id, admit)
    await world.settle()
    with pytest.raises(AssertionError, match=r"\(b, .*began"):
        await witness.look()
    await witness.see(delivery)
    with pytest.raises(AssertionError, match=r"\(a, .*was delivered with fence"):
        await witness.look()


# Left alone: what becomes of a chain follows from its shape and from what its steps answer

FATES = {
    "succeeds": ([SUCCESS], State.SUCCESS),
    "succeeds at last": ([RETRY, TIMED_OUT, SUCCESS], State.SUCCESS),
    "is called back": ([WAIT], State.SUCCESS),
    "fails": ([FAIL], State.FAILED),
    "wears out": ([RETRY, RETRY, RETRY], State.FAILED),
    "hears no": ([WAIT], State.FAILED),
}


def expected(shape: Shape, fates: list[str]) -> list[State]:
    """What becomes of each step if nothing is in its way."""
    states: dict[int, State] = {}
    while len(states) < len(fates):
        for place, needs in enumerate(shape.needs):
            if place in states or not all(need in states for need in needs):
                continue
            ends = [states[need] for need in needs]
            match shape.whens[place]:
                case When.ALL_SUCCESS:
                    runs = all(end is State.SUCCESS for end in ends)
                case When.ANY_FAILED:
                    runs = State.FAILED in ends or not needs
                case When.ALL_DONE:
                    runs = True
            end = State.SUCCESS if place in shape.idle else FATES[fates[place]][1]
            states[place] = end if runs else State.SKIPPED
    return [states[place] for place in range(len(fates))]


def written_down(shape: Shape) -> dict[str, Any]:
    def node(place: int) -> dict[str, Any]:
        needs = [f"n{need}" for need in shape.needs[place]]
        return {
            "id": f"n{place}",
            "type": "noop" if place in shape.idle else "script",
            "cfg": {"awaits_callback": True},
            "dependsOn": needs,
            "when": shape.whens[place] if needs else "",
        }

    dag: dict[str, Any] = {"nodes": [node(place) for place in range(len(shape.needs))], "failFast": shape.fail_fast}
    return dag if shape.max_parallel is None else {**dag, "maxParallel": shape.max_parallel}


@pytest.fixture
async def quick_world(create_quick_world: Create) -> World:
    return await create_quick_world()


@given(shapes(), st.lists(st.sampled_from(sorted(FATES)), min_size=7, max_size=7))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
async def test_a_chain_left_alone_ends_as_its_shape_and_its_steps_say(
    quick_world: World, shape: Shape, fates: list[str]
) -> None:
    world, fates = quick_world, fates[: len(shape.needs)]
    witness = Witness(world)
    world.sink.improvise = lambda context: Reply(FATES[fates[int(context.step[1:])]][0][context.attempt - 1])
    chain = await world.job(target=TargetSpec("chain", written_down(shape)))
    run = await world.main.engine.chains.start(chain.id)
    while not (await world.run(run.id)).state.is_final:
        await world.advance("10s")
        for child in await world.store.children(run.id):
            if child.state is State.CALLBACK_PENDING:
                await world.call_back(child, succeeded=fates[int((child.step or "n0")[1:])] == "is called back")
    await witness.look()
    states = [child.state for child in await world.store.children(run.id)]
    due = expected(shape, fates)
    has_failed = State.FAILED in states
    assert (await world.run(run.id)).state is (State.FAILED if has_failed else State.SUCCESS)
    if shape.fail_fast and has_failed:
        assert all(state in (State.WAITING, end) for state, end in zip(states, due, strict=True))
    else:
        assert states == due
    order = [delivery.run_id for delivery in world.sink.deliveries]
    children = await world.store.children(run.id)
    for place, needs in enumerate(shape.needs):
        for need in needs:
            began_at, ended_at = children[place].started_at, children[need].ended_at
            assert began_at is None or (ended_at is not None and began_at >= ended_at)
            if {children[place].id, children[need].id} <= set(order):
                last = len(order) - 1 - order[::-1].index(children[need].id)
                assert order.index(children[place].id) > last, "a step began before one that it needs was over"
