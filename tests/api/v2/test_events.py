"""Live events: what is told, in which order, and what is kept for those who come back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from ksana.api.kit import Scope
from ksana.domain.items import Item, NewItem
from ksana.domain.jobs import JobSpec, TargetSpec
from ksana.engine import lookout
from ksana.engine.feed import Topic
from tests.api.v2.listening import Ear, Event, listening, read_event
from tests.api.v2.world import DEADLINE, World
from tests.cli.nodes import serving


@asynccontextmanager
async def passing_time(world: World) -> AsyncIterator[None]:
    """Time goes on by itself, from wake to wake."""

    async def pass_on() -> None:
        while True:
            await asyncio.sleep(0)
            if (wake_at := world.clock.next_wake_at) is not None:
                world.clock.move_to(wake_at)

    passing = asyncio.create_task(pass_on())
    try:
        yield
    finally:
        passing.cancel()


async def settled(world: World) -> None:
    """Let everybody have their turns until all wait for the clock."""
    quiet = 0
    async with asyncio.timeout(DEADLINE):
        while quiet < 25:
            await asyncio.sleep(0)
            quiet += 1
            if world.store.under_way:
                await world.store.answered()
                quiet = 0


async def heard(world: World, ear: Ear) -> Event:
    """The next event; time passes only while everybody waits for it."""
    async with asyncio.timeout(DEADLINE):
        while True:
            await settled(world)
            while ear.has_more:
                if (event := read_event(await ear.block())) is not None:
                    return event
            world.clock.move_to(world.clock.next_wake_at or world.clock.time)


async def test_a_run_is_told_from_its_beginning_to_its_end(world: World) -> None:
    job = await world.job("ping")
    async with listening(world.app, "topics=run") as ear:
        assert ear.status == 200
        assert ear.headers["content-type"].startswith("text/event-stream")
        assert (ear.headers["x-accel-buffering"], ear.headers["cache-control"]) == ("no", "no-cache, no-transform")
        assert "content-length" not in ear.headers
        assert ear.blocks[0].startswith("retry: 2000\nid: ")
        run = await world.run(job)
        first = await heard(world, ear)
        assert (first.name, first.data["topic"], first.data["id"]) == ("run", "run", run["id"])
        assert first.data["patch"]["state"] == "SCHEDULED"
        await world.work()
        last = await heard(world, ear)
        while last.data["patch"]["state"] != "SUCCESS":
            last = await heard(world, ear)
        assert last.number > first.number and last.data["version"] > first.data["version"]
        patch = last.data["patch"]
        assert (patch["job_id"], patch["job_name"], patch["kind"]) == (job["id"], "ping", "noop")
        assert (patch["parent_id"], patch["error"]) == (None, "")
        assert patch["due_at"] <= patch["started_at"] <= patch["ended_at"]


async def test_many_words_on_one_thing_become_one(world: World) -> None:
    job = await world.job()
    async with listening(world.app, "topics=job") as ear:
        for _ in range(3):
            await world.post(f"/api/v2/jobs/{job['id']}/pause")
            await world.post(f"/api/v2/jobs/{job['id']}/resume")
        first = await ear.event()
        await settled(world)
        # The first word goes out at once; then there is a pause of a quarter of a second, in which words gather.
        world.clock.move_to(world.clock.time + timedelta(milliseconds=250))
        last = await ear.event()
        await settled(world)
        assert (first.data["version"], last.data["version"]) == (2, 7)
        assert last.data["patch"]["enabled"] is True
        assert ear.flushes == 3


async def test_jobs_are_told_when_they_are_made_changed_fired_and_deleted(world: World) -> None:
    async with listening(world.app, "topics=job") as ear:
        job = await world.job("tick", schedule={"kind": "every", "every": "5m"})
        made = await heard(world, ear)
        assert (made.data["id"], made.data["patch"]["name"]) == (job["id"], "tick")
        assert made.data["patch"]["next_fire_at"] == job["next_fire_at"]
        await world.patch(f"/api/v2/jobs/{job['id']}", {"name": "tock"})
        assert (await heard(world, ear)).data["patch"]["name"] == "tock"
        await world.advance("5m")
        fired = await heard(world, ear)
        assert fired.data["patch"]["next_fire_at"] == (await world.seen(f"/api/v2/jobs/{job['id']}"))["next_fire_at"]
        await world.delete(f"/api/v2/jobs/{job['id']}")
        assert (await heard(world, ear)).data["patch"]["deleted"] is True


async def test_figures_are_told_at_once_and_when_they_change(world: World) -> None:
    job = await world.job()
    async with listening(world.app, "topics=stats") as ear:
        first = await heard(world, ear)
        assert first.data["patch"] == {"running": 0, "queued": 0, "due": 0, "dead_letters": 0}
        await world.run(job)
        assert (await heard(world, ear)).data["patch"] == {"running": 0, "queued": 1, "due": 1, "dead_letters": 0}


async def test_an_operation_tells_how_far_it_is(world: World) -> None:
    job = await world.job()
    async with listening(world.app, "topics=operation") as ear:
        await world.post("/api/v2/operations", {"action": "pause", "ids": [job["id"]]})
        seen = await heard(world, ear)
        while seen.data["patch"]["state"] == "running":
            seen = await heard(world, ear)
        assert (seen.data["patch"]["state"], seen.data["patch"]["done"]) == ("done", 1)


@pytest.mark.parametrize("by_header", [True, False])
async def test_who_comes_back_is_told_what_it_missed(world: World, by_header: bool) -> None:
    async with listening(world.app, "topics=job") as ear:
        job = await world.job("one")
        seen = await ear.event()
    await world.post(f"/api/v2/jobs/{job['id']}/pause")
    await world.job("two")
    headers = {"Last-Event-ID": str(seen.number)} if by_header else {}
    query = "topics=job" if by_header else f"topics=job&last_event_id={seen.number}"
    async with listening(world.app, query, headers) as ear:
        assert "id:" not in ear.blocks[0]
        missed = [await ear.event(), await ear.event()]
        assert [event.data["patch"]["name"] for event in missed] == ["one", "two"]
        assert missed[0].data["patch"]["enabled"] is False


@pytest.mark.parametrize("last", ["1", "999999999999999999", "nonsense", "-3"])
async def test_who_knows_a_number_of_another_time_has_to_look_at_everything(world: World, last: str) -> None:
    async with listening(world.app, "topics=job", {"Last-Event-ID": last}) as ear:
        event = await ear.event()
        assert (event.name, event.data) == ("resync", {})
        # Whoever is cut off now can come back to here.
    async with listening(world.app, "topics=job", {"Last-Event-ID": str(event.number)}) as ear:
        await world.job("new")
        assert (await ear.event()).name == "job"


async def test_who_was_away_for_too_long_has_to_look_at_everything(world: World) -> None:
    async with listening(world.app, "topics=job") as ear:
        await world.job()
        seen = await ear.event()
    world.clock.move_to(world.clock.time + timedelta(minutes=5, seconds=1))
    async with listening(world.app, "topics=job", {"Last-Event-ID": str(seen.number)}) as ear:
        assert (await ear.event()).name == "resync"


async def test_who_was_away_while_news_were_lost_has_to_look_at_everything(world: World) -> None:
    """What others did while the store was away was told to nobody."""
    async with listening(world.app, "topics=job") as ear:
        await world.job()
        seen = await ear.event()
    world.engine.feed.on_store(False, "gone")
    world.engine.feed.on_store(True, "")
    await world.job("two")
    async with listening(world.app, "topics=job", {"Last-Event-ID": str(seen.number)}) as ear:
        event = await ear.event()
        assert event.name == "resync"
    async with listening(world.app, "topics=job", {"Last-Event-ID": str(event.number)}) as ear:
        await world.job("three")
        assert (await ear.event()).name == "job"


async def test_a_listener_that_is_too_slow_is_told_to_look_at_everything(world: World) -> None:
    job = await world.engine.jobs.get((await world.job())["id"])
    async with listening(world.app, "topics=job") as ear:
        for number in range(1, 1002):
            world.engine.feed.say(Topic.JOB, number, job, world.clock.time)
        assert (await ear.event()).name == "resync"
        assert len(ear.blocks) == 2


async def test_nothing_is_kept_while_nobody_listens(world: World) -> None:
    await world.run(await world.job())
    await world.work()
    assert world.engine.feed.last == 0
    assert world.clock.next_wake_at is None


async def test_silence_is_broken_every_fifteen_seconds(world: World) -> None:
    async with listening(world.app, "topics=job") as ear, passing_time(world):
        begun = world.clock.time
        assert await ear.block() == ": keep-alive"
        assert world.clock.time - begun >= timedelta(seconds=15)


async def test_a_stream_ends_after_a_while_so_that_the_key_is_shown_again(world: World) -> None:
    async with listening(world.app, "topics=job") as ear, passing_time(world):
        begun = world.clock.time
        await ear.over()
        assert world.clock.time - begun >= timedelta(minutes=15)


async def test_what_another_node_does_is_seen(world: World) -> None:
    job = await world.job("far")
    other = await world.store.join("other", world.clock.time, timedelta(hours=1))
    assert other.id != world.engine.runner.node_id
    async with listening(world.app, "topics=run,job") as ear:
        await settled(world)
        # Done behind the back of this node: none of its observers hears of it.
        run = await _triggered_elsewhere(world, job["id"])
        seen = await heard(world, ear)
        assert (seen.name, seen.data["id"], seen.data["patch"]["job_name"]) == ("run", run, "far")


async def test_what_ended_on_another_node_is_seen(world: World) -> None:
    run = await world.run(await world.job("far"))
    await world.store.join("other", world.clock.time, timedelta(hours=1))
    async with listening(world.app, "topics=run") as ear:
        await settled(world)
        with _unheard(world):
            await world.engine.runs.cancel(run["id"])
        seen = await heard(world, ear)
        assert (seen.data["id"], seen.data["patch"]["state"]) == (run["id"], "CANCELED")


async def test_more_from_another_node_than_can_be_told_is_a_reason_to_look_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "_NEWEST", 2)
    job = await world.job("far")
    await world.store.join("other", world.clock.time, timedelta(hours=1))
    async with listening(world.app, "topics=run") as ear:
        await settled(world)
        for _ in range(3):
            await _triggered_elsewhere(world, job["id"])
        assert (await heard(world, ear)).name == "resync"


async def test_who_comes_back_is_told_what_another_node_did_meanwhile(world: World) -> None:
    run = await world.run(await world.job("far"))
    await world.store.join("other", world.clock.time, timedelta(hours=1))
    async with listening(world.app, "topics=run") as ear:
        await settled(world)
        last = re.search(r"id: (\d+)", ear.blocks[0])
        assert last is not None
    # Nobody listens, so that nobody looks.
    world.clock.move_to(world.clock.time + timedelta(seconds=2))
    await settled(world)
    with _unheard(world):
        await world.engine.runs.cancel(run["id"])
    async with listening(world.app, "topics=run", {"Last-Event-ID": last[1]}) as ear:
        seen = await heard(world, ear)
        assert (seen.data["id"], seen.data["patch"]["state"]) == (run["id"], "CANCELED")


async def test_more_under_way_than_is_looked_at_is_a_reason_to_look_again_now_and_then(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "_UNDER_WAY", 1)
    run = await world.run(await world.job("far"))
    await world.store.join("other", world.clock.time, timedelta(hours=1))
    async with listening(world.app, "topics=run") as ear:
        first = await heard(world, ear)
        at = world.clock.time
        second = await heard(world, ear)
        assert (first.name, second.name, run["state"]) == ("resync", "resync", "SCHEDULED")
        assert world.clock.time - at >= timedelta(seconds=9)


async def test_queues_are_told_when_they_change(world: World) -> None:
    await world.engine.queue.enqueue([NewItem(queue="mail", item=Item())])
    async with listening(world.app, "topics=queue") as ear:
        first = await heard(world, ear)
        assert (first.name, first.data["id"]) == ("queue", "mail")
        assert first.data["patch"] == {"queued": 1, "due": 1, "lag_seconds": 0.0, "held": 0, "dead_letters": 0}
        [item] = await world.engine.queue.pull("mail", "w", limit=1, lease=timedelta(minutes=1))
        assert (await heard(world, ear)).data["patch"]["held"] == 1
        await world.engine.queue.ack(item.id)
        assert (await heard(world, ear)).data["patch"]["held"] == 0


@contextmanager
def _unheard(world: World) -> Iterator[None]:
    """What happens is not told to the feed, as if another node did it."""
    with pytest.MonkeyPatch.context() as patched:
        for name in ("on_moved", "on_changed"):
            patched.setattr(world.engine.feed, name, lambda *_: None)
        yield


async def _triggered_elsewhere(world: World, job_id: int) -> int:
    with _unheard(world):
        return (await world.engine.runs.trigger(job_id)).id


async def test_a_key_hears_what_it_may_read(world: World) -> None:
    key = await world.key(Scope.JOB_READ)
    headers = {"X-API-Key": key}
    refused = await world.get("/api/v2/events?topics=job,run", headers=headers)
    assert (refused.status, "run:read" in refused.json()["message"]) == (403, True)
    async with listening(world.app, "", headers) as ear:
        run_of = await world.engine.jobs.create("v2", JobSpec(name="j", target=TargetSpec("noop")))
        await world.engine.runs.trigger(run_of.id)
        heard = await ear.event()
        await settled(world)
        assert (heard.name, len(ear.blocks)) == ("job", 2)


async def test_a_topic_nobody_knows_is_refused(world: World) -> None:
    answer = await world.get("/api/v2/events?topics=runs")
    assert (answer.status, answer.json()["problems"][0]["field"]) == (400, "topics")
    assert "did you mean run?" in answer.json()["message"]


async def test_a_server_that_stops_lets_go_of_those_who_listen(tmp_path: Path) -> None:
    async with serving(tmp_path, environment={"KSANA_GRACE": "30s"}) as node:
        host, port = node.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET /api/v2/events?topics=job HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        async with asyncio.timeout(DEADLINE):
            head = await reader.readuntil(b"retry: 2000\n")
            assert head.startswith(b"HTTP/1.1 200") and b"text/event-stream" in head
            await node.call("POST", "/api/v2/jobs", {"name": "j", "target": {"kind": "noop"}})
            assert b'"name":"j"' in await reader.readuntil(b"}}\n\n")
            # Well within the grace, which is as long as the deadline of this test.
            assert await node.process.stop() == 0
            await reader.read()
        writer.close()


async def test_a_caller_who_is_gone_is_forgotten(world: World) -> None:
    async with listening(world.app, "topics=job"):
        assert world.engine.feed.is_heard
    assert not world.engine.feed.is_heard


async def test_a_caller_who_wants_no_body_is_not_kept(world: World) -> None:
    answer = await world.call("HEAD", "/api/v2/events")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert world.engine.feed.last == 0
