"""What comes between looking at a queue and handing its items out, and the sets that governed items stand in."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from redis.asyncio import Redis

from ksana.domain.changes import Settlement
from ksana.domain.errors import InvalidArgument
from ksana.domain.handing_out import Pulled
from ksana.domain.items import acked, failed
from ksana.domain.objects import Epistemic, Gate, GovernedObject, ObjectQuery, Risk
from ksana.domain.ports import Store
from ksana.domain.queries import RunQuery
from ksana.domain.retention import Retention
from ksana.domain.states import Event
from ksana.stores.redis.scripts import HAND_OUT, LOOK_AT_ITEMS, Script
from ksana.stores.redis.store import RedisStore
from tests.stores.builders import HOUR, NOW, a_move, get
from tests.stores.conftest import Reopen
from tests.stores.redis.keys import names_under, sets_told_again, sets_under
from tests.stores.test_governed import about, an_entry, an_object, ids, know, limit, uncertain
from tests.stores.test_items import a_pull, an_item, fill

Between = Callable[[], Awaitable[object]]


@pytest.fixture
async def other(reopen: Reopen) -> Store:
    return await reopen()


def before(store: RedisStore, monkeypatch: pytest.MonkeyPatch, script: Script, number: int, between: Between) -> None:
    """Have something happen just before the script runs for the so-manieth time."""
    run, left = store._link.run, iter(range(number, 0, -1))

    async def watched(asked: Script, *args: Any) -> Any:
        if asked is script and next(left, None) == 1:
            await between()
        return await run(asked, *args)

    monkeypatch.setattr(store._link, "run", watched)


async def _pause(other: Store) -> None:
    await limit(other, 2, is_paused=True)


async def _close_a_gate(other: Store) -> None:
    await know(other, an_object(version=2, risk=Risk.HIGH))


async def _cancel(other: Store) -> None:
    await other.turn([a_move(await get(other, 1), Event.CANCEL)])


async def _pull(other: Store) -> None:
    assert ids(await other.pull(a_pull(1))) == [1]


async def _pull_another(other: Store) -> None:
    assert ids(await other.pull(a_pull(1, types=("y",)))) == [3]


async def _learn_of_an_object(other: Store) -> None:
    await know(other, an_object("m2", risk=Risk.HIGH))


@pytest.mark.parametrize(
    ("between", "out", "kept_back"),
    [
        (_pause, [], []),
        (_close_a_gate, [2, 3], [1]),
        (_cancel, [2, 3], []),
        (_pull, [2], []),
        (_pull_another, [1], []),
        (_learn_of_an_object, [1, 3], [2]),
    ],
)
async def test_what_comes_between_counts(
    store: RedisStore,
    other: Store,
    monkeypatch: pytest.MonkeyPatch,
    between: Callable[[Store], Awaitable[None]],
    out: list[int],
    kept_back: list[int],
) -> None:
    await know(store, an_object())
    await fill(store, about(1, type="x"), about(2, "m2"), an_item(3, type="y"))
    await limit(store, concurrency=2)
    before(store, monkeypatch, HAND_OUT, 1, lambda: between(other))
    pulled = await store.pull(a_pull())
    assert (ids(pulled), [run.id for run in pulled.blocked]) == (out, kept_back)
    assert [await get(store, run.id) for run in pulled.runs] == pulled.runs


async def test_a_budget_that_another_uses_up_meanwhile_is_not_used_twice(
    store: RedisStore, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await know(store, uncertain(budget=1))
    sms = [msgspec.structs.replace(about(n), queue="@sms") for n in (1, 2)]
    await fill(store, sms[0], about(3))
    before(store, monkeypatch, HAND_OUT, 1, lambda: other.pull(a_pull(queue="@sms")))
    pulled = await store.pull(a_pull())
    assert (pulled.runs, [refusal.run for refusal in pulled.refused]) == ([], [about(3)])
    assert (await store.get_objects(["memory/m1"]))["memory/m1"].verified == 1


async def test_a_queue_that_is_set_free_meanwhile_is_pulled_from_as_any_other(
    store: RedisStore, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await know(store, an_object())
    await fill(store, about(1), an_item(2))
    before(store, monkeypatch, HAND_OUT, 1, lambda: other.turn([a_move(about(1), Event.CANCEL)]))
    assert await store.pull(a_pull()) == Pulled([await get(store, 2)])


@pytest.mark.parametrize("gone", [200, 199])
async def test_pages_go_on_though_the_last_one_shown_went_away(
    store: RedisStore, other: Store, monkeypatch: pytest.MonkeyPatch, gone: int
) -> None:
    busy = [an_item(n, subject="busy") for n in range(1, 302)]
    await fill(store, *busy, *[an_item(n) for n in (400, 401)])
    await limit(store, key_concurrency=1)
    assert ids(await store.pull(a_pull(1))) == [1]
    moved = a_move(await get(store, gone + 1), Event.CANCEL)
    before(store, monkeypatch, LOOK_AT_ITEMS, 2, lambda: other.turn([moved]))
    assert ids(await store.pull(a_pull())) == [400, 401]


async def test_types_go_on_over_pages_each_where_it_was(store: RedisStore) -> None:
    await fill(store, *[an_item(n, type="abc"[n % 3], subject="busy") for n in range(1, 500)])
    await fill(store, *[an_item(n, type="abc"[n % 3]) for n in range(500, 512)])
    await limit(store, key_concurrency=1)
    wanted = [n for n in range(500, 512) if n % 3]
    assert ids(await store.pull(a_pull(types=("b", "c", "b")))) == [1, *wanted]


async def test_types_of_objects_stand_in_order_whatever_is_in_their_names(store: RedisStore) -> None:
    objects = [an_object(id, type=type) for type, id in (("a", "1"), ("a", "1/2"), ("a", "2"), ("a b", "1"))]
    await know(store, *reversed(objects))
    assert (await store.find_objects(ObjectQuery())).items == objects
    assert (await store.find_objects(ObjectQuery(type="a"))).items == objects[:3]
    assert await store.get_objects(["a/1/2"]) == {"a/1/2": objects[1]}


@pytest.mark.parametrize(
    "wrong",
    [
        Settlement(objects=(an_object("\0"),)),
        Settlement(objects=(an_object(attributes={"n": 2**64}),)),
        Settlement(objects=(an_object(attributes={"half": "\ud800"}),)),
        Settlement(entries=(an_entry(1, subject_id="\0"),)),
    ],
)
async def test_what_no_value_can_hold_is_refused_in_words(store: RedisStore, wrong: Settlement) -> None:
    with pytest.raises(InvalidArgument, match="Redis cannot hold this value"):
        await store.settle(wrong)


async def test_every_set_says_what_the_values_say_and_nothing_stays_behind(
    store: RedisStore, client: Redis, fresh_redis_prefix: str
) -> None:
    opened = {"persona": Gate.PASS, "cognition": Gate.PASS}
    objects: list[GovernedObject] = [uncertain(), an_object("m2", risk=Risk.HIGH, gates=opened, next_action_at=NOW)]
    await know(store, *objects)
    await fill(store, *[about(n, f"m{n % 3}") for n in range(1, 9)], *[an_item(n) for n in range(20, 24)])
    first = (await store.pull(a_pull(7))).runs
    await store.turn([acked(first[0], NOW), failed(first[1], NOW, "no"), failed(first[2], NOW, "no", is_final=True)])
    await limit(store, key_concurrency=2, concurrency=6)
    await store.pull(a_pull(2))
    settled = a_move(await get(store, 20), Event.CANCEL)
    await store.settle(Settlement(moves=(settled,), objects=(an_object("m2", version=2),), entries=(an_entry(1),)))
    assert await sets_under(client, fresh_redis_prefix) == await sets_told_again(store, [])
    runs = (await store.find_runs(RunQuery(limit=100))).items
    await store.turn([a_move(run, Event.CANCEL) for run in runs if run.ended_at is None])
    later = NOW + 2 * HOUR
    await store.prune(Retention(later, later, 0, 100))
    # What is left are names of which there are few.
    left = {"objects", "objects:order", "settings", "pulls", "standing", "queues", "surfaces"}
    assert set(await names_under(client, fresh_redis_prefix)) == left
    assert {one.epistemic for one in (await store.find_objects(ObjectQuery())).items} == {
        Epistemic.UNCERTAIN,
        Epistemic.UNASSESSED,
    }
