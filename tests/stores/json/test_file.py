"""What stands in `jobs.json`, and that a change is there before it is answered."""

import stat

import msgspec

from ksana.domain.changes import JobChange
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.schedules import CronSchedule, Once
from ksana.domain.states import Event, State
from tests.stores.builders import HOUR, LEASE, NOW, SECOND, a_job, a_move, a_run, claim, fires, put, slot_run
from tests.stores.json.files import DOCUMENTED_KEYS, EMPTY_KEYS, Place, a_timer


async def test_a_new_directory_gets_an_empty_file(place: Place) -> None:
    """K-13, K-14, K-65"""
    store = place.store()
    await store.open()
    assert place.read() == {"version": 1, "updated_at": "2030-01-01T12:00:00Z", "jobs": []}
    await store.close()


async def test_a_timer_stands_there_in_the_documented_shape(place: Place) -> None:
    """K-16, K-17, K-18, K-19, K-24"""
    store = place.store()
    await store.open()
    await store.add_jobs([a_timer(1, name="ping service")])
    entry = place.entry("timer-1")
    assert list(entry) == [*DOCUMENTED_KEYS, "core"]
    del entry["core"]
    assert entry == {
        "id": "timer-1",
        "name": "ping service",
        "enabled": True,
        "type": "http",
        "http": {"method": "GET", "url": "https://example.com/ping", "headers": {"X-Token": "abc"}, "body": ""},
        "schedule": {"kind": "every", "every": "5m", "start_at": "", "jitter": "0s"},
        "timeout": "10s",
        "max_retries": 3,
        "retry_backoff": "5s",
        "last_run_at": "",
        "next_run_at": "2030-01-01T13:00:00Z",
        "last_status": "",
        "last_error": "",
    }
    await store.close()


async def test_schedules_are_shown_as_their_kind_has_it(place: Place) -> None:
    store = place.store()
    await store.open()
    await store.add_jobs(
        [
            a_timer(1, schedule=Once(NOW + SECOND / 2)),
            a_timer(2, schedule=CronSchedule("0 9 * * *", "Asia/Shanghai", start_at=NOW), extras={"jitter": "0h"}),
        ]
    )
    assert place.entry("timer-1")["schedule"] == {"kind": "once", "run_at": "2030-01-01T12:00:00.5Z"}
    assert place.entry("timer-2")["schedule"] == {
        "kind": "cron",
        "expr": "0 9 * * *",
        "timezone": "Asia/Shanghai",
        "start_at": "2030-01-01T12:00:00Z",
        "jitter": "0h",
    }
    await store.close()


async def test_a_run_shows_in_its_job(place: Place) -> None:
    """K-51"""
    store = place.store()
    await store.open()
    await store.add_jobs([a_timer(1, next_slot_at=NOW, next_fire_at=NOW)])
    node = await store.join("node", NOW, LEASE)
    await store.fire_due(NOW, 1, fires(runs=lambda due: [slot_run(due, 1, surface="jobs")]))
    assert [run["id"] for run in place.read()["runs"]] == [1]
    [one] = await claim(store, node_id=node.id)
    await store.turn([a_move(one.run, Event.FAIL, NOW + SECOND, error="503")])
    entry = place.entry("timer-1")
    assert (entry["last_run_at"], entry["next_run_at"]) == ("2030-01-01T12:00:00Z", "2030-01-01T12:00:01Z")
    assert (entry["last_status"], entry["last_error"]) == ("failed", "503")
    assert "runs" not in place.read()
    await store.close()


async def test_other_things_have_lists_of_their_own_that_are_absent_while_empty(place: Place) -> None:
    store = place.store()
    await store.open()
    await store.add_jobs([a_job(1)], IdempotencyRecord("v2", "key", b"\0", 201, b"{}", NOW))
    assert set(place.read()) == EMPTY_KEYS | {"other_jobs", "idempotency"}
    await put(store, a_run(1))
    assert set(place.read()) == EMPTY_KEYS | {"other_jobs", "idempotency", "runs"}
    await store.turn([a_move(a_run(1), Event.CANCEL)])
    assert set(place.read()) == EMPTY_KEYS | {"other_jobs", "idempotency", "history"}
    await store.close()


async def test_a_deleted_job_is_in_no_list_and_is_still_known(place: Place) -> None:
    """K-70"""
    store = place.store()
    await store.open()
    timer, other = a_timer(1), a_job(2)
    await store.add_jobs([timer, other])
    gone = [msgspec.structs.replace(job, version=2, deleted_at=NOW + HOUR) for job in (timer, other)]
    await store.change_jobs([JobChange(version=1, job=job) for job in gone])
    assert place.read()["jobs"] == []
    assert "other_jobs" not in place.read()
    assert b"timer-1" not in place.file.read_bytes()
    await store.close()
    await store.open()
    assert sorted(await store.get_jobs([1, 2]), key=lambda job: job.id) == gone
    await store.close()


async def test_a_save_says_when_it_was_and_keeps_the_generation_before(place: Place) -> None:
    """K-15"""
    store = place.store()
    await store.open()
    await store.add_jobs([a_timer(1)])
    before = place.file.read_bytes()
    place.now = NOW + HOUR
    await store.add_jobs([a_timer(2)])
    assert place.read()["updated_at"] == "2030-01-01T13:00:00Z"
    assert (place.path / "jobs.prev.json").read_bytes() == before
    await store.close()


async def test_nobody_else_may_read_what_may_hold_secrets(place: Place) -> None:
    store = place.store()
    await store.open()
    await store.add_jobs([a_timer(1)])
    await put(store, a_run(1, state=State.SUCCESS, ended_at=NOW))
    await store.close()
    modes = {name: stat.S_IMODE((place.path / name).stat().st_mode) for name in place.names - {"jobs.lock"}}
    assert modes == dict.fromkeys(["jobs.json", "jobs.prev.json", "history-1.jsonl"], 0o600)


async def test_a_heartbeat_writes_nothing(place: Place) -> None:
    store = place.store()
    await store.open()
    node = await store.join("node", NOW, LEASE)
    before = place.file.stat().st_mtime_ns, place.file.stat().st_ino
    assert (await store.beat(node.id, NOW + SECOND, LEASE)).alive
    await store.turn([])
    assert (place.file.stat().st_mtime_ns, place.file.stat().st_ino) == before
    await store.close()


async def test_a_node_of_an_earlier_life_is_gone_and_its_number_is_not_given_again(place: Place) -> None:
    store = place.store()
    await store.open()
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1))
    old = await store.join("node", NOW, LEASE)
    await claim(store, node_id=old.id)
    await store.close()
    await store.open()
    new = await store.join("node", NOW, LEASE)
    assert new.id > old.id
    assert await store.nodes() == [new]
    assert [one.run.node_id for one in await store.lapsed(NOW, 10)] == [old.id]
    await store.close()
