"""Chains at work: steps run as what they need allows, data goes along, people step in, and nothing is done twice."""

from typing import Any

import msgspec
import pytest

from ksana.domain.errors import InvalidArgument, InvalidState, NotFound
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.outcomes import AttemptContext, Outcome, Verdict
from ksana.domain.policies import OverlapRule
from ksana.domain.runs import Run
from ksana.domain.states import Reason, State
from tests.engine.conftest import Create
from tests.kit.script import FAIL, RETRY, WAIT, Reply
from tests.kit.world import World

HANGS = Reply(hangs=True)


def node(id: str, *needs: str, **said: Any) -> dict[str, Any]:
    return {"id": id, "type": "script", "dependsOn": list(needs), **said}


async def a_chain(world: World, *nodes: dict[str, Any], job: dict[str, Any] | None = None, **dag: Any) -> Job:
    target = TargetSpec("chain", {"nodes": list(nodes), **dag})
    return await world.job(target=target, **(job or {}))


async def start(world: World, job: Job, **params: Any) -> Run:
    run = await world.main.engine.chains.start(job.id, params)
    await world.settle()
    return await world.run(run.id)


async def steps(world: World, run: Run) -> dict[str, Run]:
    return {child.step or "": child for child in await world.store.children(run.id)}


async def states(world: World, run: Run) -> dict[str, str]:
    return {step: child.state.value for step, child in (await steps(world, run)).items()}


def said(world: World) -> list[str]:
    """The steps that were carried out, in order."""
    return [delivery.context.step for delivery in world.sink.deliveries]


def by_step(**replies: Any) -> Any:
    """Steps answer as told, each time the same or one reply after the other; the others just succeed."""
    told = {step: list(reply) if isinstance(reply, list) else reply for step, reply in replies.items()}

    def improvise(context: AttemptContext) -> Reply:
        reply = told.get(context.step, Reply())
        if isinstance(reply, list):
            reply = reply.pop(0) if reply else Reply()
        return reply if isinstance(reply, Reply) else Reply(reply)

    return improvise


async def artifacts(world: World, run: Run) -> dict[str, Any]:
    standing = await world.main.engine.chains.steps(await world.run(run.id))
    return {one.step.id: msgspec.json.decode(one.artifact) for one in standing if one.artifact is not None}


