"""What governs items on every store: limits of queues, objects, settlements that count as a whole, and the audit."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from ksana.domain.alerts import Alert, AlertQuery
from ksana.domain.audit import AuditEntry, AuditQuery
from ksana.domain.changes import Overtaken, Settlement
from ksana.domain.errors import VersionConflict
from ksana.domain.handing_out import Pulled
from ksana.domain.items import Enqueued, PullOrder, Report, acked, extended, pull_key, released, report_of, stored_queue
from ksana.domain.limits import QueueSettings, Rate
from ksana.domain.objects import (
    Epistemic,
    Gate,
    GovernedObject,
    ObjectQuery,
    Risk,
    UnknownType,
    subject_of,
    written_back,
)
from ksana.domain.policies import Priority
from ksana.domain.ports import Store
from ksana.domain.queries import RunQuery
from ksana.domain.retention import Retention
from ksana.domain.runs import Run
from ksana.domain.states import Event, State
from tests.stores.builders import HOUR, MINUTE, NOW, SECOND, a_move, get
from tests.stores.conftest import Reopen
from tests.stores.families import a_chain_job, a_dag, begin, shown
from tests.stores.test_items import QUEUE, a_pull, an_item, fill, keyed

PASSING = {"persona": Gate.PASS, "cognition": Gate.PASS}


def an_object(id: str = "m1", **said: Any) -> GovernedObject:
    values: dict[str, Any] = {"type": "memory", "id": id, "created_at": NOW, "updated_at": NOW}
    return GovernedObject(**(values | said))


def uncertain(id: str = "m1", **said: Any) -> GovernedObject:
    return an_object(id, epistemic=Epistemic.UNCERTAIN, **said)


def about(id: int, object_id: str = "m1", due: timedelta = timedelta(0), type: str = "memory.verify") -> Run:
    return an_item(id, due, type=type, subject=subject_of("memory", object_id))


def an_entry(id: int, **said: Any) -> AuditEntry:
    values: dict[str, Any] = {
        "at": NOW,
        "actor": "loopback",
        "action": "queue.set",
        "subject": "queue",
        "subject_id": "mail",
    }
    return AuditEntry(id=id, **(values | said))


async def limit(store: Store, version: int = 1, queue: str = QUEUE, **said: Any) -> QueueSettings:
    settings = QueueSettings(queue=queue, version=version, updated_at=NOW, **said)
    await store.set_queue(settings, an_entry(1000 + version, subject_id=queue))
    return settings


async def know(store: Store, *objects: GovernedObject) -> None:
    await store.settle(Settlement(objects=objects))


def ids(pulled: Pulled) -> list[int]:
    return [run.id for run in pulled.runs]


async def pulled_ids(store: Store, limit: int = 100, **said: Any) -> list[int]:
    return ids(await store.pull(a_pull(limit, **said)))


async def test_a_queue_that_is_paused_hands_out_nothing_until_it_goes_on(store: Store, reopen: Reopen) -> None:
    await fill(store, an_item(1), an_item(2))
    other = await reopen()
    assert await pulled_ids(other, 1) == [1]
    await limit(store, is_paused=True, reason="spring cleaning")
    assert [await pulled_ids(each) for each in (store, other)] == [[], []]
    await limit(store, 2)
    assert await pulled_ids(other) == [2]


async def test_no_more_items_are_held_at_once_than_a_queue_allows(store: Store) -> None:
    sms = stored_queue("sms")
    await fill(store, *[an_item(n) for n in range(1, 8)], msgspec.structs.replace(an_item(20), queue=sms))
    await limit(store, concurrency=3)
    first = await store.pull(a_pull(2))
    assert (ids(first), await pulled_ids(store), await pulled_ids(store)) == ([1, 2], [3], [])
    await store.turn([acked(first.runs[0], NOW), released(first.runs[1], NOW)])
    assert await pulled_ids(store) == [2, 4]
    # Another queue has its own room.
    assert await pulled_ids(store, queue=sms) == [20]
    await limit(store, 2, concurrency=4)
    assert await pulled_ids(store) == [5]


async def test_no_more_items_are_handed_out_in_a_while_than_a_queue_allows(store: Store, reopen: Reopen) -> None:
    await fill(store, *[an_item(n) for n in range(1, 10)])
    await limit(store, rate=Rate(3, MINUTE))
    other = await reopen()
    assert (await pulled_ids(store, 2), await pulled_ids(other), await pulled_ids(store)) == ([1, 2], [3], [])
    later = NOW + 20 * SECOND
    assert (await pulled_ids(other, now=later), await pulled_ids(store, now=later)) == ([4], [])
    # What is set anew does not give back what was used up.
    await limit(store, 2, rate=Rate(3, MINUTE))
    assert await pulled_ids(store, now=later) == []
    assert await pulled_ids(store, now=NOW + HOUR) == [5, 6, 7]


async def test_keys_have_limits_of_their_own_and_items_without_one_have_none(store: Store) -> None:
    await fill(store, *[an_item(n, subject="ab"[n % 2]) for n in range(6)][1:], an_item(9), an_item(10))
    await limit(store, key_concurrency=2, key_rate=Rate(1, MINUTE))
    first = await store.pull(a_pull())
    assert ids(first) == [1, 2, 9, 10]
    await store.turn([acked(first.runs[0], NOW)])
    assert await pulled_ids(store) == []
    assert await pulled_ids(store, now=NOW + MINUTE) == [3, 4]
    # Two of the one are held, of the other none is left.
    assert await pulled_ids(store, now=NOW + HOUR) == [5]


@pytest.mark.parametrize("order", PullOrder)
async def test_the_order_holds_however_many_are_passed_over(store: Store, order: PullOrder) -> None:
    def item(id: int, subject: str | None = None) -> Run:
        # Some come due together, and by age a priority is worth minutes.
        return an_item(id, -SECOND * (id * 37 % 1000), Priority(id % 3 + 1), subject=subject)

    waiting = [item(n, "busy") for n in range(2, 720)]
    free = [item(n) for n in range(1000, 1010)]
    await fill(store, item(1, "busy"))
    await limit(store, key_concurrency=1)
    assert await pulled_ids(store) == [1]
    await fill(store, *waiting, *free)
    expected = sorted(free, key=lambda run: pull_key(order, run.due_at, run.priority, run.id))
    assert await pulled_ids(store, 7, order=order) == [run.id for run in expected[:7]]
    assert await pulled_ids(store, 7, order=order) == [run.id for run in expected[7:]]


async def test_of_those_passed_over_only_the_types_that_are_wanted_are_looked_at(store: Store) -> None:
    await fill(store, *[an_item(n, type="ab"[n % 2], subject="busy") for n in range(1, 30)])
    await fill(store, an_item(40, type="a"), an_item(41, type="b"), an_item(42, type="a", subject="free"))
    await limit(store, key_concurrency=1)
    assert await pulled_ids(store, 1, types=("b",)) == [1]
    assert await pulled_ids(store, 2, types=("a",)) == [40, 42]


async def test_a_risky_object_keeps_its_items_back_until_its_gates_let_them_through(store: Store) -> None:
    judged = an_object("judged", risk=Risk.HIGH, gates=PASSING)
    deferred = an_object("deferred", risk=Risk.HIGH, gates=PASSING | {"cognition": Gate.DEFER})
    await know(store, an_object("new", risk=Risk.HIGH), judged, deferred, an_object("tame", gates=deferred.gates))
    await fill(store, *[about(n, name) for n, name in enumerate(("new", "judged", "deferred", "tame", "unknown"), 1)])
    pulled = await store.pull(a_pull())
    assert ids(pulled) == [2, 4, 5]
    assert pulled.blocked == [about(1, "new"), about(3, "deferred")]
    assert await get(store, 3) == about(3, "deferred")
    # Gates are looked at every time.
    await know(store, msgspec.structs.replace(deferred, version=2, gates=PASSING))
    again = await store.pull(a_pull())
    assert (ids(again), [run.id for run in again.blocked]) == ([3], [1])


async def test_an_object_that_is_limited_has_one_item_handed_out_at_a_time(store: Store) -> None:
    await know(store, an_object(risk=Risk.HIGH, gates=PASSING | {"persona": Gate.LIMIT}))
    await fill(store, about(1), about(2), about(3), about(4, "m2"))
    first = await store.pull(a_pull())
    assert (ids(first), await pulled_ids(store)) == ([1, 4], [])
    await store.turn([acked(first.runs[0], NOW)])
    assert await pulled_ids(store) == [2]


async def test_verifying_uses_up_a_budget_and_then_is_refused(store: Store) -> None:
    await know(store, uncertain(), an_object("m2", unknown=UnknownType.ONTIC, cap=1), uncertain("m3", budget=0))
    await fill(store, *[about(n) for n in (1, 2, 3)], about(4, "m2"), about(5, "m2"))
    await fill(store, about(6, type="memory.decay"), about(7, "m3"))
    pulled = await store.pull(a_pull(at=NOW + SECOND))
    assert ids(pulled) == [1, 2, 4, 6]
    assert [(refusal.run, refusal.error.partition(":")[0]) for refusal in pulled.refused] == [
        (about(3), "auto_verify_budget exhausted"),
        (about(5, "m2"), "unknowable_verify_cap reached"),
        (about(7, "m3"), "auto_verify_budget exhausted"),
    ]
    assert await store.get_objects(["memory/m1", "memory/m2", "memory/m3", "memory/m4"]) == {
        "memory/m1": uncertain(version=3, verified=2, updated_at=NOW + SECOND),
        "memory/m2": an_object("m2", version=2, unknown=UnknownType.ONTIC, cap=1, tried=1, updated_at=NOW + SECOND),
        "memory/m3": uncertain("m3", budget=0),
    }
    assert (await get(store, 3)).state is State.SCHEDULED


async def test_pulls_at_once_keep_to_every_limit(store: Store, reopen: Reopen) -> None:
    stores = [store, await reopen(), await reopen()]
    await limit(store, concurrency=12, rate=Rate(10, HOUR), key_concurrency=2)
    await know(store, uncertain(budget=1))
    items = [an_item(n, subject=f"k{n % 3}") for n in range(1, 25)]
    await fill(store, *items, *[about(n) for n in range(31, 36)], *[an_item(n) for n in range(41, 60)])
    handed: list[Run] = []
    for _ in range(2):
        pulls = [stores[n % 3].pull(a_pull(3, holder=f"w{n}")) for n in range(6)]
        handed += [run for pulled in await asyncio.gather(*pulls) for run in pulled.runs]
    handed += (await store.pull(a_pull())).runs
    assert len({run.id for run in handed}) == len(handed) == 10
    by_key = {subject: [run for run in handed if run.subject == subject] for subject in ("k0", "k1", "k2")}
    assert {subject: len(runs) for subject, runs in by_key.items()} == {"k0": 2, "k1": 2, "k2": 2}
    assert len([run for run in handed if run.subject == "memory/m1"]) == 1
    assert (await store.get_objects(["memory/m1"]))["memory/m1"] == uncertain(version=2, budget=1, verified=1)


async def test_a_budget_is_not_overdrawn_by_pulls_at_once(store: Store, reopen: Reopen) -> None:
    stores = [store, await reopen(), await reopen()]
    limited = an_object("m2", risk=Risk.HIGH, gates=PASSING | {"persona": Gate.LIMIT})
    await know(store, uncertain(budget=3), limited)
    await fill(store, *[about(n) for n in range(1, 10)], *[about(n, "m2") for n in range(11, 20)])
    pulls = [stores[n % 3].pull(a_pull(2)) for n in range(9)]
    handed = [run.subject for pulled in await asyncio.gather(*pulls) for run in pulled.runs]
    handed += [run.subject for run in (await store.pull(a_pull())).runs]
    assert sorted(str(subject) for subject in handed) == ["memory/m1"] * 3 + ["memory/m2"]
    assert (await store.get_objects(["memory/m1"]))["memory/m1"] == uncertain(version=4, budget=3, verified=3)


async def test_what_is_settled_is_there_all_of_it(store: Store) -> None:
    await know(store, uncertain())
    await fill(store, about(1))
    [held] = (await store.pull(a_pull())).runs
    [before] = (await store.get_objects(["memory/m1"])).values()
    after = written_back(before, "verify", NOW, next_action_at=NOW + HOUR, epistemic=Epistemic.SUPPORTED, evidence="e7")
    move = acked(held, NOW, b'"out"', Report(None, "e7", NOW + HOUR))
    alert = Alert(run_id=1, epoch=move.run.epoch, hook="h", body=b"{}", created_at=NOW, due_at=NOW)
    settlement = Settlement(
        moves=(move,),
        alerts=(alert,),
        objects=(after, an_object("m2", attributes={"deep": [1, None, "ü"]})),
        items=(keyed(about(2, due=HOUR), "k"), keyed(about(3), "k"), Enqueued(about(4, "m2"))),
        entries=(an_entry(1, evidence="e7", before=b"\0", after=b'{"a": "\xc3\xbc"}', reason="ü"), an_entry(2)),
    )
    assert await store.settle(settlement) == []
    assert await get(store, 1) == move.run
    kept = (await store.kept([1]))[1]
    assert (kept.artifact, report_of(kept)) == (b'"out"', Report(None, "e7", NOW + HOUR))
    assert await store.get_objects(["memory/m1", "memory/m2"]) == {
        "memory/m1": after,
        "memory/m2": settlement.objects[1],
    }
    assert await store.get_runs([2, 3]) == [about(2, due=HOUR)]
    assert await pulled_ids(store) == [4]
    assert (await store.find_alerts(AlertQuery())).items == [alert]
    assert (await store.find_audit(AuditQuery())).items == [settlement.entries[1], settlement.entries[0]]


async def test_what_follows_for_a_family_is_told(store: Store) -> None:
    await store.add_jobs([a_chain_job(1, a_dag("a", "b<a"))])
    await begin(store, a_dag("a", "b<a"))
    await store.turn([], None)
    for step, told in (("a", []), ("b", [(1, State.SUCCESS)])):
        [child] = [child for child in await store.children(1) if child.step == step]
        running = a_move(child, Event.CLAIM)
        await store.turn([running])
        followed = await store.settle(
            Settlement(moves=(a_move(running.run, Event.SUCCEED),), entries=(an_entry(child.id),))
        )
        assert [(move.run.id, move.run.state) for move, _ in followed] == told
    assert await shown(store) == "SUCCESS: a=SUCCESS b=SUCCESS"


async def nothing_is_settled(store: Store, settlement: Settlement) -> None:
    """The settlement is refused, and the store is as it was."""
    before = await everything_there(store)
    with pytest.raises(Overtaken):
        await store.settle(settlement)
    assert await everything_there(store) == before


async def everything_there(store: Store) -> Any:
    runs = (await store.find_runs(RunQuery())).items
    return (
        runs,
        await store.kept([run.id for run in runs]),
        (await store.find_objects(ObjectQuery())).items,
        (await store.find_audit(AuditQuery())).items,
        (await store.find_alerts(AlertQuery())).items,
    )


async def test_what_comes_too_late_settles_nothing(store: Store) -> None:
    await know(store, uncertain(), an_object("m2"))
    await fill(store, about(1, type="memory.decay"), about(2, type="memory.decay"))
    one, two = (await store.pull(a_pull())).runs
    [object_] = (await store.get_objects(["memory/m1"])).values()
    after = msgspec.structs.replace(object_, version=object_.version + 1, risk=Risk.HIGH)
    alert = Alert(run_id=1, epoch=one.epoch + 1, hook="h", body=b"{}", created_at=NOW, due_at=NOW)
    whole = Settlement(
        moves=(acked(one, NOW, b"1"), acked(two, NOW, b"2")),
        alerts=(alert,),
        objects=(after, an_object("m3")),
        items=(keyed(about(3), "k"),),
        entries=(an_entry(1),),
    )
    longer = extended(two, NOW + 2 * HOUR)
    await store.turn([longer])
    await nothing_is_settled(store, whole)
    # One of a run's moves that comes too late is one too many, even if the next would count.
    both = (acked(one, NOW), extended(two, NOW + 2 * HOUR), acked(longer.run, NOW))
    await nothing_is_settled(store, msgspec.structs.replace(whole, moves=both))
    fitting = msgspec.structs.replace(whole, moves=(acked(one, NOW, b"1"), acked(longer.run, NOW)))
    for objects in (
        (object_,),
        (after, an_object("m2")),
        (an_object("m3"), an_object("m4", version=2)),
        (after, after),
    ):
        await nothing_is_settled(store, msgspec.structs.replace(fitting, objects=objects))
    gone = acked(msgspec.structs.replace(one, id=99), NOW)
    await nothing_is_settled(store, msgspec.structs.replace(fitting, moves=(*fitting.moves, gone)))
    # The key was not used up by what did not count.
    await store.settle(fitting)
    assert {run.id: run.state for run in (await store.find_runs(RunQuery())).items} == {
        1: State.SUCCESS,
        2: State.SUCCESS,
        3: State.SCHEDULED,
    }


async def test_moves_of_one_run_follow_each_other_and_so_do_versions_of_an_object(store: Store) -> None:
    await fill(store, about(1))
    [held] = (await store.pull(a_pull())).runs
    longer = extended(held, NOW + 2 * HOUR)
    versions = [uncertain(version=version, verified=version) for version in (1, 2, 3)]
    await store.settle(Settlement(moves=(acked(longer.run, NOW), longer), objects=tuple(versions[:2])))
    await store.settle(Settlement(objects=tuple(versions[2:])))
    assert (await get(store, 1)).state is State.SUCCESS
    assert await store.get_objects(["memory/m1"]) == {"memory/m1": versions[2]}


async def test_of_those_who_settle_the_same_at_once_one_does(store: Store, reopen: Reopen) -> None:
    stores = [store, await reopen(), await reopen()]
    await know(store, an_object())

    async def settle(number: int, *objects: GovernedObject) -> int:
        try:
            await stores[number % 3].settle(Settlement(objects=objects, entries=(an_entry(number),)))
        except Overtaken:
            return 0
        return 1

    for first, objects in ((1, [an_object(version=2)]), (11, [an_object("new"), an_object(version=3)])):
        assert sum(await asyncio.gather(*(settle(first + n, *objects) for n in range(6)))) == 1
    assert (await store.find_audit(AuditQuery())).total == 2
    assert (await store.get_objects(["memory/m1"]))["memory/m1"].version == 3


async def test_a_queue_is_set_on_top_of_the_version_just_below(store: Store, reopen: Reopen) -> None:
    assert await store.queue_settings() == []
    first = await limit(store, rate=Rate(7, MINUTE), key_rate=Rate(1, timedelta(days=1)), reason="ü")
    other = await limit(store, queue=stored_queue("a"), is_paused=True)
    assert await store.queue_settings() == [other, first]
    for version in (1, 3):
        with pytest.raises(VersionConflict, match=r"mail.* version 1"):
            await limit(store, version, concurrency=1)
    with pytest.raises(VersionConflict):
        await limit(store, 2, queue=stored_queue("b"))
    again = await reopen()
    tries = [limit(each, 2, concurrency=n) for n, each in enumerate((store, again, store, again), 1)]
    done = await asyncio.gather(*tries, return_exceptions=True)
    [second] = [one for one in done if isinstance(one, QueueSettings)]
    assert await again.queue_settings() == [other, second]
    entries = (await store.find_audit(AuditQuery(subject="queue", subject_id=QUEUE))).items
    assert [entry.id for entry in entries] == [1002, 1001]


async def test_objects_are_found_by_type_risk_state_and_when_they_want_to_be_seen_to(store: Store) -> None:
    objects = [
        an_object("b", risk=Risk.HIGH),
        an_object("a", next_action_at=NOW),
        uncertain("c", next_action_at=NOW + HOUR, gates={"persona": Gate.DEFER}),
        an_object("a", type="claim", epistemic=Epistemic.UNCERTAIN, unknown=UnknownType.EPISTEMIC, evidence="e"),
    ]
    await know(store, *objects)
    b, a, c, claim = objects
    asked: list[tuple[dict[str, Any], list[GovernedObject]]] = [
        ({}, [claim, a, b, c]),
        ({"type": "memory"}, [a, b, c]),
        ({"type": "mem"}, []),
        ({"risk": Risk.HIGH}, [b]),
        ({"epistemic": Epistemic.UNCERTAIN}, [claim, c]),
        ({"epistemic": Epistemic.UNCERTAIN, "type": "memory"}, [c]),
        ({"due_before": NOW}, []),
        ({"due_before": NOW + SECOND}, [a]),
        ({"due_before": NOW + 2 * HOUR, "risk": Risk.LOW}, [a, c]),
    ]
    for said, found in asked:
        page = await store.find_objects(ObjectQuery(**said))
        assert (page.items, page.total) == (found, len(found)), said
    page = await store.find_objects(ObjectQuery(offset=1, limit=2))
    assert (page.items, page.total) == ([a, b], 4)


async def test_the_audit_is_found_by_what_it_is_about_who_did_what_and_when(store: Store) -> None:
    at: list[datetime] = [NOW + n * SECOND for n in range(7)]
    entries = [
        an_entry(1, at=at[1], subject="job", subject_id="7", actor="CI 🚀", action="job.pause", request_id="r1"),
        an_entry(2, at=at[2], subject="job", subject_id="8"),
        an_entry(3, at=at[3], subject="run", subject_id="7"),
        an_entry(4, at=at[4], subject="job", subject_id="7", before=b"{}", after=b"[]"),
        an_entry(5, at=at[5], subject="object", subject_id="memory/ü", evidence="e", actor="CI 🚀"),
    ]
    await store.add_audit(entries)
    await store.add_audit([an_entry(5, actor="somebody else"), an_entry(6, at=at[6])])
    asked: list[tuple[dict[str, Any], list[int]]] = [
        ({}, [6, 5, 4, 3, 2, 1]),
        ({"subject": "job"}, [4, 2, 1]),
        ({"subject_id": "7"}, [4, 3, 1]),
        ({"subject": "job", "subject_id": "7"}, [4, 1]),
        ({"subject": "object", "subject_id": "memory/ü"}, [5]),
        ({"subject": "ü"}, []),
        ({"action": "job.pause"}, [1]),
        ({"action": "löschen"}, []),
        ({"actor": "CI 🚀"}, [5, 1]),
        ({"actor": "CI 🚀", "subject": "job", "subject_id": "7"}, [1]),
        ({"since": at[2], "until": at[4]}, [3, 2]),
        ({"since": at[2], "subject": "job", "subject_id": "7"}, [4]),
    ]
    for said, found in asked:
        page = await store.find_audit(AuditQuery(**said))
        assert ([entry.id for entry in page.items], page.total) == (found, len(found)), said
        beyond = await store.find_audit(AuditQuery(**said, before_id=4, limit=1))
        assert [entry.id for entry in beyond.items] == [id for id in found if id < 4][:1], said
    assert (await store.find_audit(AuditQuery(offset=1, limit=4))).items == entries[:0:-1]
    page = await store.find_audit(AuditQuery(before_id=5, offset=1, limit=2))
    assert ([entry.id for entry in page.items], page.total) == ([3, 2], 6)
    await store.add_audit([])


async def test_ids_of_the_audit_are_handed_out_once(store: Store) -> None:
    first, second = await store.reserve_ids("audit", 3), await store.reserve_ids("audit", 1)
    assert (len(first), second.start) == (3, first.stop)


async def test_old_entries_and_buckets_no_longer_busy_are_forgotten(store: Store) -> None:
    await store.add_audit([an_entry(1, at=NOW - SECOND), an_entry(2, at=NOW)])
    await limit(store, key_rate=Rate(1, HOUR))
    await fill(store, *[an_item(n, subject="a") for n in (1, 2, 3)])
    assert await pulled_ids(store) == [1]
    await store.prune(Retention(NOW + HOUR - SECOND, NOW, 0, 100))
    assert [entry.id for entry in (await store.find_audit(AuditQuery())).items] == [1001, 2]
    assert await pulled_ids(store) == []
    await store.prune(Retention(NOW + HOUR, NOW, 0, 100))
    # For whoever is an hour behind it is as if nothing had been handed out.
    assert await pulled_ids(store) == [2]


async def test_a_step_forgets_no_more_entries_and_buckets_than_its_limit(store: Store) -> None:
    await store.add_audit([an_entry(n, at=NOW - SECOND) for n in range(1, 5)])
    await limit(store, key_rate=Rate(1, HOUR))
    await fill(store, *[an_item(n, subject="abc"[n % 3]) for n in range(6)])
    assert len(await pulled_ids(store)) == 3
    assert await store.prune(Retention(NOW + HOUR, NOW, 0, 2)) == 2
    # The entry of the limit is younger.
    assert (await store.find_audit(AuditQuery())).total == 2 + 1
    assert len(await pulled_ids(store)) == 2


async def test_items_are_found_by_what_they_are_about(store: Store) -> None:
    await fill(store, about(1), about(2, "m2"), about(3), an_item(4), an_item(5, subject="memory/m"))
    [one] = (await store.pull(a_pull(1))).runs
    await store.turn([acked(one, NOW)])
    asked: list[tuple[dict[str, Any], list[int]]] = [
        ({"subject": "memory/m1"}, [3, 1]),
        ({"subject": "memory/m1", "descending": False}, [1, 3]),
        ({"subject": "memory/m1", "states": frozenset({State.SUCCESS})}, [1]),
        ({"subject": "memory/m1", "queue": QUEUE, "states": frozenset({State.SCHEDULED})}, [3]),
        ({"subject": "memory/m1", "kind": "none"}, []),
        ({"subject": "memory"}, []),
    ]
    for said, found in asked:
        page = await store.find_runs(RunQuery(**said))
        assert ([run.id for run in page.items], page.total) == (found, len(found)), said
    newest = await store.find_runs(RunQuery(subject="memory/m1", limit=1))
    assert (newest.items, newest.total) == ([about(3)], 2)
    assert (await store.find_runs(RunQuery(subject="memory/m1", before_id=3))).items == [await get(store, 1)]


async def test_many_items_of_a_key_without_room_do_not_keep_others_waiting(store: Store) -> None:
    """More of them than a pull looks at."""
    busy = [msgspec.structs.replace(an_item(n), subject="#busy") for n in range(1, 10_201)]
    for first in range(0, len(busy), 2000):
        await fill(store, *busy[first : first + 2000])
    await fill(store, msgspec.structs.replace(an_item(10_201), subject="#free"), an_item(10_202))
    await limit(store, key_concurrency=1)
    assert await pulled_ids(store, 5) == [1, 10_201, 10_202]
    assert await pulled_ids(store, 5) == []
