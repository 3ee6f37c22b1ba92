"""The overview: what needs somebody, what comes next, how the last day went."""

from __future__ import annotations

from ksana.domain.items import Item, NewItem
from tests.api.v2.world import World
from tests.kit.sink import Reply, Sink


async def test_an_empty_store_says_so(world: World) -> None:
    seen = await world.seen("/api/v2/overview")
    assert seen["is_empty"] is True
    assert (seen["attention"], seen["next"], seen["failures"]) == ([], [], [])
    assert seen["now"] == "2030-01-01T12:00:00.000Z"
    assert seen["start_delay"] == {"p50_ms": None, "p95_ms": None, "samples": 0}
    assert seen["jobs"] == {"total": 0, "enabled": 0, "paused": 0}
    assert seen["running"] == {"now": 0, "here": 0, "capacity": 4}
    assert set(seen["day"].values()) == {0}


async def test_a_day_with_all_kinds_of_ends(world: World) -> None:
    good = await world.job("good", schedule={"kind": "every", "every": "1h"})
    bad = await world.job("bad", "fail", retry={"max_attempts": 1})
    await world.job("late", schedule={"kind": "once", "run_at": "2030-01-01T11:00:00Z"})
    await world.job("off", enabled=False)
    await world.run(good)
    failed = await world.run(bad)
    await world.advance("2s")
    seen = await world.seen("/api/v2/overview")
    assert seen["is_empty"] is False
    assert {name: seen["day"][name] for name in ("success", "failed", "missed")} == {
        "success": 1,
        "failed": 1,
        "missed": 1,
    }
    assert seen["jobs"] == {"total": 4, "enabled": 3, "paused": 1}
    assert seen["next"] == [{"job_id": good["id"], "name": "good", "at": "2030-01-01T13:00:00.000Z"}]
    attention = {one["kind"]: one for one in seen["attention"]}
    assert set(attention) == {"failed", "missed"}
    assert attention["failed"]["text"] == "1 run failed in the last 24 hours, the newest of bad"
    assert (attention["failed"]["run_id"], attention["failed"]["job_id"]) == (failed["id"], bad["id"])
    assert attention["failed"]["at"] == "2030-01-01T12:00:02.000Z"
    assert attention["missed"]["text"] == "1 run missed in the last 24 hours, the newest of late"
    assert [run["id"] for run in seen["failures"]] == [failed["id"]]
    assert seen["start_delay"] == {"p50_ms": 2000.0, "p95_ms": 2000.0, "samples": 2}


async def test_what_is_older_than_a_day_is_let_be(world: World) -> None:
    await world.run(await world.job("bad", "fail", retry={"max_attempts": 1}))
    await world.work()
    await world.advance("25h")
    seen = await world.seen("/api/v2/overview")
    assert (seen["attention"], seen["failures"], seen["day"]["failed"]) == ([], [], 0)


async def test_a_callback_that_did_not_come_is_told(world: World, sink: Sink) -> None:
    config = {"url": sink.on("/export", Reply(202)), "mode": "async"}
    job = await world.job("export", "http", config, timeouts={"callback": "1m"}, retry={"max_attempts": 1})
    run = await world.run(job)
    await world.work()
    assert (await world.seen("/api/v2/overview"))["callbacks"] == {"waiting": 1, "late": 0}
    await world.advance("61s")
    await world.engine.reaper.run_once()
    seen = await world.seen("/api/v2/overview")
    assert seen["callbacks"] == {"waiting": 0, "late": 1}
    [late] = [one for one in seen["attention"] if one["kind"] == "late_callback"]
    assert (late["count"], late["run_id"]) == (1, run["id"])
    assert late["text"] == "1 callback did not come in the last 24 hours, the newest of export"


async def test_queues_and_dead_letters_are_counted_together(world: World) -> None:
    queue = world.engine.queue
    await queue.enqueue([NewItem(queue=name, item=Item(max_attempts=1)) for name in ("a", "a", "b")])
    [held] = await queue.pull("b", "w", limit=1, lease=world.engine.options.lease)
    [dead] = await queue.pull("a", "w", limit=1, lease=world.engine.options.lease)
    await queue.fail(dead.id, "broken")
    await world.advance("4s")
    seen = await world.seen("/api/v2/overview")
    assert seen["queues"] == {"due": 1, "lag_seconds": 4.0, "held": 1, "dead_letters": 1}
    [letter] = seen["attention"]
    assert (letter["kind"], letter["count"], letter["text"]) == ("dead_letter", 1, "1 dead letter")
    assert (letter["run_id"], letter["job_id"]) == (dead.id, None)
    assert held.id != dead.id


async def test_only_what_takes_a_place_is_counted_as_running_here(world: World) -> None:
    queue = world.engine.queue
    await queue.enqueue([NewItem(queue="a", item=Item())])
    await queue.pull("a", "w", limit=1, lease=world.engine.options.lease)
    await world.run(await world.job("closing", "chain", {"nodes": [{"id": "approve", "type": "wait"}]}))
    await world.work()
    assert (await world.seen("/api/v2/overview"))["running"] == {"now": 2, "here": 0, "capacity": 4}
    await world.run(await world.job("long", "sleep", {"for": "1h"}))
    await world.start()
    assert (await world.seen("/api/v2/overview"))["running"] == {"now": 3, "here": 1, "capacity": 4}
