"""Runs with children: branching, what the end of a child means for its family, steering, what is kept."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from ksana.domain.alerts import AlertQuery
from ksana.domain.archive import Section
from ksana.domain.callbacks import CallbackRecord, CallbackStatus, Heard
from ksana.domain.chains import Shape
from ksana.domain.changes import JobChange
from ksana.domain.errors import InvalidState, NotFound
from ksana.domain.graph import Step
from ksana.domain.moves import Kept, Move
from ksana.domain.outcomes import Verdict
from ksana.domain.plans import ChainPlan, JobPlan, MapPlan, read_plan, shape_of_plan
from ksana.domain.ports import Store
from ksana.domain.queries import RunQuery
from ksana.domain.retention import Retention
from ksana.domain.states import UNSTARTED, Event, Reason, State
from ksana.domain.steering import (
    Family,
    Steer,
    complete_step,
    expire,
    go_on,
    halt,
    retry_step,
    stopped,
)
from ksana.stores.open import open_store
from tests.stores.builders import (
    HOUR,
    NOW,
    SECOND,
    a_claim,
    a_job,
    a_move,
    a_run,
    an_attempt,
    an_exchange,
    claim,
    get,
    get_job,
    ids,
    one_at_a_time,
    put,
)
from tests.stores.conftest import Reopen
from tests.stores.everything import CARRIED, contents
from tests.stores.families import (
    DIAMOND,
    FAIL,
    SUCCEED,
    a_chain_job,
    a_chain_run,
    a_dag,
    begin,
    branch,
    branched,
    end,
    ends,
    shown,
    states,
)

LATER = NOW + SECOND
DIAMOND_SHAPE = shape_of_plan(ChainPlan(DIAMOND))

# Branching


async def test_a_branch_adds_the_children_and_the_plan_with_its_move(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await put(store, a_run(1, kind="chain", input=b"{}"))
    [parent] = [one.run for one in await claim(store)]
    move = branched(parent, ChainPlan(DIAMOND), 10)
    assert move.branch is not None
    late = Move(parent.epoch - 1, move.run, branch=move.branch)
    assert (await store.turn([late])).lost == {1}
    assert await store.children(1) == []
    assert (await store.turn([move, move])).lost == frozenset()
    assert await store.children(1) == list(move.branch.children)
    assert await get(store, 1) == msgspec.structs.replace(move.run, input=move.branch.plan)
    assert await store.attempts(1) == [move.attempt]
    # Whoever is not sure that it arrived offers it again.
    assert (await store.turn([move])).lost == {1}
    assert [child.id for child in await store.children(1)] == [10, 11, 12, 13]
    assert await store.children(10) == []


async def test_a_branched_run_is_held_by_nobody_and_one_that_stops_is_found_by_its_deadline(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store)
    assert await store.lapsed(NOW + HOUR, 100) == []
    await store.turn([stopped(await get(store, 1), LATER)])
    assert await store.lapsed(NOW, 100) == []
    assert ids(await store.lapsed(LATER, 100)) == [1]
    assert (await store.counts(NOW)).unfinished[State.STOPPING] == 1


# What follows


async def test_steps_start_when_all_they_need_is_done_and_the_end_follows(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store)
    assert await shown(store) == "RUNNING: a=SCHEDULED b=WAITING c=WAITING d=WAITING"
    [move] = await ends(store, 1, LATER, a=SUCCEED)
    turn = await store.turn([move], a_claim(node_id=7, now=LATER))
    assert (turn.admitted, turn.followed) == (2, [])
    # Whoever ends a step gets the next ones in the same turn.
    assert [(one.run.step, one.run.node_id, one.job) for one in turn.claimed] == [("b", 7, None), ("c", 7, None)]
    [_, b, _, d] = await store.children(1)
    assert (b.due_at, b.reason, b.epoch, b.attempt) == (LATER, None, 2, 1)
    assert (d.state, d.reason, d.epoch) == (State.WAITING, Reason.DEPENDENCY, 0)
    assert (await end(store, c=SUCCEED)).admitted == 0
    assert (await end(store, b=SUCCEED)).admitted == 1
    turn = await end(store, now=LATER, d=SUCCEED)
    parent = await get(store, 1)
    assert (parent.state, parent.reason, parent.ended_at, parent.error) == (State.SUCCESS, Reason.CHILDREN, LATER, "")
    [(last, job)] = turn.followed
    assert (last.run, last.epoch, job) == (parent, parent.epoch - 1, await get_job(store, 1))


async def test_the_end_of_several_steps_in_one_turn_is_taken_together(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store)
    await begin(store, a_dag("x"), 2)
    await end(store, a=SUCCEED)
    moves = [*await ends(store, 1, b=SUCCEED, c=SUCCEED), *await ends(store, 2, x=FAIL)]
    turn = await store.turn(moves)
    assert [(move.run.id, move.run.state) for move, _ in turn.followed] == [(2, State.FAILED)]
    assert await shown(store) == "RUNNING: a=SUCCESS b=SUCCESS c=SUCCESS d=SCHEDULED"
    # A move that lost means nothing for the family.
    assert (await store.turn(moves)).lost == {11, 12, 20}
    assert await shown(store) == "RUNNING: a=SUCCESS b=SUCCESS c=SUCCESS d=SCHEDULED"


async def test_a_failure_skips_what_needs_it_and_ends_the_run_with_alerts_and_a_free_slot(store: Store) -> None:
    await store.add_jobs([a_chain_job(1, overlap=one_at_a_time())])
    await begin(store)
    await put(store, a_chain_run(2, state=State.WAITING, reason=Reason.SLOT))
    [move] = await ends(store, 1, LATER, a=FAIL)
    turn = await store.turn([move], a_claim(now=LATER), hooks=["mail", "chat"])
    assert await shown(store) == "FAILED: a=FAILED b=SKIPPED c=SKIPPED d=SKIPPED"
    parent, [_, b, _, d] = await get(store, 1), await store.children(1)
    assert (parent.error, parent.failures, parent.ended_at) == ("a: boom", 1, LATER)
    assert {(one.reason, one.ended_at, one.epoch) for one in (b, d)} == {(Reason.DEPENDENCY, LATER, 1)}
    assert ([move.run for move, _ in turn.followed], turn.admitted) == ([parent], 1)
    assert ids(turn.claimed) == [2]
    alerts = (await store.find_alerts(AlertQuery())).items
    assert [(one.run_id, one.epoch, one.hook) for one in alerts] == [
        (1, parent.epoch, "chat"),
        (1, parent.epoch, "mail"),
    ]
    assert b'"a: boom"' in alerts[0].body


@pytest.mark.parametrize(
    ("dag", "told", "outcome"),
    [
        (a_dag("a", "b?all_done<a"), [{"a": FAIL}, {"b": SUCCEED}], "FAILED: a=FAILED b=SUCCESS"),
        (a_dag("a", "b?any_failed<a"), [{"a": FAIL}, {"b": SUCCEED}], "FAILED: a=FAILED b=SUCCESS"),
        (a_dag("a", "b?any_failed<a", "c<b"), [{"a": SUCCEED}], "SUCCESS: a=SUCCESS b=SKIPPED c=SKIPPED"),
        (a_dag("a", "b", failFast=True), [{"a": FAIL}], "RUNNING: a=FAILED b=RUNNING"),
        (a_dag("a", "b", "c<b", failFast=True), [{"a": FAIL}, {"b": SUCCEED}], "FAILED: a=FAILED b=SUCCESS c=WAITING"),
        (a_dag("a", "b", "c", maxParallel=2), [{"b": SUCCEED}], "RUNNING: a=RUNNING b=SUCCESS c=SCHEDULED"),
        (a_dag("a", "b", maxParallel=1), [{"a": FAIL}, {"b": SUCCEED}], "FAILED: a=FAILED b=SUCCESS"),
    ],
)
async def test_a_chain_moves_on_as_its_graph_says(
    store: Store, dag: dict[str, object], told: list[dict[str, Event]], outcome: str
) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store, dag)
    for events in told:
        await end(store, 1, NOW, (), **events)
    assert await shown(store) == outcome


async def test_the_end_of_a_run_is_an_end_in_its_own_family(store: Store) -> None:
    """Three generations: a chain, a step mapped over a list, and a chain for each item."""
    await store.add_jobs([a_chain_job(1, overlap=one_at_a_time())])
    await begin(store, a_dag("map", "after<map", "other"))
    await branch(store, 10, MapPlan(Step(id="map", max_parallel=1), [1, 2]), 20)
    assert await shown(store, 10) == "RUNNING: 0=SCHEDULED 1=WAITING"
    await branch(store, 20, ChainPlan(a_dag("leaf")), 30)
    await end(store, 20, leaf=SUCCEED)
    assert await shown(store, 10) == "RUNNING: 0=SUCCESS 1=SCHEDULED"
    await branch(store, 21, ChainPlan(a_dag("leaf")), 31)
    await end(store, other=SUCCEED)
    turn = await end(store, 21, LATER, ["mail"], leaf=FAIL)
    assert [(move.run.id, move.run.error) for move, _ in turn.followed] == [
        (21, "leaf: boom"),
        (10, "1: leaf: boom"),
        (1, "map: 1: leaf: boom"),
    ]
    assert [job and job.id for _, job in turn.followed] == [None, None, 1]
    assert await shown(store) == "FAILED: map=FAILED after=SKIPPED other=SUCCESS"
    assert {(await get(store, run_id)).ended_at for run_id in (1, 10, 21, 31)} == {LATER}
    assert [one.run_id for one in (await store.find_alerts(AlertQuery())).items] == [21, 10, 1]


async def test_nothing_follows_for_a_run_that_is_over(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store, a_dag("a", "b", "c<b"))
    await end(store, a=SUCCEED)
    await store.steer(1, lambda family: [a_move(family.parent, Event.TIME_OUT, frees_slot=True)])
    turn = await end(store, b=SUCCEED)
    assert (turn.followed, turn.admitted) == ([], 0)
    assert await shown(store) == "TIMEOUT: a=SUCCESS b=SUCCESS c=WAITING"


async def test_a_stopping_run_ends_with_the_last_step_under_way_and_the_rest_stays(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store, a_dag("a", "b", "c<a"))
    moves = await ends(store, 1, a=SUCCEED, b=SUCCEED)
    await store.steer(1, lambda family: [stopped(family.parent, NOW)])
    await store.turn(moves[:1])
    assert await shown(store) == "STOPPING: a=SUCCESS b=RUNNING c=WAITING"
    turn = await store.turn(moves[1:])
    assert [(move.run.id, move.run.state) for move, _ in turn.followed] == [(1, State.CANCELED)]
    assert await shown(store) == "CANCELED: a=SUCCESS b=SUCCESS c=WAITING"


async def test_a_step_that_is_tried_again_by_itself_counts_by_how_it_ends_then(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store, a_dag("a", "b", "c"))
    await end(store, a=FAIL)
    await store.turn([a_move(await get(store, 10), Event.RERUN, due_at=NOW)])
    await end(store, b=SUCCEED, c=SUCCEED)
    assert await shown(store) == "RUNNING: a=RUNNING b=SUCCESS c=SUCCESS"
    await end(store, a=SUCCEED)
    assert await shown(store) == "SUCCESS: a=SUCCESS b=SUCCESS c=SUCCESS"


async def test_two_nodes_that_end_siblings_at_once_both_count(store: Store, reopen: Reopen) -> None:
    await store.add_jobs([a_chain_job(1)])
    families = range(1, 9)
    for number in families:
        await begin(store, a_dag("a", "b", "c<a,b"), number)
    other = await reopen()
    for number in families:
        # Whoever comes second must see what the first did, however well it knows the family already.
        [a, b] = await ends(store, number, a=SUCCEED, b=SUCCEED)
        turns = await asyncio.gather(store.turn([a]), other.turn([b]))
        assert sum(turn.admitted for turn in turns) == 1
    last = [move for number in families for move in await ends(store, number, c=SUCCEED)]
    await asyncio.gather(*[node.turn([move]) for move, node in zip(last, [store, other] * 4, strict=True)])
    assert {(await get(store, number)).state for number in families} == {State.SUCCESS}


async def test_nodes_that_take_turns_with_a_long_chain_lose_nothing(store: Store, reopen: Reopen) -> None:
    await store.add_jobs([a_chain_job(1)])
    names = [f"s{n}" for n in range(12)]
    dag = a_dag(names[0], *[f"{name}<{names[n]}" for n, name in enumerate(names[1:])])
    await begin(store, dag, first=100)
    nodes = [store, store, await reopen()]
    for number in range(len(names)):
        [one] = await claim(nodes[number % 3])
        assert one.run.step == names[number]
        await nodes[number % 3].turn([a_move(one.run, Event.SUCCEED)])
    assert (await get(store, 1)).state is State.SUCCESS


# Other ways to an end


async def test_a_callback_that_ends_a_step_moves_the_family_on(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store, a_dag("a", "b<a"))
    [a] = [one.run for one in await claim(store)]
    record = CallbackRecord(id=1, run_id=10, received_at=LATER, status=CallbackStatus.RECEIVED)
    assert await store.hear(Heard(record)) == []
    move = a_move(a, FAIL, LATER, error="boom")
    heard = Heard(msgspec.structs.replace(record, id=2), move, hooks=("mail",))
    followed = await store.hear(heard)
    assert followed is not None
    assert [(move.run, job and job.id) for move, job in followed] == [(await get(store, 1), 1)]
    assert await shown(store) == "FAILED: a=FAILED b=SKIPPED"
    assert [(one.run_id, one.hook) for one in (await store.find_alerts(AlertQuery())).items] == [(1, "mail")]
    assert await store.hear(heard) is None
    assert [one.id for one in await store.callbacks(10)] == [1, 2]


async def test_a_canceled_run_of_a_job_moves_the_family_on_that_waits_for_it(store: Store) -> None:
    callee = a_job(2)
    await store.add_jobs([a_chain_job(1), callee])
    await begin(store, a_dag("call", "after<call"))
    await branch(store, 10, JobPlan(2), 20, callee)
    assert (await get(store, 20)).job_id == 2
    paused = msgspec.structs.replace(callee, version=2, enabled=False, updated_at=LATER)
    canceled = await store.change_jobs(
        [JobChange(version=1, job=paused, cancels=UNSTARTED, reason=Reason.PAUSED)],
    )
    assert [run.id for run in canceled] == [20]
    assert await shown(store, 10) == "CANCELED: job=CANCELED"
    assert await shown(store) == "CANCELED: call=CANCELED after=SKIPPED"
    assert (await get(store, 1)).ended_at == LATER


# Steering


def retries(place: int, shape: Shape = DIAMOND_SHAPE) -> Steer:
    return lambda family: retry_step(family, shape, place, LATER, reason="again", artifact=None)


def completes(place: int, shape: Shape = DIAMOND_SHAPE, artifact: bytes | None = None) -> Steer:
    return lambda family: complete_step(family, shape, place, LATER, reason="by hand", artifact=artifact)


async def test_steering_applies_all_that_was_decided_and_the_chain_goes_on(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store)
    await end(store, a=SUCCEED)
    await end(store, b=FAIL, c=SUCCEED)
    assert await shown(store) == "FAILED: a=SUCCESS b=FAILED c=SUCCESS d=SKIPPED"
    seen: list[Family] = []

    def decide(family: Family) -> list[Move]:
        seen.append(family)
        return retries(1)(family)

    before = Family(await get(store, 1), await store.children(1))
    told = await store.steer(1, decide)
    assert seen == [before]
    assert [(move.run.id, move.run.state, job and job.id) for move, job in told] == [
        (11, State.RETRYING, None),
        (13, State.WAITING, None),
        (1, State.RUNNING, 1),
    ]
    assert await shown(store) == "RUNNING: a=SUCCESS b=RETRYING c=SUCCESS d=WAITING"
    await end(store, now=LATER, b=FAIL)
    assert await shown(store) == "FAILED: a=SUCCESS b=FAILED c=SUCCESS d=SKIPPED"
    # Two moves of one run in one decision: it waits again, and may start at once.
    told = await store.steer(1, completes(1, artifact=b'"mine"'))
    assert [move.run.state for move, _ in told if move.run.id == 13] == [State.WAITING, State.SCHEDULED]
    assert await store.kept([11]) == {11: Kept(run_id=11, artifact=b'"mine"')}
    await end(store, now=LATER, d=SUCCEED)
    assert await shown(store) == "SUCCESS: a=SUCCESS b=SUCCESS c=SUCCESS d=SUCCESS"
    assert await store.steer(1, completes(1)) == []


async def test_a_step_called_done_by_hand_keeps_what_was_tried(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store, a_dag("a", "b"))
    [a, _] = [one.run for one in await claim(store)]
    tried = an_attempt(a, verdict=Verdict.FAIL, exchange=an_exchange(response_body=b"no"))
    await store.turn([a_move(a, FAIL, attempt=tried)])
    await store.steer(1, completes(0, shape_of_plan(ChainPlan(a_dag("a", "b")))))
    assert await store.attempts(10) == [tried]
    assert (await store.last_attempts([10]))[10].attempt == tried


async def test_steering_that_is_refused_changes_nothing(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store)
    before = await contents(store)

    def refuse(family: Family) -> list[Move]:
        raise InvalidState("not now")

    with pytest.raises(InvalidState, match="not now"):
        await store.steer(1, refuse)
    with pytest.raises(InvalidState):
        await store.steer(1, retries(0))
    with pytest.raises(NotFound):
        await store.steer(99, lambda family: [])
    assert await store.steer(1, lambda family: []) == []
    assert await contents(store) == before


async def test_a_family_that_is_stopped_or_out_of_time_tells_the_one_above(store: Store) -> None:
    await store.add_jobs([a_chain_job(1, overlap=one_at_a_time())])
    await begin(store, a_dag("sub", "after?all_done<sub"))
    await branch(store, 10, ChainPlan(DIAMOND), 20)
    await put(store, a_chain_run(2, state=State.WAITING, reason=Reason.SLOT))
    [held] = [one.run for one in await claim(store, node_id=5)]
    told = await store.steer(10, lambda family: expire(family, LATER), ["mail"])
    assert [(move.run.id, move.run.state) for move, _ in told] == [(20, State.CANCELED), (10, State.TIMEOUT)]
    assert await shown(store, 10) == "TIMEOUT: a=CANCELED b=WAITING c=WAITING d=WAITING"
    assert (await store.beat(5, NOW, SECOND)).taken == [(20, held.epoch)]
    assert await shown(store) == "RUNNING: sub=TIMEOUT after=SCHEDULED"
    assert (await get(store, 11)).due_at == LATER
    assert [one.run_id for one in (await store.find_alerts(AlertQuery())).items] == [10]
    told = await store.steer(1, lambda family: expire(family, LATER), ["mail"])
    assert [(move.run.id, move.run.state) for move, _ in told] == [(11, State.CANCELED), (1, State.TIMEOUT)]
    assert (await get(store, 2)).state is State.SCHEDULED


async def test_a_stop_goes_down_and_the_ends_come_up_again(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store, a_dag("sub", "after<sub"))
    await branch(store, 10, ChainPlan(DIAMOND), 20)
    await store.steer(1, lambda family: [stopped(family.parent, NOW)])
    await store.steer(1, lambda family: halt(family, NOW))
    assert await shown(store) == "STOPPING: sub=STOPPING after=WAITING"
    told = await store.steer(10, lambda family: halt(family, LATER))
    assert [(move.run.id, move.run.state) for move, _ in told] == [
        (20, State.CANCELED),
        (10, State.CANCELED),
        (1, State.CANCELED),
    ]
    assert await shown(store) == "CANCELED: sub=CANCELED after=WAITING"


async def test_families_above_go_on_in_the_same_step(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store, a_dag("sub", "after<sub"))
    await branch(store, 10, ChainPlan(a_dag("in")), 20)
    await branch(store, 20, ChainPlan(a_dag("a", "b")), 30)
    await store.steer(20, lambda family: expire(family, NOW))
    assert await shown(store) == "FAILED: sub=FAILED after=SKIPPED"
    flat, before = shape_of_plan(ChainPlan(a_dag("a", "b"))), await contents(store)

    def go_on_above(family: Family) -> list[Move]:
        return go_on(family, shape_of_plan(read_plan(family.parent.input)), LATER)

    def refuse(family: Family) -> list[Move]:
        raise InvalidState("not now")

    with pytest.raises(InvalidState, match="not now"):
        await store.steer(20, retries(0, flat), (), refuse)
    assert await contents(store) == before
    # With one of two that are still over, it is over as before.
    assert [move.run.id for move, _ in await store.steer(20, completes(0, flat), (), go_on_above)] == [30, 20, 20]
    told = await store.steer(20, completes(1, flat), (), go_on_above)
    assert [(move.run.id, move.run.state) for move, _ in told] == [
        (31, State.SUCCESS),
        (20, State.RUNNING),
        (20, State.SUCCESS),
        (10, State.RUNNING),
        (10, State.SUCCESS),
        (11, State.WAITING),
        (1, State.RUNNING),
        (11, State.SCHEDULED),
    ]
    assert await shown(store) == "RUNNING: sub=SUCCESS after=SCHEDULED"
    await end(store, now=LATER, after=SUCCEED)
    assert await shown(store) == "SUCCESS: sub=SUCCESS after=SUCCESS"


async def test_people_and_workers_at_once_lose_nothing(store: Store, reopen: Reopen) -> None:
    await store.add_jobs([a_chain_job(1)])
    other = await reopen()
    families = range(1, 9)
    for number in families:
        await begin(store, a_dag("a", "b", "c<a,b"), number)
    shape = shape_of_plan(ChainPlan(a_dag("a", "b", "c<a,b")))
    for number in families:
        [a] = await ends(store, number, a=SUCCEED)
        await asyncio.gather(store.turn([a]), other.steer(number, completes(1, shape)))
        assert await shown(store, number) == "RUNNING: a=SUCCESS b=SUCCESS c=SCHEDULED"


# What is kept


async def test_an_artifact_and_a_checkpoint_are_replaced_one_without_the_other(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1), a_run(2))
    [run, _] = [one.run for one in await claim(store)]
    assert await store.kept([1, 2, 99]) == {}
    assert await store.keep_checkpoint(1, run.epoch, b"half-way")
    assert not await store.keep_checkpoint(1, run.epoch - 1, b"too late")
    assert not await store.keep_checkpoint(99, 0, b"nobody")
    assert await store.kept([1, 2]) == {1: Kept(run_id=1, checkpoint=b"half-way")}
    again = a_move(run, Event.RETRY, due_at=NOW)
    again = msgspec.structs.replace(again, artifact=b"", checkpoint=b"\0\xff")
    late = msgspec.structs.replace(again, epoch=run.epoch - 1, artifact=b"late")
    assert (await store.turn([late])).lost == {1}
    await store.turn([again])
    assert await store.kept([1]) == {1: Kept(run_id=1, artifact=b"", checkpoint=b"\0\xff")}
    [run] = [one.run for one in await claim(store)]
    assert await store.keep_checkpoint(1, run.epoch, b"further")
    done = msgspec.structs.replace(a_move(run, SUCCEED), artifact=b"[1]" * 100_000)
    await store.turn([done])
    whole = Kept(run_id=1, artifact=b"[1]" * 100_000, checkpoint=b"further")
    assert await store.kept([1, 2]) == {1: whole}
    assert not await store.keep_checkpoint(1, run.epoch, b"after the end")
    await store.turn([msgspec.structs.replace(again, epoch=run.epoch, artifact=b"again")])
    assert await store.kept([1]) == {1: whole}


# Reading, forgetting, moving house


async def test_children_are_found_or_left_out_as_asked(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store)

    async def found(query: RunQuery) -> list[int]:
        return [run.id for run in (await store.find_runs(query)).items]

    assert await found(RunQuery(descending=False)) == [1, 10, 11, 12, 13]
    assert await found(RunQuery(is_child=False)) == [1]
    assert await found(RunQuery(is_child=True, states=frozenset({State.WAITING}))) == [13, 12, 11]
    assert await found(RunQuery(parent_id=1, is_child=True)) == [13, 12, 11, 10]
    assert await found(RunQuery(parent_id=1, is_child=False)) == []


async def test_a_child_is_forgotten_with_its_parent_and_never_before(store: Store) -> None:
    await store.add_jobs([a_chain_job(1)])
    await begin(store, a_dag("sub", "b"))
    await branch(store, 10, ChainPlan(DIAMOND), 20)
    [one] = [one.run for one in await claim(store)]
    kept = msgspec.structs.replace(a_move(one, SUCCEED, attempt=an_attempt(one)), artifact=b"1")
    await store.turn([kept])
    await end(store, b=SUCCEED)
    record = CallbackRecord(id=1, run_id=20, received_at=NOW, status=CallbackStatus.RECEIVED)
    await store.hear(Heard(record))
    retention = Retention(NOW + HOUR, NOW + HOUR, 0, 100)
    assert await store.prune(retention) == 0
    assert (await states(store, 10))["a"] is State.SUCCESS
    await store.steer(10, lambda family: expire(family, NOW))
    assert (await get(store, 1)).state is State.FAILED
    await begin(store, a_dag("x"), 2, 30)
    # Of a run that was stopped some steps are never over; they go with it all the same.
    assert (await get(store, 23)).state is State.WAITING
    assert await store.prune(retention) == 1
    left = await contents(store)
    assert {run.id for run in left[Section.RUNS]} == {2, 30}
    assert {attempt.run_id for attempt in left[Section.ATTEMPTS]} == {2}
    assert (left[Section.KEPT], left[Section.CALLBACKS]) == ([], [])
    await end(store, 2, x=SUCCEED)
    assert await shown(store, 2) == "SUCCESS: x=SUCCESS"


async def test_a_chain_that_is_half_done_goes_on_in_another_store(store: Store, tmp_path: Path) -> None:
    source = open_store(f"json:{tmp_path}/elsewhere")
    await source.open()
    await source.add_jobs([a_chain_job(1)])
    await begin(source, a_dag("sub", "after<sub"))
    await branch(source, 10, ChainPlan(DIAMOND), 20)
    await end(source, 10, a=SUCCEED)
    await source.keep_checkpoint(21, (await get(source, 21)).epoch, b"half-way")
    there = await contents(source)
    await source.close()
    for section in CARRIED:
        await store.restore(section, there[section])
    assert await contents(store) == there
    assert ids(await claim(store)) == [21, 22]
    await end(store, 10, b=SUCCEED, c=SUCCEED)
    await end(store, 10, d=SUCCEED)
    await end(store, after=SUCCEED)
    assert await shown(store) == "SUCCESS: sub=SUCCESS after=SUCCESS"
