"""Claims for followers: whoever ends a step is handed those that waited for it, in the same commit and under the same
fences as if they had been let in first and claimed then."""

from typing import Any

import msgspec
import pytest

from ksana.domain.claims import Claim, Turn
from ksana.domain.plans import ChainPlan
from ksana.domain.ports import Store
from ksana.domain.states import State
from ksana.stores.sql import relays
from ksana.stores.sql.store import SqlStore
from tests.stores.builders import NOW, SECOND, a_claim, a_move, a_run, an_attempt, get, put
from tests.stores.conftest import Reopen
from tests.stores.families import SUCCEED, a_chain_job, a_chain_run, a_dag, begin, branched, shown, states

LATER = NOW + SECOND
LINE = a_dag("a", "b<a", "c<b", "d<c")


def for_followers(**said: Any) -> Claim:
    return msgspec.structs.replace(a_claim(node_id=7, now=LATER, **said), for_followers=True)


async def a_line(store: Store, dag: dict[str, Any] = LINE) -> None:
    """Have a chain whose first step is held by node 7."""
    await store.add_jobs([a_chain_job(1)])
    await begin(store, dag)
    await store.turn([], a_claim(node_id=7))


async def succeed(store: Store, step: str, artifact: bytes | None = None, **said: Any) -> Turn:
    """End a step, and ask for what follows from it."""
    [run] = [child for child in await store.children(1) if child.step == step]
    move = a_move(run, SUCCEED, LATER, attempt=an_attempt(run, result=artifact))
    return await store.turn([msgspec.structs.replace(move, artifact=artifact)], for_followers(**said))


def steps(turn: Turn) -> list[str | None]:
    return [one.run.step for one in turn.claimed]


async def test_a_line_is_handed_on_step_by_step_to_its_end(store: Store) -> None:
    await a_line(store)
    for step, heir in ("a", "b"), ("b", "c"), ("c", "d"):
        turn = await succeed(store, step)
        assert (turn.lost, turn.admitted, turn.followed) == (frozenset(), 1, [])
        [one] = turn.claimed
        run = one.run
        assert (run.step, run.state, run.node_id, one.job) == (heir, State.RUNNING, 7, None)
        assert (run.epoch, run.attempt, run.due_at, run.started_at) == (2, 1, LATER, LATER)
        assert run == await get(store, run.id)
        # What ended it is told, as of any other run.
        assert [attempt.run_id for attempt in await store.attempts(run.id - 1)] == [run.id - 1]
    turn = await succeed(store, "d")
    assert (turn.claimed, [move.run.id for move, _ in turn.followed]) == ([], [1])
    assert await shown(store) == "SUCCESS: a=SUCCESS b=SUCCESS c=SUCCESS d=SUCCESS"


async def test_several_steps_are_handed_over_at_once_as_far_as_there_is_room(store: Store) -> None:
    await a_line(store, a_dag("a", "b<a", "c<b", "d<b", "e<c", "f<c", "g<e"))
    assert steps(await succeed(store, "a")) == ["b"]
    assert steps(await succeed(store, "b")) == ["c", "d"]
    assert steps(await succeed(store, "d")) == []
    turn = await succeed(store, "c", limit=1)
    assert (turn.admitted, steps(turn)) == (2, ["e"])
    assert (await states(store))["f"] is State.SCHEDULED


@pytest.mark.parametrize("foreign", ["b", "c"])
async def test_steps_of_queues_that_others_serve_are_let_in_for_them(store: Store, foreign: str) -> None:
    await store.add_jobs([a_chain_job(1)])
    await put(store, a_chain_run(1, dag=LINE))
    [parent] = [one.run for one in (await store.turn([], a_claim())).claimed]
    move = branched(parent, ChainPlan(LINE), 10)
    assert move.branch is not None
    children = [
        msgspec.structs.replace(child, queue="far" if child.step == foreign else "default")
        for child in move.branch.children
    ]
    branch = msgspec.structs.replace(move.branch, children=tuple(children))
    await store.turn([msgspec.structs.replace(move, branch=branch)], a_claim(node_id=7))
    if foreign == "c":
        await succeed(store, "a")
    turn = await succeed(store, chr(ord(foreign) - 1))
    assert (turn.admitted, steps(turn)) == (1, [])
    assert (await states(store))[foreign] is State.SCHEDULED
    assert [one.run.step for one in (await store.turn([], a_claim(now=LATER, queues=["far"]))).claimed] == [foreign]


