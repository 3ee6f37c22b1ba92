"""Forgetting what is old and summing up what has ended."""

import asyncio
import random
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.items import SCOPE
from ksana.domain.ports import Store
from ksana.domain.queries import Minute, RunQuery
from ksana.domain.retention import Retention
from ksana.domain.runs import Run
from ksana.domain.states import FINAL, Event, State
from tests.stores.builders import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    a_gap,
    a_job,
    a_move,
    a_planned_job,
    a_run,
    an_attempt,
    an_exchange,
    claim,
    fires,
    put,
)
from tests.stores.conftest import Reopen
from tests.stores.model import ModelStore

DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)


def ended(id: int, job_id: int = 1, at: datetime = NOW, state: State = State.SUCCESS, **said: Any) -> Run:
    return a_run(id, job_id, state=state, ended_at=at, **said)


def older_than(before: datetime, keep_last: int = 0, limit: int = 1000) -> Retention:
    return Retention(NOW, before, keep_last, limit)


async def left(store: Store) -> list[int]:
    return sorted(run.id for run in (await store.find_runs(RunQuery(limit=1000))).items)


async def test_runs_that_ended_before_the_instant_go(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, ended(1, at=NOW - TICK), ended(2, at=NOW), ended(3, at=NOW + DAY))
    assert await store.prune(older_than(NOW)) == 1
    assert await left(store) == [2, 3]


async def test_dead_letters_and_unfinished_runs_never_go(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    for n, state in enumerate(State, 1):
        long_ago = NOW - 365 * DAY
        await put(store, a_run(n, state=state, due_at=long_ago, ended_at=long_ago if state.is_final else None))
    assert await store.prune(older_than(NOW)) == len(FINAL) - 1
    kept = {run.state for run in (await store.find_runs(RunQuery(limit=100))).items}
    assert kept == set(State) - FINAL | {State.DEAD_LETTER}


async def test_the_newest_runs_of_each_job_stay(store: Store) -> None:
    await store.add_jobs([a_job(1), a_job(2), a_job(3)])
    await put(store, *[ended(n, 1, NOW - DAY) for n in range(1, 6)], *[ended(n, 2, NOW - DAY) for n in (6, 7)])
    await put(store, ended(8, 3, NOW - DAY), ended(9, 3, NOW - DAY), a_run(10, 3), a_run(11, 3))
    assert await store.prune(older_than(NOW, keep_last=2)) == 5
    assert await left(store) == [4, 5, 6, 7, 10, 11]


async def test_pruning_goes_on_though_many_old_runs_are_kept(store: Store) -> None:
    await store.add_jobs([a_job(n) for n in range(1, 9)])
    await put(store, *[ended(n, n, NOW - 2 * DAY) for n in range(1, 8)])
    await put(store, *[ended(n, 8, NOW - DAY) for n in range(8, 12)])
    assert [await store.prune(older_than(NOW, 1, limit=2)) for _ in range(3)] == [2, 1, 0]
    assert await left(store) == [1, 2, 3, 4, 5, 6, 7, 11]


async def test_a_step_forgets_no_more_than_its_limit(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    for n, state in enumerate([State.SUCCESS, State.FAILED, State.CANCELED] * 3, 1):
        await put(store, ended(n, at=NOW - n * SECOND, state=state))
    assert [await store.prune(older_than(NOW, limit=4)) for _ in range(4)] == [4, 4, 1, 0]


async def test_attempts_and_what_went_over_the_wire_go_with_their_run(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1), a_run(2))
    runs = [one.run for one in await claim(store)]
    moves = [
        a_move(run, Event.SUCCEED, at, attempt=an_attempt(run, exchange=an_exchange(request_body=b"x")))
        for run, at in zip(runs, (NOW - DAY, NOW), strict=True)
    ]
    await store.turn(moves)
    await store.prune(older_than(NOW))
    assert await store.attempts(1) == []
    assert await store.attempts(2) == [moves[1].attempt]
    # A run of the same number, were there one, would find nothing in its way.
    await put(store, a_run(1))
    [one] = await claim(store)
    await store.turn([a_move(one.run, Event.SUCCEED, attempt=an_attempt(one.run, exchange=an_exchange()))])
    assert len(await store.attempts(1)) == 1


async def test_old_gaps_and_old_answers_go(store: Store) -> None:
    await store.add_jobs([a_planned_job(1)])
    gaps = [a_gap(1, NOW - DAY), a_gap(1, NOW)]
    await store.fire_due(NOW, 1, fires(runs=lambda due: [], gaps=lambda due: gaps))
    for key, at in (("old", NOW - DAY), ("new", NOW)):
        await store.add_jobs([], IdempotencyRecord("v2", key, b"", 200, b"", at))
    await store.prune(older_than(NOW))
    assert [record.from_at for record in await store.fire_log(1, NOW - 2 * DAY, NOW + DAY, 10)] == [NOW]
    assert await store.find_idempotency("v2", "old") is None
    assert await store.find_idempotency("v2", "new") is not None


async def test_a_step_forgets_no_more_gaps_and_answers_than_its_limit(store: Store) -> None:
    await store.add_jobs([a_planned_job(1)])
    made_at_once = [msgspec.structs.replace(a_gap(1, NOW + n * SECOND), recorded_at=NOW - DAY) for n in range(5)]
    await store.fire_due(NOW, 1, fires(runs=lambda due: [], gaps=lambda due: made_at_once))
    for n in range(3):
        await store.add_jobs([], IdempotencyRecord("v2", str(n), b"", 200, b"", NOW - DAY))
        await store.add_jobs([], IdempotencyRecord(SCOPE, str(n), b"", 0, b"7", NOW - 2 * DAY))
    seen = []
    for _ in range(4):
        went = await store.prune(older_than(NOW, limit=2))
        gaps = await store.fire_log(1, NOW - DAY, NOW + DAY, 10)
        answers = [await store.find_idempotency(scope, str(n)) for n in range(3) for scope in ("v2", SCOPE)]
        seen.append((went, len(gaps), sum(answer is not None for answer in answers)))
    assert seen == [(2, 3, 4), (2, 1, 3), (1, 0, 3), (0, 0, 3)]


async def test_a_run_that_is_tried_again_while_pruning_is_not_lost(store: Store, reopen: Reopen) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, *[ended(n, at=NOW - DAY, state=State.FAILED) for n in range(1, 61)])
    other = await reopen()
    failed = sorted(await store.get_runs(range(1, 61)), key=lambda run: run.id)

    async def rerun() -> set[int]:
        won = set()
        for run in reversed(failed):
            turn = await other.turn([a_move(run, Event.RERUN, due_at=NOW)])
            won |= {run.id} - turn.lost
        return won

    async def prune() -> None:
        for _ in range(30):
            await store.prune(older_than(NOW, limit=2))

    won, _ = await asyncio.gather(rerun(), prune())
    unfinished = (await store.find_runs(RunQuery(states=frozenset({State.RETRYING}), limit=100))).items
    assert {run.id for run in unfinished} == won


