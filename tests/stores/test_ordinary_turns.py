"""Turns as they mostly are: results that end their runs alike, and a claim. A store may have a short way for them, and
it must do the same."""

import msgspec

from ksana.domain.changes import JobChange
from ksana.domain.moves import Move
from ksana.domain.policies import Priority
from ksana.domain.ports import Store
from ksana.domain.runs import Run
from ksana.domain.states import Event, Reason, State
from tests.stores.builders import a_claim, a_job, a_move, a_run, an_attempt, an_exchange, claim, get, ids, put
from tests.stores.conftest import Reopen


async def claimed_runs(store: Store, count: int) -> list[Run]:
    await store.add_jobs([a_job(1)])
    await put(store, *[a_run(n) for n in range(1, count + 1)])
    return [one.run for one in await claim(store)]


def answered(run: Run) -> Move:
    exchange = an_exchange(request_body=b"asked %d" % run.id, response_body=b"answered %d" % run.id)
    attempt = an_attempt(run, code=200, result=exchange.response_body, exchange=exchange)
    return a_move(run, Event.SUCCEED, attempt=attempt)


async def test_ends_are_stored_with_what_went_over_the_wire_and_the_next_are_claimed_in_order(store: Store) -> None:
    moves = [answered(run) for run in await claimed_runs(store, 3)]
    await put(store, a_run(11, priority=Priority.LOW), a_run(12), a_run(13, priority=Priority.HIGH))
    turn = await store.turn(moves, a_claim(node_id=6, limit=2))
    assert (turn.lost, ids(turn.claimed)) == (frozenset(), [13, 12])
    assert all(one.job is not None and one.job.id == 1 for one in turn.claimed)
    assert [await get(store, one.run.id) for one in turn.claimed] == [one.run for one in turn.claimed]
    for move in moves:
        assert await get(store, move.run.id) == move.run
        assert await store.attempts(move.run.id) == [move.attempt]


async def test_a_turn_that_finds_nothing_to_claim_still_ends_its_runs(store: Store) -> None:
    moves = [answered(run) for run in await claimed_runs(store, 2)]
    turn = await store.turn(moves, a_claim())
    assert (turn.lost, turn.claimed) == (frozenset(), [])
    assert [(await get(store, n)).state for n in (1, 2)] == [State.SUCCESS, State.SUCCESS]


async def test_results_alone_are_stored(store: Store) -> None:
    moves = [answered(run) for run in await claimed_runs(store, 2)]
    assert (await store.turn(moves)).lost == frozenset()
    assert [await store.attempts(n) for n in (1, 2)] == [[move.attempt] for move in moves]


async def test_of_ends_that_come_too_late_nothing_is_kept(store: Store) -> None:
    first, second, third = await claimed_runs(store, 3)
    canceled = a_move(second, Event.CANCEL, reason=Reason.OPERATOR)
    await store.turn([canceled])
    await put(store, a_run(4))
    turn = await store.turn([answered(run) for run in (first, second, third)], a_claim())
    assert (turn.lost, ids(turn.claimed)) == (frozenset({2}), [4])
    assert await get(store, 2) == canceled.run
    assert await store.attempts(2) == []
    assert [len(await store.attempts(n)) for n in (1, 3)] == [1, 1]


async def test_ends_that_are_offered_again_change_nothing(store: Store) -> None:
    moves = [a_move(run, Event.SUCCEED, attempt=an_attempt(run)) for run in await claimed_runs(store, 2)]
    await store.turn(moves, a_claim())
    await store.turn(moves, a_claim())
    for move in moves:
        assert await get(store, move.run.id) == move.run
        assert await store.attempts(move.run.id) == [move.attempt]


async def test_a_run_that_is_tried_again_comes_with_its_job_as_it_is_now(store: Store, reopen: Reopen) -> None:
    first, second = await claimed_runs(store, 2)
    newer = msgspec.structs.replace(a_job(1), version=2, name="newer")
    await (await reopen()).change_jobs([JobChange(version=1, job=newer)])
    await store.turn([a_move(second, Event.RETRY, due_at=second.due_at)])
    turn = await store.turn([answered(first)], a_claim())
    assert [(one.run.id, one.job and one.job.name) for one in turn.claimed] == [(2, "newer")]
