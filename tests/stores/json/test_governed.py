"""Where objects, settings, buckets and the audit stand in the files, and that they are there again after a restart."""

from typing import Any

from ksana.domain.archive import Section
from ksana.domain.audit import AuditQuery
from ksana.domain.limits import Rate
from ksana.domain.retention import Retention
from tests.stores.builders import HOUR, MINUTE, NOW
from tests.stores.json.files import EMPTY_KEYS, Place
from tests.stores.test_governed import about, an_entry, an_object, know, limit, pulled_ids, uncertain
from tests.stores.test_items import a_pull, fill


async def test_each_has_a_list_of_its_own_that_is_absent_while_empty(place: Place) -> None:
    store = place.store()
    await store.open()
    await know(store, an_object())
    assert set(place.read()) == EMPTY_KEYS | {"objects"}
    await limit(store, rate=Rate(1, MINUTE))
    assert set(place.read()) == EMPTY_KEYS | {"objects", "queues", "history"}
    await fill(store, about(1))
    await store.pull(a_pull())
    assert set(place.read()) == EMPTY_KEYS | {"objects", "queues", "history", "runs", "buckets"}
    await store.prune(Retention(NOW + MINUTE, NOW, 0, 10))
    assert "buckets" not in place.read()
    await store.close()


async def test_all_of_it_is_there_after_a_restart(place: Place) -> None:
    store = place.store()
    await store.open()
    await know(store, uncertain(budget=1))
    await limit(store, key_rate=Rate(1, HOUR))
    await fill(store, about(1), about(2, type="memory.decay"), about(3, "m2"))
    assert await pulled_ids(store) == [1, 3]
    await store.add_audit([an_entry(8, before=b"\0\xff", reason="ü"), an_entry(9)])
    await store.close()
    await store.open()
    assert await store.get_objects(["memory/m1"]) == {"memory/m1": uncertain(version=2, budget=1, verified=1)}
    assert [settings.key_rate for settings in await store.queue_settings()] == [Rate(1, HOUR)]
    assert await pulled_ids(store) == []
    assert await pulled_ids(store, now=NOW + HOUR) == [2]
    entries = (await store.find_audit(AuditQuery(before_id=1000))).items
    assert entries == [an_entry(9), an_entry(8, before=b"\0\xff", reason="ü")]
    # No id is handed out again that is in use.
    assert (await store.reserve_ids("audit", 1)).start == 1002
    await store.close()


async def test_what_the_audit_forgot_is_gone_for_good_and_its_room_is_used_again(place: Place) -> None:
    store = place.store()
    await store.open()
    large = b"x" * (1 << 19)
    await store.add_audit([an_entry(n, after=large) for n in range(1, 5)] + [an_entry(9, at=NOW + HOUR, after=b"9")])
    length = place.read()["history"]["bytes"]
    await store.prune(Retention(NOW + HOUR, NOW + HOUR, 0, 10))
    await store.close()
    assert place.read()["history"]["bytes"] < length / 100
    await store.open()
    assert (await store.find_audit(AuditQuery())).items == [an_entry(9, at=NOW + HOUR, after=b"9")]
    await store.close()


async def test_entries_that_make_no_sense_are_set_aside(place: Place) -> None:
    wrong: dict[str, Any] = {"objects": [{"type": "memory"}], "queues": [{"queue": 1}], "buckets": ["?"]}
    place.write({"version": 1, "jobs": [], **wrong})
    store = place.store()
    await store.open()
    assert {entry["was_in"] for entry in place.read()["unreadable"]} == set(wrong)
    assert (await store.extent(Section.OBJECTS)).count == 0
    await store.close()