# Minutes


async def some_history(store: Store, model: ModelStore) -> None:
    draw = random.Random(7)
    job = a_job(1)
    await store.add_jobs([job])
    await model.add_jobs([job])
    for n in range(1, 81):
        due_at = NOW - timedelta(seconds=draw.randint(60, 9000), microseconds=draw.randint(0, 999_999))
        started_at = draw.choice([None, due_at + timedelta(microseconds=draw.randint(-5_000_000, 5_000_000))])
        run = ended(
            n,
            at=due_at + timedelta(seconds=draw.random() * 50),
            state=draw.choice(sorted(FINAL)),
            kind=draw.choice(["http", "noop"]),
            due_at=due_at,
            started_at=started_at,
        )
        await put(store, run)
        await put(model, run)


@pytest.fixture
def model() -> ModelStore:
    return ModelStore({}, 1)


async def test_minutes_are_the_same_before_while_and_after_they_are_rolled_up(store: Store, model: ModelStore) -> None:
    await some_history(store, model)
    windows = [(NOW - DAY, NOW + DAY), (NOW - HOUR, NOW - HOUR / 2 + SECOND), (NOW - HOUR + TICK, NOW)]
    expected = [await model.minutes(*window) for window in windows]
    assert [await store.minutes(*window) for window in windows] == expected
    for until in (NOW - 2 * HOUR, NOW - HOUR, NOW - HOUR, NOW + 30 * SECOND, NOW + 30 * DAY):
        while await store.roll_up(until):
            assert [await store.minutes(*window) for window in windows] == expected
        assert await store.roll_up(until) == 0
        assert [await store.minutes(*window) for window in windows] == expected


async def test_only_whole_minutes_are_rolled_up(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, ended(1, at=NOW + SECOND))
    assert await store.roll_up(NOW + 59 * SECOND) == 0
    await put(store, ended(2, at=NOW + 2 * SECOND))
    assert await store.roll_up(NOW + MINUTE) == 1
    [minute] = await store.minutes(NOW, NOW + MINUTE)
    assert minute == Minute(minute_at=NOW, kind="noop", state=State.SUCCESS, count=2, busy_ms=0, late_ms=0)


async def test_rolled_up_minutes_outlive_their_runs(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, ended(1, at=NOW - HOUR))
    before = await store.minutes(NOW - DAY, NOW)
    while await store.roll_up(NOW):
        pass
    assert await store.prune(older_than(NOW)) == 1
    assert await store.minutes(NOW - DAY, NOW) == before != []


async def test_a_store_without_runs_has_nothing_to_roll_up(store: Store) -> None:
    assert await store.roll_up(NOW) == 0
    assert await store.minutes(NOW - DAY, NOW) == []
    await store.add_jobs([a_job(1)])
    await put(store, ended(1, at=NOW - DAY))
    assert await store.roll_up(NOW) > 0


async def test_a_year_of_silence_is_stepped_over_at_once(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, ended(1, at=NOW - 365 * DAY), ended(2, at=NOW - HOUR))
    steps = 0
    while await store.roll_up(NOW):
        steps += 1
    assert steps < 5
    assert [minute.count for minute in await store.minutes(NOW - 366 * DAY, NOW)] == [1, 1]


async def test_nodes_that_roll_up_at_once_count_everything_once(
    store: Store, reopen: Reopen, model: ModelStore
) -> None:
    await some_history(store, model)
    other = await reopen()

    async def roll(node: Store) -> int:
        minutes = 0
        while step := await node.roll_up(NOW):
            minutes += step
        return minutes

    rolled = await asyncio.gather(roll(store), roll(other), roll(other))
    assert await store.minutes(NOW - DAY, NOW) == await model.minutes(NOW - DAY, NOW)
    assert sum(rolled) <= 9000 // 60 + 1
