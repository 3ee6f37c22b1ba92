"""Ends by success go in lots that rest on what a node claimed; where that is not so any more, the store looks again."""

import msgspec
from redis.asyncio import Redis

from ksana.domain.changes import JobChange
from ksana.domain.moves import Move
from ksana.domain.states import Event, Reason, State
from ksana.stores.redis.ends import in_lots
from ksana.stores.redis.store import RedisStore
from tests.stores.builders import MINUTE, NOW, SECOND, a_job, a_move, a_run, an_attempt, claim, get, one_at_a_time, put
from tests.stores.redis.keys import sets_told_again, sets_under


async def claimed_ends(store: RedisStore, count: int = 4) -> list[Move]:
    """Runs of two jobs, claimed, and how they end."""
    await store.add_jobs([a_job(1), a_job(2)])
    await put(store, *[a_run(n, job_id=1 + n % 2, due_at=NOW - n * SECOND) for n in range(1, count + 1)])
    claimed = await claim(store, limit=count)
    return [a_move(one.run, Event.SUCCEED, attempt=an_attempt(one.run)) for one in claimed]


async def test_ends_that_are_alike_are_one_lot(store: RedisStore) -> None:
    moves = await claimed_ends(store)
    other = a_move(a_run(9, state=State.RUNNING, epoch=1, attempt=1, node_id=5), Event.FAIL, error="no")
    lots, others = in_lots([*moves, other])
    assert list(lots.values()) == [moves]
    assert others == [other]


async def test_a_lot_stands_in_every_set_and_is_counted_as_if_one_by_one(
    store: RedisStore, client: Redis, fresh_redis_prefix: str
) -> None:
    moves = await claimed_ends(store)
    assert (await store.turn(moves)).lost == frozenset()
    for move in moves:
        assert await get(store, move.run.id) == move.run
        assert await store.attempts(move.run.id) == [move.attempt]
    assert await sets_under(client, fresh_redis_prefix) == await sets_told_again(store, [1, 2])
    await store.roll_up(NOW + MINUTE)
    [minute] = await store.minutes(NOW, NOW + MINUTE)
    assert minute.count == len(moves)
    assert minute.late_ms == sum((NOW - move.run.due_at) // SECOND * 1000 for move in moves)


async def test_one_that_was_moved_meanwhile_is_lost_and_the_others_count(
    store: RedisStore, client: Redis, fresh_redis_prefix: str
) -> None:
    moves = await claimed_ends(store)
    canceled = a_move(msgspec.structs.replace(moves[1].run, state=State.RUNNING, epoch=1), Event.CANCEL)
    await store.turn([canceled])
    turn = await store.turn(moves)
    assert turn.lost == {moves[1].run.id}
    assert {(await get(store, move.run.id)).state for move in moves if move is not moves[1]} == {State.SUCCESS}
    assert (await get(store, moves[1].run.id)).state is State.CANCELED
    assert await store.attempts(moves[1].run.id) == []
    assert await sets_under(client, fresh_redis_prefix) == await sets_told_again(store, [1, 2])


async def test_a_lot_frees_the_slots_of_its_jobs(store: RedisStore) -> None:
    await store.add_jobs([a_job(1, overlap=one_at_a_time())])
    await put(store, a_run(1), a_run(2, state=State.WAITING, reason=Reason.SLOT))
    [one] = await claim(store)
    turn = await store.turn([a_move(one.run, Event.SUCCEED, attempt=an_attempt(one.run), frees_slot=True)])
    assert turn.admitted == 1
    assert (await get(store, 2)).state is State.SCHEDULED


async def test_a_job_that_changes_meanwhile_changes_nothing_about_the_end(store: RedisStore) -> None:
    moves = await claimed_ends(store, 1)
    [job] = await store.get_jobs([moves[0].run.job_id or 0])
    await store.change_jobs([JobChange(version=job.version, job=msgspec.structs.replace(job, version=2))])
    assert (await store.turn(moves)).lost == frozenset()
    assert await get(store, 1) == moves[0].run
