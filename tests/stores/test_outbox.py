"""The outbox: one alert for each hook and each move, leased by one node at a time, kept until it is settled."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec

from ksana.domain.alerts import Alert, AlertQuery, AlertState
from ksana.domain.ports import Store
from ksana.domain.retention import Retention
from ksana.domain.runs import Run
from ksana.domain.states import Event, State
from tests.stores.builders import HOUR, MINUTE, NOW, SECOND, a_job, a_move, a_run, claim, get, put
from tests.stores.conftest import Reopen

LATER = NOW + MINUTE


def an_alert(run_id: int = 1, epoch: int = 2, hook: str = "hook", **said: Any) -> Alert:
    values: dict[str, Any] = {"body": b'{"a": "\xff\x00"}', "created_at": NOW, "due_at": NOW}
    return Alert(run_id=run_id, epoch=epoch, hook=hook, **(values | said))


async def failing(store: Store, *alerts: Alert, id: int = 1) -> Run:
    """A run that has failed, with these alerts in the outbox."""
    await store.add_jobs([a_job(id)])
    await put(store, a_run(id, id))
    [one] = await claim(store)
    turn = await store.turn([a_move(one.run, Event.FAIL)], None, alerts)
    assert not turn.lost
    return await get(store, id)


async def found(store: Store, **said: Any) -> list[Alert]:
    return (await store.find_alerts(AlertQuery(**said))).items


async def test_an_alert_is_kept_with_the_move_it_tells_of(store: Store) -> None:
    """C-14, C-143: in the same step."""
    alerts = [an_alert(hook="https://one #a"), an_alert(hook="two 🙂")]
    run = await failing(store, *alerts)
    assert (run.state, run.epoch) == (State.FAILED, 2)
    assert await found(store) == alerts


async def test_the_alert_of_a_move_that_was_lost_is_not_kept(store: Store) -> None:
    await failing(store)
    stale = a_move(a_run(1, state=State.RUNNING, epoch=1), Event.FAIL)
    await store.add_jobs([a_job(5)])
    await put(store, a_run(5, 5))
    [other] = await claim(store)
    turn = await store.turn([stale, a_move(other.run, Event.FAIL)], None, [an_alert(1), an_alert(5)])
    assert turn.lost == {1}
    assert [alert.run_id for alert in await found(store)] == [5]


async def test_a_move_offered_again_makes_no_second_alert(store: Store) -> None:
    """The store may have done the step although its answer got lost."""
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1))
    [one] = await claim(store)
    move = a_move(one.run, Event.FAIL)
    await store.turn([move], None, [an_alert()])
    await store.lease_alerts(["hook"], NOW, LATER, 10)
    await store.turn([move], None, [an_alert()])
    [alert] = await found(store)
    assert alert.attempts == 1


async def test_a_run_that_fails_again_is_told_of_again(store: Store) -> None:
    run = await failing(store, an_alert())
    await store.turn([a_move(run, Event.RERUN, due_at=NOW)])
    [one] = await claim(store)
    await store.turn([a_move(one.run, Event.FAIL)], None, [an_alert(epoch=one.run.epoch + 1)])
    assert [alert.epoch for alert in await found(store)] == [5, 2]


async def test_due_alerts_are_leased_earliest_first_and_come_due_again(store: Store) -> None:
    await failing(store, an_alert(hook="a", due_at=NOW + SECOND), an_alert(hook="b"), an_alert(hook="c", due_at=LATER))
    hooks = ["a", "b", "c"]
    assert [alert.hook for alert in await store.lease_alerts(hooks, NOW + SECOND, LATER, 1)] == ["b"]
    [leased] = await store.lease_alerts(hooks, NOW + SECOND, LATER, 10)
    assert leased == an_alert(hook="a", due_at=LATER, attempts=1)
    assert await store.lease_alerts(hooks, LATER - SECOND, LATER, 10) == []
    again = await store.lease_alerts(hooks, LATER, LATER + MINUTE, 10)
    assert sorted((alert.hook, alert.attempts) for alert in again) == [("a", 2), ("b", 2), ("c", 1)]


async def test_a_node_takes_only_alerts_of_hooks_it_knows(store: Store) -> None:
    await failing(store, an_alert(hook="mine"), an_alert(hook="theirs"))
    assert [alert.hook for alert in await store.lease_alerts(["mine"], NOW, LATER, 10)] == ["mine"]
    assert await store.lease_alerts([], NOW, LATER, 10) == []


async def test_no_two_nodes_lease_the_same_alert(store: Store, reopen: Reopen) -> None:
    await failing(store, *(an_alert(hook=f"hook {i}") for i in range(20)))
    hooks = [f"hook {i}" for i in range(20)]
    stores = [store, await reopen(), await reopen()]
    leased = await asyncio.gather(*(one.lease_alerts(hooks, NOW, LATER, 20) for one in stores))
    taken = [alert.hook for alerts in leased for alert in alerts]
    assert sorted(taken) == sorted(hooks)


async def test_a_settled_alert_is_not_leased_again(store: Store) -> None:
    await failing(store, an_alert(hook="a"), an_alert(hook="b"), an_alert(hook="c"))
    a, b, c = sorted(await store.lease_alerts(["a", "b", "c"], NOW, LATER, 10), key=lambda alert: alert.hook)
    replace = msgspec.structs.replace
    done = replace(a, state=AlertState.DELIVERED, due_at=None, ended_at=NOW)
    given_up = replace(b, state=AlertState.FAILED, due_at=None, ended_at=NOW, error="nobody there \x00 🙂")
    again = replace(c, due_at=NOW + HOUR, error="busy")
    await store.settle_alerts([done, given_up, again])
    assert await found(store, state=AlertState.DELIVERED) == [done]
    [kept] = await found(store, state=AlertState.FAILED)
    assert (kept.hook, kept.error[:12]) == ("b", "nobody there")
    assert await found(store, state=AlertState.PENDING) == [again]
    assert [alert.hook for alert in await store.lease_alerts(["a", "b", "c"], NOW + HOUR, NOW + 2 * HOUR, 9)] == ["c"]


async def test_whoever_lost_the_lease_settles_nothing(store: Store) -> None:
    await failing(store, an_alert())
    [slow] = await store.lease_alerts(["hook"], NOW, LATER, 10)
    [quick] = await store.lease_alerts(["hook"], LATER, LATER + MINUTE, 10)
    await store.settle_alerts([msgspec.structs.replace(slow, state=AlertState.FAILED, due_at=None, ended_at=LATER)])
    assert await found(store) == [quick]
    done = msgspec.structs.replace(quick, state=AlertState.DELIVERED, due_at=None, ended_at=LATER)
    await store.settle_alerts([done])
    await store.settle_alerts([msgspec.structs.replace(quick, state=AlertState.FAILED, due_at=None, ended_at=LATER)])
    assert await found(store) == [done]


async def test_what_is_owed_to_hooks_that_nobody_serves_is_given_up(store: Store) -> None:
    """A hook of which something comes due later is served, by a node that has put it off."""
    await failing(
        store,
        an_alert(hook="known"),
        *(an_alert(run_id, hook="gone") for run_id in (1, 2)),
        an_alert(1, hook="served"),
        an_alert(2, hook="served", due_at=NOW + SECOND),
        an_alert(hook="done", state=AlertState.DELIVERED, due_at=None, ended_at=NOW),
    )
    now = NOW + HOUR
    assert await store.give_up_alerts(["known"], NOW - SECOND, now, "nobody") == {}
    assert await store.give_up_alerts(["known"], NOW, now, "nobody") == {"gone": 2}
    assert await store.give_up_alerts(["known"], NOW, now, "nobody") == {}
    given_up = [
        an_alert(run_id, hook="gone", state=AlertState.FAILED, due_at=None, ended_at=now, error="nobody")
        for run_id in (2, 1)
    ]
    assert await found(store, state=AlertState.FAILED) == given_up
    assert sorted(alert.hook for alert in await found(store, state=AlertState.PENDING)) == ["known", "served", "served"]
    assert await store.lease_alerts(["gone", "done"], now, now + MINUTE, 10) == []
    assert await store.give_up_alerts([], now, now, "nobody") == {"known": 1, "served": 2}


async def test_alerts_are_found_by_run_and_page_by_page(store: Store) -> None:
    await failing(store, an_alert(1, hook="a"), an_alert(1, hook="b"))
    await failing(store, an_alert(2), id=2)
    page = await store.find_alerts(AlertQuery(limit=2))
    assert ([(alert.run_id, alert.hook) for alert in page.items], page.total) == ([(2, "hook"), (1, "a")], 3)
    page = await store.find_alerts(AlertQuery(limit=2, offset=2))
    assert [(alert.run_id, alert.hook) for alert in page.items] == [(1, "b")]
    page = await store.find_alerts(AlertQuery(run_id=1))
    assert ([alert.hook for alert in page.items], page.total) == (["a", "b"], 2)


async def test_what_is_settled_is_forgotten_in_time_and_what_is_owed_never(store: Store) -> None:
    await failing(store, an_alert(hook="a"), an_alert(hook="b"))
    [done] = await store.lease_alerts(["a"], NOW, LATER, 10)
    await store.settle_alerts([msgspec.structs.replace(done, state=AlertState.DELIVERED, due_at=None, ended_at=NOW)])
    now = NOW + timedelta(days=9)
    await store.prune(Retention(now, NOW, 0, 100))
    assert len(await found(store)) == 2
    await store.prune(Retention(now, now, 0, 100))
    assert [alert.hook for alert in await found(store)] == ["b"]


async def test_a_step_forgets_no_more_alerts_than_its_limit(store: Store) -> None:
    await failing(store, *[an_alert(hook=hook) for hook in "abc"])
    await store.give_up_alerts([], NOW, NOW, "nobody")
    later = NOW + timedelta(days=9)
    seen = [(await store.prune(Retention(NOW, later, 9, 2)), len(await found(store))) for _ in range(3)]
    assert seen == [(2, 1), (1, 0), (0, 0)]
