"""Steps that do nothing: done by the commit that lets them start, on every store, with all that follows from it."""

from typing import Any

import msgspec
import pytest

from ksana.domain.claims import Claim, Turn
from ksana.domain.moves import Branch, Move
from ksana.domain.plans import ChainPlan, begun, new_child, shape_of_plan, write_plan
from ksana.domain.ports import Store
from ksana.domain.states import State
from ksana.domain.steering import complete_step, ended, retry_step
from ksana.stores.sql import relays
from ksana.stores.sql.store import SqlStore
from tests.stores.builders import NOW, SECOND, a_claim, a_move, an_attempt, get, put
from tests.stores.conftest import Reopen
from tests.stores.families import FAIL, SUCCEED, a_chain_job, a_chain_run, a_dag, begin, end, ends, shown, states

LATER = NOW + SECOND
GATE = a_dag("a", "b", "(gate)<a,b", "c<gate", "(last)<c")
LINE = a_dag("a", "(j)<a", "b<j", "(k)<b", "(l)<k", "c<l", "(end)<c")


def for_followers(**said: Any) -> Claim:
    return msgspec.structs.replace(a_claim(node_id=7, now=LATER, **said), for_followers=True)


async def succeed(store: Store, step: str) -> Turn:
    """End a step, and ask for what follows from it."""
    [run] = [child for child in await store.children(1) if child.step == step]
    return await store.turn([a_move(run, SUCCEED, LATER, attempt=an_attempt(run))], for_followers())


def followed(turn: Turn) -> list[str]:
    return [f"{move.run.step or 'chain'}={move.run.state}" for move, _ in turn.followed]


async def test_a_gate_opens_with_the_end_of_the_last_it_waits_for(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store, GATE)
    assert followed(await end(store, a=SUCCEED)) == []
    turn = await end(store, now=LATER, b=SUCCEED)
    assert (followed(turn), turn.admitted) == (["gate=SUCCESS"], 1)
    assert await shown(store) == "RUNNING: a=SUCCESS b=SUCCESS gate=SUCCESS c=SCHEDULED last=WAITING"
    gate = await get(store, 12)
    assert gate == turn.followed[0][0].run
    assert (gate.started_at, gate.ended_at, gate.due_at) == (LATER, LATER, LATER)
    assert (gate.attempt, gate.epoch, gate.reason, gate.node_id) == (0, 1, None, None)
    assert await store.attempts(12) == []
    turn = await end(store, now=LATER + SECOND, c=SUCCEED)
    assert followed(turn) == ["last=SUCCESS", "chain=SUCCESS"]
    assert (await get(store, 1)).state is State.SUCCESS


async def test_a_gate_is_skipped_with_what_needs_it(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store, GATE)
    turn = await end(store, a=SUCCEED, b=FAIL)
    assert followed(turn) == ["chain=FAILED"]
    assert await shown(store) == "FAILED: a=SUCCESS b=FAILED gate=SKIPPED c=SKIPPED last=SKIPPED"


async def test_a_step_that_is_tried_again_opens_the_gate(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store, GATE)
    await end(store, a=SUCCEED, b=FAIL)
    shape = shape_of_plan(ChainPlan(GATE))
    moved = await store.steer(1, lambda family: complete_step(family, shape, 1, LATER, reason="", artifact=None))
    assert "gate" in [move.run.step for move, _ in moved if move.run.state is State.SUCCESS]
    assert await shown(store) == "RUNNING: a=SUCCESS b=SUCCESS gate=SUCCESS c=SCHEDULED last=WAITING"
    gate = await get(store, 12)
    assert (gate.started_at, gate.ended_at, gate.due_at, gate.attempt) == (LATER, LATER, LATER, 0)
    [move] = await ends(store, 1, LATER, c=FAIL)
    await store.turn([move])
    await store.steer(1, lambda family: retry_step(family, shape, 3, LATER, reason="", artifact=None))
    assert followed(await end(store, now=LATER, c=SUCCEED)) == ["last=SUCCESS", "chain=SUCCESS"]


async def test_whoever_ends_a_step_is_handed_what_comes_behind_the_gates(store: Store, reopen: Reopen) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store, LINE)
    await store.turn([], a_claim(node_id=7))
    other = await reopen()
    for step, heir, passed in ("a", "b", {"j"}), ("b", "c", {"k", "l"}):
        turn = await succeed(store, step)
        assert (turn.lost, turn.admitted, [one.run.step for one in turn.claimed]) == (frozenset(), 1, [heir])
        assert {move.run.step for move, _ in turn.followed} == passed
        for move, _ in turn.followed:
            assert move.run == await get(other, move.run.id)
            assert (move.run.started_at, move.run.ended_at, move.epoch) == (LATER, LATER, 0)
    assert followed(await succeed(store, "c")) == ["end=SUCCESS", "chain=SUCCESS"]
    assert set((await states(other)).values()) == {State.SUCCESS}


async def test_sql_passes_a_line_on_beyond_its_gates(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    if not isinstance(store, SqlStore):
        # Claiming as ever is the contract's other half; the tests above hold it.
        return
    passed: list[bool] = []
    pass_on = relays.pass_on

    async def watched(*given: Any) -> Any:
        rows = await pass_on(*given)
        passed.append(rows is not None)
        return rows

    monkeypatch.setattr(relays, "pass_on", watched)
    await store.add_jobs([a_chain_job(1)])
    await begin(store, LINE)
    await store.turn([], a_claim(node_id=7))
    for step in "abc":
        await succeed(store, step)
    # The first end reads the family, and after the last there is nobody to pass on to.
    assert passed == [True]
    assert (await get(store, 1)).state is State.SUCCESS


async def test_a_chain_of_nothing_but_gates_is_over_when_it_begins(store: Store) -> None:
    size = 1_000
    dag = a_dag("(n0)", *[f"(n{i})<n{i - 1}" for i in range(1, size)])
    await store.add_jobs([a_chain_job(1)])
    await put(store, a_chain_run(1, dag=dag))
    [claimed] = (await store.turn([], a_claim())).claimed
    parent, plan = claimed.run, ChainPlan(dag)
    children = [new_child(parent, 10 + i, f"n{i}", NOW, kind="noop") for i in range(size)]
    born, over = begun(children, shape_of_plan(plan), LATER)
    assert over is State.SUCCESS
    move = Move(parent.epoch, ended(parent, over, LATER), branch=Branch(born, write_plan(plan)))
    turn = await store.turn([move], for_followers())
    assert (turn.lost, turn.claimed, turn.admitted) == (frozenset(), [], 0)
    assert (await get(store, 1)).state is State.SUCCESS
    stored = await store.children(1)
    assert stored == list(born)
    assert {(child.state, child.started_at, child.ended_at) for child in stored} == {(State.SUCCESS, LATER, LATER)}
