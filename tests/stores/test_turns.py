"""Moving and claiming runs."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from ksana.domain.changes import JobChange
from ksana.domain.claims import Turn
from ksana.domain.moves import Move, advance
from ksana.domain.outcomes import Verdict
from ksana.domain.policies import Priority
from ksana.domain.ports import Store
from ksana.domain.queries import RunQuery
from ksana.domain.runs import Run, Trigger
from ksana.domain.states import Event, Reason, State
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
    ids,
    put,
)
from tests.stores.conftest import Reopen

MEGABYTES = 5 * 1024 * 1024
NASTY = [
    b"",
    b"\0\0\0",
    b"it's \"quoted\" %s %(a)s %% \\ \\' `x` ; -- /* */ :name {word} ?",
    bytes(range(256)) * 20,
    "é🚀任务".encode(),
    b"\xff\xfe\xc3\x28 invalid utf-8 \xed\xa0\x80",
]

# Claiming


async def test_a_claim_is_the_event_claim_field_by_field(store: Store) -> None:
    run = a_run(
        1,
        trigger=Trigger.CATCH_UP,
        slot_at=NOW - HOUR,
        state=State.RETRYING,
        reason=Reason.LEASE_LAPSED,
        epoch=4,
        attempt=2,
        failures=1,
        reclaims=1,
        priority=Priority.HIGH,
        due_at=NOW - SECOND,
        deadline_at=NOW + HOUR,
        started_at=NOW - HOUR,
        error="é🚀",
        callback_token="token",
        parent_id=7,
        step="步 step",
        input=b"\0\xff",
    )
    job = a_job(1)
    await store.add_jobs([job])
    await put(store, run, a_run(2))
    claimed = await claim(store, node_id=9, now=NOW + timedelta(microseconds=1))
    expected = [advance(one, Event.CLAIM, NOW + timedelta(microseconds=1), node_id=9) for one in (run, a_run(2))]
    assert [one.run for one in claimed] == expected
    assert [one.job for one in claimed] == [job, job]
    assert sorted(await store.get_runs([1, 2]), key=lambda run: run.id) == expected


async def test_claims_go_by_priority_then_due_instant_then_id_over_all_queues(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await put(
        store,
        a_run(1, priority=Priority.LOW, due_at=NOW - HOUR),
        a_run(2, due_at=NOW),
        a_run(3, due_at=NOW - SECOND, queue="b"),
        a_run(4, due_at=NOW - SECOND),
        a_run(5, priority=Priority.HIGH, due_at=NOW, queue="b"),
        a_run(6, due_at=NOW - 2 * SECOND, queue="b"),
        a_run(7, due_at=NOW - 3 * SECOND, queue="c"),
    )
    queues = ("default", "b")
    assert ids(await claim(store, limit=3, queues=queues)) == [5, 6, 3]
    assert ids(await claim(store, limit=3, queues=queues)) == [4, 2, 1]
    assert ids(await claim(store, limit=3, queues=queues)) == []


async def test_only_due_runs_are_claimed(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    tick = timedelta(microseconds=1)
    await put(store, a_run(1, due_at=NOW), a_run(2, due_at=NOW + tick))
    assert ids(await claim(store)) == [1]
    assert await store.next_due_at(["default"]) == NOW + tick
    assert ids(await claim(store, now=NOW + tick)) == [2]
    assert await store.next_due_at(["default"]) is None


async def test_only_runs_at_rest_are_claimed(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    for n, state in enumerate(State, 1):
        await put(store, a_run(n, state=state, ended_at=NOW if state.is_final else None))
    claimed = await claim(store)
    assert len(claimed) == 2
    assert {(await get(store, one.run.id)).state for one in claimed} == {State.RUNNING}


@pytest.mark.parametrize("queue", ["b", "default ", "Default", "队列"])
async def test_only_the_queues_asked_for_are_claimed(store: Store, queue: str) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1, queue=queue), a_run(2))
    assert ids(await claim(store)) == [2]
    assert await store.next_due_at(["default"]) is None
    assert await store.next_due_at([queue, "nobody's"]) == NOW
    assert ids(await claim(store, queues=(queue,))) == [1]


async def test_a_claim_for_nothing_gets_nothing(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1))
    assert await claim(store, limit=0) == []
    assert await claim(store, queues=()) == []
    assert await store.turn([]) == Turn(frozenset(), [])


async def test_a_claim_brings_the_job_as_it_is_now(store: Store, reopen: Reopen) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1), a_run(2))
    [one] = await claim(store, limit=1)
    newer = msgspec.structs.replace(a_job(1), version=2, name="newer")
    await (await reopen()).change_jobs([JobChange(version=1, job=newer)])
    await store.turn([a_move(one.run, Event.RETRY, due_at=NOW)])
    claimed = await claim(store)
    assert [(other.run.id, other.job and other.job.name) for other in claimed] == [(1, "newer"), (2, "newer")]


async def test_nodes_that_claim_at_once_share_the_runs(store: Store, reopen: Reopen) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, *[a_run(n) for n in range(1, 201)])
    nodes = [store, await reopen(), await reopen()]

    async def claim_all(node: Store, node_id: int) -> list[tuple[int, int]]:
        mine: list[tuple[int, int]] = []
        while claimed := await claim(node, node_id=node_id, limit=7):
            mine += [(one.run.id, node_id) for one in claimed]
        return mine

    shares = await asyncio.gather(*(claim_all(node, n) for n, node in enumerate(nodes * 2, 1)))
    shares.append(await claim_all(store, 1))
    claimed = sorted(one for share in shares for one in share)
    assert [run_id for run_id, _ in claimed] == list(range(1, 201))
    stored = await store.get_runs(range(1, 201))
    assert sorted((run.id, run.node_id) for run in stored) == claimed
    assert {run.epoch for run in stored} == {1}


# Moving


async def claimed_run(store: Store, id: int = 1, **said: Any) -> Run:
    if not await store.get_jobs([1]):
        await store.add_jobs([a_job(1)])
    await put(store, a_run(id, **said))
    [one] = await claim(store, node_id=5, limit=1)
    assert one.run.id == id
    return one.run


async def test_a_move_is_stored_as_it_is(store: Store) -> None:
    run = await claimed_run(store)
    attempt = an_attempt(run, code=503, error="é🚀", result=b"\0", timed_out=True, verdict=Verdict.RETRY)
    move = a_move(run, Event.RETRY, NOW + SECOND, due_at=NOW + HOUR, error="busy", attempt=attempt)
    assert await store.turn([move]) == Turn(frozenset(), [])
    assert await get(store, 1) == move.run
    assert await store.attempts(1) == [attempt]


async def test_a_turn_moves_and_then_claims(store: Store) -> None:
    run = await claimed_run(store)
    await put(store, a_run(2))
    turn = await store.turn([a_move(run, Event.RETRY, due_at=NOW - SECOND)], a_claim(node_id=6))
    assert ids(turn.claimed) == [1, 2]
    assert (turn.claimed[0].run.attempt, turn.claimed[0].run.node_id) == (2, 6)


async def test_every_move_of_a_large_batch_is_stored(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, *[a_run(n) for n in range(1, 301)])
    claimed = await claim(store, limit=300)
    moves = [a_move(one.run, Event.SUCCEED, attempt=an_attempt(one.run)) for one in reversed(claimed)]
    assert (await store.turn(moves)).lost == frozenset()
    page = await store.find_runs(RunQuery(states=frozenset({State.SUCCESS}), limit=1000))
    assert {run.id: run for run in page.items} == {move.run.id: move.run for move in moves}
    assert await store.attempts(300) == [an_attempt(claimed[-1].run)]


async def test_a_stale_move_loses_and_leaves_no_trace(store: Store) -> None:
    run = await claimed_run(store)
    other = await claimed_run(store, 2)
    winner = a_move(run, Event.CANCEL, reason=Reason.OPERATOR)
    await store.turn([winner])
    late = a_move(run, Event.SUCCEED, attempt=an_attempt(run), frees_slot=True, taken_from=5)
    good = a_move(other, Event.SUCCEED, attempt=an_attempt(other))
    nobody = a_move(a_run(404, state=State.RUNNING), Event.SUCCEED)
    turn = await store.turn([late, nobody, good])
    assert turn.lost == {1, 404}
    assert await get(store, 1) == winner.run
    assert await store.attempts(1) == []
    assert await get(store, 2) == good.run
    assert await store.attempts(2) == [good.attempt]


async def test_the_first_of_two_moves_from_the_same_moment_counts(store: Store) -> None:
    run = await claimed_run(store)
    first = a_move(run, Event.SUCCEED, attempt=an_attempt(run))
    second = a_move(run, Event.FAIL, attempt=an_attempt(run), error="late")
    assert (await store.turn([first, second])).lost == frozenset()
    assert await get(store, 1) == first.run
    assert await store.attempts(1) == [first.attempt]


async def test_a_move_offered_again_beside_the_next_one_of_its_run_does_no_harm(store: Store) -> None:
    run = await claimed_run(store)
    first = a_move(run, Event.RETRY, due_at=NOW, attempt=an_attempt(run))
    await store.turn([first])
    [again] = await claim(store)
    second = a_move(again.run, Event.SUCCEED, attempt=an_attempt(again.run))
    assert (await store.turn([first, second])).lost == frozenset()
    assert await get(store, 1) == second.run
    assert await store.attempts(1) == [first.attempt, second.attempt]


async def test_of_nodes_that_move_a_run_at_once_one_wins(store: Store, reopen: Reopen) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, *[a_run(n) for n in range(1, 31)])
    runs = [one.run for one in await claim(store)]
    nodes = [store, await reopen(), await reopen()]
    events = [Event.SUCCEED, Event.FAIL, Event.CANCEL]

    async def settle(node: Store, event: Event, order: list[Run]) -> set[int]:
        moves = [a_move(run, event, attempt=an_attempt(run, error=event)) for run in order]
        return {run.id for run in order} - (await node.turn(moves)).lost

    won = await asyncio.gather(
        *(
            settle(node, event, runs[:: 1 if n else -1])
            for n, (node, event) in enumerate(zip(nodes, events, strict=True))
        )
    )
    assert sum(map(len, won)) == 30
    for event, winners in zip(events, won, strict=True):
        for run_id in winners:
            assert (await get(store, run_id)).state is advance(runs[0], event, NOW).state
            assert [attempt.error for attempt in await store.attempts(run_id)] == [event]


# What is kept of an attempt


async def test_bodies_come_back_byte_by_byte(store: Store) -> None:
    for id, body in enumerate(NASTY, 1):
        run = await claimed_run(store, id, input=body)
        exchange = an_exchange(
            request_headers={"Ünï": "cødé %s '"},
            request_body=body,
            response_headers={"Set-Cookie": "a=b; 🚀"},
            response_body=body[::-1],
            truncated=True,
        )
        attempt = an_attempt(run, exchange=exchange, result=body)
        await store.turn([a_move(run, Event.SUCCEED, attempt=attempt)])
        assert await store.attempts(id) == [attempt]
        assert (await get(store, id)).input == body


@pytest.mark.parametrize("unit", [b"\0", b"'", b"x%\xff"])
async def test_bodies_of_five_megabytes_come_back_byte_by_byte(store: Store, unit: bytes) -> None:
    run = await claimed_run(store)
    body = unit * (MEGABYTES // len(unit))
    attempt = an_attempt(run, exchange=an_exchange(request_body=b"small", response_body=body))
    await store.turn([a_move(run, Event.SUCCEED, attempt=attempt)])
    assert await store.attempts(1) == [attempt]


async def test_a_large_request_and_a_large_response_fit_together(store: Store) -> None:
    run = await claimed_run(store)
    body = bytes(range(256)) * (MEGABYTES // 256)
    attempt = an_attempt(run, exchange=an_exchange(request_body=body, response_body=body))
    await store.turn([a_move(run, Event.SUCCEED, attempt=attempt)])
    assert await store.attempts(1) == [attempt]


async def test_a_long_error_is_kept_whole_with_the_attempt_and_cut_on_the_run(store: Store) -> None:
    run = await claimed_run(store)
    error = "🚀é" * 5000
    await store.turn([a_move(run, Event.FAIL, error=error, attempt=an_attempt(run, error=error))])
    assert (await get(store, 1)).error == error[:1024]
    assert [attempt.error for attempt in await store.attempts(1)] == [error]


@pytest.mark.parametrize("error", ["nul \0 inside", "half \ud800 a character"])
async def test_an_error_no_database_can_hold_does_not_hold_its_batch_up(store: Store, error: str) -> None:
    run = await claimed_run(store)
    exchange = an_exchange(request_line=error, response_headers={error: error})
    attempt = an_attempt(run, error=error, exchange=exchange)
    assert (await store.turn([a_move(run, Event.FAIL, error=error, attempt=attempt)])).lost == frozenset()
    stored = await get(store, 1)
    assert stored.state is State.FAILED
    assert (stored.error[:4], stored.error[-6:]) == (error[:4], error[-6:])


async def test_attempts_come_oldest_first(store: Store) -> None:
    run = await claimed_run(store)
    for _ in range(12):
        await store.turn([a_move(run, Event.RETRY, due_at=NOW, attempt=an_attempt(run))])
        [one] = await claim(store)
        run = one.run
    assert [attempt.number for attempt in await store.attempts(1)] == list(range(1, 13))
    assert await store.attempts(2) == []


# Callbacks


async def test_a_run_is_found_by_its_token(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1, callback_token="AbC"), a_run(2, callback_token="abc"), a_run(3))
    found = await store.run_by_token("abc")
    assert found == a_run(2, callback_token="abc")
    assert await store.run_by_token("nobody's") is None
    assert await store.run_by_token("") is None


async def test_a_waiting_callback_keeps_its_token_and_deadline(store: Store) -> None:
    run = await claimed_run(store, callback_token="token")
    move = a_move(run, Event.ACCEPT, deadline_at=NOW + HOUR)
    await store.turn([move])
    assert await store.run_by_token("token") == move.run
    done = Move(move.run.epoch, advance(move.run, Event.SUCCEED, NOW, reason=Reason.CALLBACK))
    await store.turn([done])
    assert await store.run_by_token("token") == done.run