async def test_a_late_result_hands_nothing_over(store: Store) -> None:
    await a_line(store)
    await succeed(store, "a")
    b = await get(store, 11)
    late = a_move(msgspec.structs.replace(b, epoch=b.epoch - 1), SUCCEED, LATER, attempt=an_attempt(b))
    turn = await store.turn([late], for_followers())
    assert (turn.lost, turn.claimed, turn.admitted) == (frozenset({11}), [], 0)
    assert await shown(store) == "RUNNING: a=SUCCESS b=RUNNING c=WAITING d=WAITING"
    assert steps(await succeed(store, "b")) == ["c"]


async def test_a_result_offered_again_changes_nothing_more(store: Store) -> None:
    await a_line(store)
    await succeed(store, "a")
    b = await get(store, 11)
    move = a_move(b, SUCCEED, LATER, attempt=an_attempt(b))
    assert steps(await store.turn([move], for_followers())) == ["c"]
    assert steps(await store.turn([move], for_followers())) == []
    assert (await get(store, 12)).epoch == 2
    assert await shown(store) == "RUNNING: a=SUCCESS b=SUCCESS c=RUNNING d=WAITING"


async def test_what_steps_hand_on_is_kept_with_their_end(store: Store) -> None:
    await a_line(store)
    assert await store.keep_checkpoint(10, (await get(store, 10)).epoch, b'"half"')
    for step, heir in ("a", "b"), ("b", "c"), ("c", "d"):
        assert steps(await succeed(store, step, artifact=f'"{step}"'.encode())) == [heir]
    await succeed(store, "d")
    kept = await store.kept([10, 11, 12, 13])
    assert {id: (one.artifact, one.checkpoint) for id, one in kept.items()} == {
        10: (b'"a"', b'"half"'),
        11: (b'"b"', None),
        12: (b'"c"', None),
    }
    results = [[attempt.result for attempt in await store.attempts(id)] for id in (10, 11, 12, 13)]
    assert results == [[b'"a"'], [b'"b"'], [b'"c"'], [None]]


async def test_a_late_result_leaves_nothing_to_keep(store: Store) -> None:
    await a_line(store)
    await succeed(store, "a")
    b = await get(store, 11)
    late = a_move(msgspec.structs.replace(b, epoch=b.epoch - 1), SUCCEED, LATER, attempt=an_attempt(b))
    turn = await store.turn([msgspec.structs.replace(late, artifact=b"1")], for_followers())
    assert (turn.lost, await store.kept([11])) == (frozenset({11}), {})


async def test_nodes_that_pass_a_line_to_each_other_see_what_the_other_did(store: Store, reopen: Reopen) -> None:
    names = [f"s{n}" for n in range(9)]
    await a_line(store, a_dag(names[0], *[f"{name}<{names[n]}" for n, name in enumerate(names[1:])]))
    nodes = [store, store, await reopen()]
    for number, name in enumerate(names[:-1]):
        assert steps(await succeed(nodes[number % 3], name)) == [names[number + 1]]
    await succeed(store, names[-1])
    assert (await get(store, 1)).state is State.SUCCESS


async def test_other_runs_that_are_due_go_to_a_claim_for_anything(store: Store) -> None:
    await a_line(store)
    await put(store, a_run(2))
    assert "b" in steps(await succeed(store, "a"))
    await store.turn([], a_claim(node_id=8, now=LATER))
    assert (await get(store, 2)).state is State.RUNNING


@pytest.mark.parametrize("artifact", [None, b"[1]"])
async def test_sql_passes_a_line_on_without_looking_for_work(
    store: Store, monkeypatch: pytest.MonkeyPatch, artifact: bytes | None
) -> None:
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
    await a_line(store)
    for step in "abcd":
        await succeed(store, step, artifact)
    # The first end reads the family, and after the last there is nobody to pass on to.
    assert passed == [True, True]
