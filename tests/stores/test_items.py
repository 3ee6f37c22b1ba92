"""Items of the queue on every store: enqueued once, handed out to one worker at a time, in order."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec

from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.items import (
    SCOPE,
    Enqueued,
    Item,
    Pull,
    PullOrder,
    Report,
    acked,
    extended,
    failed,
    item_of,
    new_item,
    pulled,
    redriven,
    released,
    report_of,
    stored_queue,
)
from ksana.domain.policies import Priority
from ksana.domain.ports import Store
from ksana.domain.queries import ErrorGroup, QueueCounts, RunQuery
from ksana.domain.retention import Retention
from ksana.domain.runs import Run
from ksana.domain.states import State
from tests.stores.builders import HOUR, NOW, SECOND, a_claim, get
from tests.stores.conftest import Reopen

QUEUE = stored_queue("mail")


def an_item(id: int, due: timedelta = timedelta(0), priority: Priority = Priority.NORMAL, **said: Any) -> Run:
    item = Item(payload={"n": id})
    return new_item(id, "mail", item, NOW, due_at=NOW + due, priority=priority, **said)


def keyed(run: Run, key: str) -> Enqueued:
    return Enqueued(run, IdempotencyRecord(SCOPE, key, b"", 0, str(run.id).encode(), NOW))


def a_pull(limit: int = 100, **said: Any) -> Pull:
    values: dict[str, Any] = {"queue": QUEUE, "now": NOW, "limit": limit, "holder": "w1", "until": NOW + HOUR}
    return Pull(**(values | said))


async def fill(store: Store, *runs: Run) -> None:
    assert await store.enqueue([Enqueued(run) for run in runs]) == [run.id for run in runs]


async def test_items_are_handed_out_once_in_the_order_of_due_instant_then_priority_then_id(store: Store) -> None:
    await fill(
        store,
        an_item(1, SECOND),
        an_item(2, -SECOND, Priority.LOW),
        an_item(3, -SECOND, Priority.HIGH),
        an_item(4),
        an_item(5),
        an_item(6, -SECOND * 2, Priority.LOW),
    )
    first = (await store.pull(a_pull(3))).runs
    assert [run.id for run in first] == [6, 3, 2]
    assert first[0] == await get(store, 6)
    assert (first[0].state, first[0].attempt, first[0].holder, first[0].node_id) == (State.RUNNING, 1, "w1", None)
    assert (first[0].deadline_at, item_of(first[0]).payload) == (NOW + HOUR, {"n": 6})
    assert [run.id for run in (await store.pull(a_pull())).runs] == [4, 5]
    assert (await store.pull(a_pull())).runs == []
    assert [run.id for run in (await store.pull(a_pull(now=NOW + SECOND))).runs] == [1]
    assert (await store.turn([], a_claim())).claimed == []


async def test_by_age_a_priority_is_a_head_start_and_nobody_starves(store: Store) -> None:
    await fill(store, an_item(1, -HOUR, Priority.LOW), an_item(2, -SECOND, Priority.HIGH), an_item(3, -SECOND * 9))
    assert [run.id for run in (await store.pull(a_pull(order=PullOrder.AGE))).runs] == [1, 2, 3]


async def test_only_the_types_that_are_wanted_are_handed_out(store: Store) -> None:
    await fill(store, an_item(1, type="a.x"), an_item(2, type="b.y"), an_item(3), an_item(4, type="b.y"))
    assert [run.id for run in (await store.pull(a_pull(types=("b.y", "c.z")))).runs] == [2, 4]
    assert [run.id for run in (await store.pull(a_pull())).runs] == [1, 3]


async def test_a_key_is_used_once_for_ever(store: Store) -> None:
    assert await store.enqueue([keyed(an_item(1), "k"), keyed(an_item(2), "l"), keyed(an_item(3), "k")]) == [1, 2, 1]
    assert [run.id for run in (await store.pull(a_pull())).runs] == [1, 2]
    late = NOW + 1000 * HOUR
    await store.prune(Retention(late, late, 0, 100))
    assert await store.enqueue([keyed(an_item(4), "l"), keyed(an_item(5), "m")]) == [2, 5]
    assert [run.id for run in (await store.pull(a_pull())).runs] == [5]


async def test_of_pulls_and_enqueues_at_once_each_item_goes_to_one(store: Store, reopen: Reopen) -> None:
    stores = [store, await reopen(), await reopen()]
    same = [stores[i % 3].enqueue([keyed(an_item(100 + i), "same")]) for i in range(9)]
    assert len({id for [id] in await asyncio.gather(*same)}) == 1
    await fill(store, *[an_item(n) for n in range(1, 61)])
    pulls = [stores[i % 3].pull(a_pull(7, holder=f"w{i}")) for i in range(10)]
    handed_out = [run.id for each in await asyncio.gather(*pulls) for run in each.runs]
    handed_out += [run.id for run in (await store.pull(a_pull())).runs]
    assert len(handed_out) == len(set(handed_out)) == 61


async def test_what_is_given_back_can_be_pulled_again_and_a_lapsed_lease_shows(store: Store) -> None:
    await fill(store, an_item(1), an_item(2))
    one, two = (await store.pull(a_pull())).runs
    assert one == pulled(an_item(1), a_pull())
    await store.turn([released(one, NOW)])
    [again] = (await store.pull(a_pull(holder="w2"))).runs
    assert (again.id, again.attempt, again.failures, again.holder) == (1, 2, 0, "w2")
    assert {claimed.run.id for claimed in await store.lapsed(NOW + HOUR, 10)} == {1, 2}
    assert await store.lapsed(NOW + HOUR - SECOND, 10) == []
    assert two.holder == "w1"


async def test_work_begins_by_our_clock_whatever_the_worker_takes_the_time_to_be(store: Store) -> None:
    await fill(store, an_item(1, HOUR))
    [held] = (await store.pull(a_pull(now=NOW + 2 * HOUR, at=NOW))).runs
    assert (held.started_at, await get(store, 1)) == (NOW, held)


async def test_what_a_worker_tells_is_kept_and_what_is_put_back_may_carry_something_else(store: Store) -> None:
    await fill(store, an_item(1), an_item(2))
    one, two = (await store.pull(a_pull())).runs
    longer = extended(one, NOW + 2 * HOUR, Report({"done": 3}))
    await store.turn([longer, acked(two, NOW, b'"out"', Report(None, "aud_1", NOW))])
    kept = await store.kept([1, 2])
    assert (report_of(kept[1]), report_of(kept[2])) == (Report({"done": 3}), Report(None, "aud_1", NOW))
    assert kept[2].artifact == b'"out"'
    dead = failed(longer.run, NOW, "no", is_final=True)
    back = redriven(dead.run, NOW, NOW + SECOND, Item("other", 7))
    await store.turn([dead])
    await store.turn([back])
    [again] = (await store.pull(a_pull(now=NOW + SECOND))).runs
    assert (again.id, item_of(again), again.error) == (1, Item("other", 7), "no")
    assert await get(store, 1) == again


async def test_queues_are_counted_and_dead_letters_grouped_by_their_error(store: Store) -> None:
    assert (await store.queue_counts(NOW), await store.dead_by_error(None, 10)) == ([], [])
    sms = [new_item(n, "sms", Item(), NOW, due_at=NOW) for n in (20, 21)]
    await fill(store, *[an_item(n, n * SECOND) for n in range(6)][1:], an_item(9, HOUR, Priority.LOW), *sms)
    held = (await store.pull(a_pull(3, now=NOW + 3 * SECOND))).runs
    buried = [failed(_last(run), NOW + run.id * SECOND, f"error {run.id % 2}") for run in held]
    await store.turn(buried)
    await store.pull(a_pull(1, now=NOW + 9 * SECOND))
    await store.pull(a_pull(1, queue=stored_queue("sms")))
    assert await store.queue_counts(NOW + 5 * SECOND) == [
        QueueCounts(queue=QUEUE, queued=2, due=1, oldest_due_at=NOW + 5 * SECOND, running=1, dead_letters=3),
        QueueCounts(queue="@sms", queued=1, due=1, oldest_due_at=NOW, running=1),
    ]
    ones = ErrorGroup(queue=QUEUE, error="error 1", count=2, first_at=NOW + SECOND, last_at=NOW + 3 * SECOND, run_id=3)
    assert await store.dead_by_error(None, 1) == [ones]
    assert [group.count for group in await store.dead_by_error(QUEUE, 9)] == [2, 1]
    assert await store.dead_by_error("@mai", 9) == []


def _last(run: Run) -> Run:
    """The item as it is before its last attempt fails."""
    return msgspec.structs.replace(run, input=msgspec.json.encode(Item(max_attempts=1)))


async def test_items_are_found_by_queue_type_holder_and_error(store: Store) -> None:
    await fill(store, an_item(1, type="a.x"), an_item(2, type="b.y"), new_item(3, "sms", Item(), NOW, due_at=NOW))
    one, _ = (await store.pull(a_pull(holder="w9"))).runs
    await store.turn([failed(one, NOW, "Time is up (50%)")])
    asked: list[tuple[dict[str, Any], list[int]]] = [
        ({"queue": QUEUE}, [2, 1]),
        ({"steps": frozenset({"b.y", "c"})}, [2]),
        ({"holder": "w9"}, [2, 1]),
        ({"holder": "w"}, []),
        ({"error": "is up (50%"}, [1]),
        ({"error": "IS UP"}, []),
        ({"error": "%"}, [1]),
        ({"queue": QUEUE, "states": frozenset({State.RUNNING}), "holder": "w9", "kind": "item"}, [2]),
    ]
    for said, ids in asked:
        found = await store.find_runs(RunQuery(**said))
        assert ([run.id for run in found.items], found.total) == (ids, len(ids)), said