async def test_a_diamond_runs_in_the_order_of_its_needs_and_ends_in_success(any_world: World) -> None:
    world = any_world
    chain = await a_chain(world, node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c"))
    run = await start(world, chain)
    assert (run.state, run.reason) == (State.SUCCESS, Reason.CHILDREN)
    assert set((await states(world, run)).values()) == {"SUCCESS"}
    order = said(world)
    assert sorted(order) == ["a", "b", "c", "d"]
    assert (order[0], order[-1]) == ("a", "d")
    assert [move.run.id for move in world.main.diary.moved].count(run.id) == 2
    assert len(await world.attempts(run)) == 0


async def test_the_steps_are_there_from_the_first_instant(world: World) -> None:
    chain = await a_chain(world, node("a"), node("b", "a"))
    run = await world.main.engine.chains.start(chain.id)
    standing = await world.main.engine.chains.steps(run)
    assert [(one.step.id, one.run) for one in standing] == [("a", None), ("b", None)]
    assert run.state is State.SCHEDULED
    await world.settle()
    assert [one.run.state for one in await world.main.engine.chains.steps(run) if one.run] == [State.SUCCESS] * 2


async def test_independent_steps_run_side_by_side_as_far_as_the_chain_allows(world: World) -> None:
    world.sink.always = HANGS
    wide = await a_chain(world, *[node(f"n{i}") for i in range(6)])
    run = await start(world, wide)
    assert len(world.sink.running) == 6
    bounded = await a_chain(world, *[node(f"n{i}") for i in range(4)], maxParallel=2)
    second = await start(world, bounded)
    assert await states(world, second) == {"n0": "RUNNING", "n1": "RUNNING", "n2": "WAITING", "n3": "WAITING"}
    await world.answer((await steps(world, second))["n0"])
    assert await states(world, second) == {"n0": "SUCCESS", "n1": "RUNNING", "n2": "RUNNING", "n3": "WAITING"}
    assert (await world.run(run.id)).state is State.RUNNING


async def test_a_failed_step_skips_what_needs_it_and_nothing_else(any_world: World) -> None:
    world = any_world
    world.sink.improvise = by_step(b=FAIL)
    chain = await a_chain(
        world,
        node("a"),
        node("b", "a"),
        node("c", "b"),
        node("d", "c"),
        node("e", "a"),
        node("f", "d", when="any_failed"),
        node("g", "b", when="any_failed"),
        node("h", "b", "d", when="all_done"),
    )
    run = await start(world, chain)
    assert (run.state, run.error) == (State.FAILED, "b: said no")
    assert await states(world, run) == {
        "a": "SUCCESS",
        "b": "FAILED",
        "c": "SKIPPED",
        "d": "SKIPPED",
        "e": "SUCCESS",
        "f": "SKIPPED",
        "g": "SUCCESS",
        "h": "SUCCESS",
    }


async def test_nodes_that_do_nothing_are_done_at_once_and_told(any_world: World) -> None:
    world = any_world
    chain = await a_chain(
        world,
        {"id": "begin"},
        node("a", "begin"),
        node("b", "begin"),
        {"id": "gate", "dependsOn": ["a", "b"]},
        node("c", "gate"),
        {"id": "end", "dependsOn": ["c"], "when": "all_done"},
    )
    run = await start(world, chain)
    assert run.state is State.SUCCESS
    assert said(world) == ["a", "b", "c"]
    runs = await steps(world, run)
    assert {one.state for one in runs.values()} == {State.SUCCESS}
    for id in ("begin", "gate", "end"):
        assert runs[id].started_at == runs[id].ended_at
        assert (runs[id].attempt, await world.attempts(runs[id])) == (0, [])
        told = [move.run for move in world.main.diary.moved if move.run.id == runs[id].id]
        assert told == [runs[id]]
    assert max(runs[id].ended_at for id in "ab") <= runs["gate"].started_at <= runs["c"].started_at  # type: ignore[operator, type-var]


async def test_ten_thousand_nodes_that_do_nothing_are_over_with_their_start(world: World) -> None:
    size = 10_000
    nodes = [{"id": f"n{i}", "dependsOn": [f"n{i - 1}"] if i else []} for i in range(size)]
    run = await start(world, await a_chain(world, *nodes))
    assert (run.state, run.reason) == (State.SUCCESS, Reason.CHILDREN)
    assert set((await states(world, run)).values()) == {"SUCCESS"}
    assert sum(move.run.parent_id == run.id for move in world.main.diary.moved) == size


async def test_a_chain_within_a_chain_may_do_nothing(any_world: World) -> None:
    world = any_world
    inner = {"nodes": [{"id": "x"}, {"id": "y", "dependsOn": ["x"]}]}
    chain = await a_chain(world, {"id": "in", "type": "chain", "cfg": inner}, node("a", "in"))
    run = await start(world, chain)
    assert run.state is State.SUCCESS
    assert said(world) == ["a"]
    assert (await artifacts(world, run))["in"] == {"y": None}


async def test_a_node_that_did_nothing_hands_nothing_on_and_is_not_done_again(world: World) -> None:
    world.sink.improvise = by_step(b=[FAIL])
    heard = {"id": "heard", "type": "echo", "dependsOn": ["gate"], "cfg": {"message": ["{{gate.artifact}}"]}}
    chain = await a_chain(world, {"id": "gate"}, heard, node("b", "gate"))
    run = await start(world, chain)
    assert run.state is State.FAILED
    gate = (await steps(world, run))["gate"]
    with pytest.raises(InvalidState):
        await world.main.engine.chains.retry_step(run.id, "gate")
    await world.main.engine.chains.retry_step(run.id, "b")
    await world.settle()
    assert (await world.run(run.id)).state is State.SUCCESS
    assert (await steps(world, run))["gate"] == gate
    assert await artifacts(world, run) == {"heard": [None]}


async def test_with_fail_fast_nothing_more_starts_after_a_failure(world: World) -> None:
    world.sink.improvise = by_step(a=FAIL, b=HANGS)
    chain = await a_chain(world, node("a"), node("b"), node("c", "b"), failFast=True, maxParallel=2)
    run = await start(world, chain)
    assert run.state is State.RUNNING
    await world.answer((await steps(world, run))["b"])
    assert (await world.run(run.id)).state is State.FAILED
    assert await states(world, run) == {"a": "FAILED", "b": "SUCCESS", "c": "WAITING"}


async def test_a_step_is_tried_again_as_it_says(world: World) -> None:
    world.sink.improvise = by_step(a=RETRY)
    chain = await a_chain(world, node("a", retry={"maxAttempts": 3, "backoff": 1000}), node("b", "a"))
    run = await start(world, chain)
    assert (await states(world, run))["a"] == "RETRYING"
    await world.advance("10s")
    first, second, third = world.sink.times
    assert ((second - first).total_seconds(), (third - second).total_seconds()) == (1, 2)
    a = (await steps(world, run))["a"]
    assert (a.state, a.attempt, (await world.run(run.id)).state) == (State.FAILED, 3, State.FAILED)


async def test_an_unknown_type_fails_its_step_with_a_clear_error(world: World) -> None:
    chain = await a_chain(world, {"id": "a", "type": "nope"}, {"id": "b"})
    run = await start(world, chain)
    assert "'nope'" in (await steps(world, run))["a"].error
    assert (run.state, run.error.split(":")[0]) == (State.FAILED, "a")


async def test_artifacts_parameters_and_conditions_reach_the_steps_downstream(world: World) -> None:
    gives = Outcome(Verdict.SUCCESS, result=msgspec.json.encode({"count": 3, "name": "x"}))
    world.sink.improvise = by_step(a=gives)
    chain = await a_chain(
        world,
        node("a"),
        node("few", "a", when="a.artifact.count < 2"),
        node("many", "a", when="a.artifact.count >= 2 and params.mode == 'fast'"),
        {"id": "say", "type": "echo", "dependsOn": ["many"], "cfg": {"message": {"n": "{{a.artifact.count}}"}}},
        params={"mode": "slow"},
    )
    run = await start(world, chain, mode="fast")
    assert await states(world, run) == {"a": "SUCCESS", "few": "SKIPPED", "many": "SUCCESS", "say": "SUCCESS"}
    assert run.state is State.SUCCESS
    assert (await artifacts(world, run))["say"] == {"n": 3}
    assert world.sink.deliveries[-1].context.params == {"mode": "fast"}
    with pytest.raises(InvalidArgument, match="speed"):
        await start(world, chain, speed=1)
    with pytest.raises(InvalidArgument, match="mode"):
        await start(world, chain, mode=1)


async def test_a_map_does_its_step_for_each_item_and_gathers_in_order(any_world: World) -> None:
    world = any_world
    gives = Outcome(Verdict.SUCCESS, result=b"[3, 1, 2]")
    world.sink.improvise = by_step(list=gives)
    each = {"id": "each", "type": "echo", "dependsOn": ["list"], "map": "{{list.artifact}}", "maxParallel": 2}
    chain = await a_chain(
        world,
        node("list"),
        {**each, "cfg": {"message": {"v": "{{item}}", "i": "{{index}}"}}},
        {"id": "sum", "type": "echo", "dependsOn": ["each"], "cfg": {"message": "{{each.artifact}}"}},
    )
    run = await start(world, chain)
    assert run.state is State.SUCCESS
    gathered = [{"v": 3, "i": 0}, {"v": 1, "i": 1}, {"v": 2, "i": 2}]
    assert await artifacts(world, run) == {"list": [3, 1, 2], "each": gathered, "sum": gathered}
    each_run = (await steps(world, run))["each"]
    assert [child.step for child in await world.store.children(each_run.id)] == ["each[0]", "each[1]", "each[2]"]


async def test_a_map_over_nothing_succeeds_and_over_no_list_fails(world: World) -> None:
    chain = await a_chain(world, {"id": "none", "type": "echo", "map": []}, node("after", "none"))
    run = await start(world, chain)
    assert (run.state, (await artifacts(world, run))["none"]) == (State.SUCCESS, [])
    wrong = await a_chain(world, {"id": "m", "type": "echo", "map": "{{params.what}}"}, params={"what": 5})
    assert "no list" in (await start(world, wrong)).error


async def test_a_chain_within_a_chain_and_a_job_within_a_chain(any_world: World) -> None:
    world = any_world
    inner = await a_chain(world, node("x"), node("y", "x"), job={"name": "inner"}, params={"p": 1})
    plain = await world.job(name="plain")
    outer = await a_chain(
        world,
        {"id": "sub", "type": "chain", "cfg": {"chain": "inner", "params": {"p": 2}}},
        {"id": "run", "type": "job", "cfg": {"job": plain.id, "input": {"k": "v"}}, "dependsOn": ["sub"]},
        node("end", "run"),
    )
    run = await start(world, outer)
    assert run.state is State.SUCCESS
    assert said(world) == ["x", "y", "", "end"]
    assert world.sink.deliveries[2].context.input == {"k": "v"}
    assert [one.trigger for one in await world.runs(plain)] == ["chain"]
    assert world.sink.deliveries[0].context.params == {"p": 2}
    assert await world.runs(inner) == []


async def test_a_failure_inside_reaches_the_outside(world: World) -> None:
    world.sink.improvise = by_step(y=FAIL)
    await a_chain(world, node("x"), node("y", "x"), job={"name": "inner"})
    outer = await a_chain(world, {"id": "sub", "type": "chain", "cfg": {"chain": "inner"}}, node("end", "sub"))
    run = await start(world, outer)
    assert (run.state, run.error) == (State.FAILED, "sub: y: said no")
    assert await states(world, run) == {"sub": "FAILED", "end": "SKIPPED"}
    again = world.sink.count
    world.sink.improvise = None
    await world.main.engine.chains.retry_failed(run.id)
    await world.settle()
    assert (await world.run(run.id)).state is State.SUCCESS
    assert said(world)[again:] == ["y", "end"]


async def test_stop_is_prompt_and_leaves_what_has_not_begun(any_world: World) -> None:
    world = any_world
    world.sink.improvise = by_step(a=HANGS, b=RETRY)
    chain = await a_chain(world, node("a"), node("b"), node("c", "a"))
    run = await start(world, chain)
    stopping = await world.main.engine.chains.stop(run.id)
    assert stopping.state is State.STOPPING
    assert (await world.main.engine.chains.stop(run.id)).state is State.STOPPING
    await world.settle()
    assert (await world.run(run.id)).state is State.CANCELED
    assert await states(world, run) == {"a": "CANCELED", "b": "CANCELED", "c": "WAITING"}
    assert (await world.main.engine.chains.stop(run.id)).state is State.CANCELED
    await world.advance("1m")
    assert said(world) == ["a", "b"]
    assert len(world.sink.canceled) == 1


async def test_a_run_that_is_over_cannot_be_stopped(world: World) -> None:
    run = await start(world, await a_chain(world, node("a")))
    with pytest.raises(InvalidState):
        await world.main.engine.chains.stop(run.id)
    with pytest.raises(NotFound):
        await world.main.engine.chains.stop(999_999)


async def test_a_run_stopped_before_it_began_is_stopped_and_can_begin_again(world: World) -> None:
    chain = await a_chain(world, node("a"))
    run = await world.main.engine.chains.start(chain.id)
    await world.main.engine.chains.stop(run.id)
    await world.settle()
    assert ((await world.run(run.id)).state, said(world)) == (State.CANCELED, [])
    await world.main.engine.chains.retry_failed(run.id)
    await world.settle()
    assert (await world.run(run.id)).state is State.SUCCESS


async def test_stop_reaches_the_chain_inside_a_chain(world: World) -> None:
    world.sink.improvise = by_step(x=HANGS)
    await a_chain(world, node("x"), node("y", "x"), job={"name": "inner"})
    outer = await a_chain(world, {"id": "sub", "type": "chain", "cfg": {"chain": "inner"}}, node("end", "sub"))
    run = await start(world, outer)
    await world.main.engine.chains.stop(run.id)
    await world.settle()
    assert (await world.run(run.id)).state is State.CANCELED
    assert await states(world, run) == {"sub": "CANCELED", "end": "WAITING"}
    assert len(world.sink.canceled) == 1


async def test_a_retried_step_moves_the_chain_on(any_world: World) -> None:
    world = any_world
    world.sink.improvise = by_step(b=[FAIL])
    chain = await a_chain(world, node("a"), node("b", "a"), node("c", "b"))
    run = await start(world, chain)
    assert await states(world, run) == {"a": "SUCCESS", "b": "FAILED", "c": "SKIPPED"}
    with pytest.raises(InvalidState):
        await world.main.engine.chains.retry_step(run.id, "a")
    with pytest.raises(InvalidState):
        await world.main.engine.chains.retry_step(run.id, "c")
    with pytest.raises(NotFound):
        await world.main.engine.chains.retry_step(run.id, "z")
    again = await world.main.engine.chains.retry_step(run.id, "b", reason="once more")
    assert (again.state, again.attempt, again.error) == (State.RETRYING, 1, "once more")
    assert (await world.run(run.id)).state is State.RUNNING
    await world.settle()
    assert (await world.run(run.id)).state is State.SUCCESS
    assert (await steps(world, run))["b"].attempt == 2
    assert said(world) == ["a", "b", "b", "c"]


async def test_a_completed_step_moves_the_chain_on(any_world: World) -> None:
    world = any_world
    world.sink.improvise = by_step(a=HANGS)
    chain = await a_chain(world, node("a"), node("b", "a"), node("c", "b"))
    run = await start(world, chain)
    with pytest.raises(InvalidState):
        await world.main.engine.chains.complete_step(run.id, "b")
    done = await world.main.engine.chains.complete_step(run.id, "a", reason="by hand", artifact=b'{"v":1}')
    assert (done.state, done.attempt, done.error) == (State.SUCCESS, 1, "by hand")
    await world.settle()
    assert (await world.run(run.id)).state is State.SUCCESS
    assert (await artifacts(world, run)) == {"a": {"v": 1}}
    assert len(world.sink.canceled) == 1
    assert (await world.main.engine.chains.complete_step(run.id, "a")).epoch == done.epoch


async def test_completing_the_last_failure_makes_the_run_a_success(world: World) -> None:
    world.sink.improvise = by_step(b=FAIL)
    chain = await a_chain(world, node("a"), node("b"))
    run = await start(world, chain)
    assert run.state is State.FAILED
    await world.main.engine.chains.complete_step(run.id, "b")
    assert (await world.run(run.id)).state is State.SUCCESS


async def test_a_step_that_waits_goes_on_when_somebody_says_so_or_its_callback_comes(any_world: World) -> None:
    world = any_world
    world.sink.improvise = by_step(a=WAIT, b=WAIT)
    chain = await a_chain(world, node("a", cfg={"awaits_callback": True}), node("b", "a"), node("c", "b"))
    run = await start(world, chain)
    a = (await steps(world, run))["a"]
    assert (a.state, a.callback_token is not None) == (State.CALLBACK_PENDING, True)
    await world.call_back(a)
    assert (await states(world, run))["b"] == "CALLBACK_PENDING"
    await world.advance("40h")
    await world.main.engine.chains.complete_step(run.id, "b")
    await world.settle()
    assert (await world.run(run.id)).state is State.SUCCESS


async def test_a_checkpoint_is_handed_to_the_next_attempt(world: World) -> None:
    def improvise(context: AttemptContext) -> Reply:
        if context.attempt == 1:
            context.save({"done": 7})
            return Reply(RETRY)
        return Reply(Outcome(Verdict.SUCCESS, result=msgspec.json.encode(context.checkpoint)))

    world.sink.improvise = improvise
    chain = await a_chain(world, node("a"))
    run = await start(world, chain)
    await world.advance("5s")
    assert await artifacts(world, run) == {"a": {"done": 7}}


async def test_a_chain_that_takes_too_long_is_ended(world: World) -> None:
    world.sink.always = HANGS
    chain = await a_chain(world, node("a"), node("b", "a"), timeout="30s")
    run = await start(world, chain)
    assert run.deadline_at is not None
    await world.advance("31s")
    assert (await world.run(run.id)).state is State.TIMEOUT
    assert (await states(world, run))["a"] == "CANCELED"


async def test_an_edited_definition_does_not_touch_a_started_run(world: World) -> None:
    chain = await a_chain(world, node("a"), node("b", "a"))
    run = await world.main.engine.chains.start(chain.id)
    await world.change(chain, target=TargetSpec("chain", {"nodes": [node("z")]}))
    assert sorted(await states(world, run)) == ["a", "b"]


async def test_a_chain_with_a_schedule_fires_like_any_job(world: World) -> None:
    world.sink.improvise = by_step(a=HANGS)
    chain = await a_chain(world, node("a"), job={"every": "10s", "overlap": OverlapRule.SKIP})
    await world.advance("20s")
    assert await world.states(chain) == [State.RUNNING, State.SKIPPED]
    [first, _] = await world.runs(chain)
    await world.answer((await steps(world, first))["a"])
    await world.advance("10s")
    assert await world.states(chain) == [State.SUCCESS, State.SKIPPED, State.RUNNING]


async def test_a_disabled_chain_does_not_start(world: World) -> None:
    chain = await a_chain(world, node("a"))
    await world.pause(chain)
    with pytest.raises(InvalidState, match="chain is disabled"):
        await world.main.engine.chains.start(chain.id)


async def test_nodes_share_a_chain_and_a_death_loses_and_doubles_nothing(any_world: World) -> None:
    world = any_world
    await world.node("b")
    world.sink.improvise = by_step(n3=[HANGS])
    chain = await a_chain(world, *[node(f"n{i}", *([f"n{i - 1}"] if i else [])) for i in range(6)])
    run = await start(world, chain)
    holder = world.sink.of((await steps(world, run))["n3"].id)[0].node
    world.kill(holder)
    await world.advance("30s")
    assert (await world.run(run.id)).state is State.SUCCESS
    order = said(world)
    assert order == ["n0", "n1", "n2", "n3", "n3", "n4", "n5"]


async def test_ten_thousand_steps_work(create_world: Create) -> None:
    world = await create_world(workers=100)
    wide = [{"id": f"w{i}"} for i in range(4999)]
    deep = [{"id": f"d{i}", "dependsOn": [f"d{i - 1}"] if i else []} for i in range(20)]
    chain = await a_chain(world, *wide, *deep, {"id": "end", "dependsOn": [one["id"] for one in wide]})
    run = await start(world, chain)
    assert run.state is State.SUCCESS
