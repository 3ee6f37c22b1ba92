"""Queues that are paused, and queues that hand out only so much at once and so fast, in all and for each key."""

import asyncio

from tests.api.queue.world import Queue, ok, refused

MAIL = "/scheduler/queues/mail"


async def test_a_paused_queue_takes_items_and_hands_none_out(any_queue: Queue) -> None:
    queue = any_queue
    await queue.put()
    paused = ok(await queue.send("POST", f"{MAIL}/pause", {"reason": "the provider is down"}))
    assert (paused["paused"], paused["reason"], paused["version"]) == (True, "the provider is down", 1)
    await queue.put()
    assert await queue.pull() == []
    assert len(await queue.pull("other", wait_sec=0)) == 0
    async with queue.started():
        waiting = asyncio.create_task(queue.wait_for_items(asyncio.Event()))
        await queue.pass_time("1s")
        resumed = ok(await queue.send("POST", f"{MAIL}/resume"))
        assert (resumed["paused"], resumed["reason"]) == (False, "")
        assert len(await waiting) == 2
        entries = ok(await queue.send("GET", "/api/v2/audit?subject=queue"))["items"]
        assert [entry["action"] for entry in entries] == ["queue.resume", "queue.pause"]


async def test_who_waits_at_a_paused_queue_is_handed_nothing_in_the_end(queue: Queue) -> None:
    """However often it looks at what is due and stays there."""
    await queue.put()
    ok(await queue.send("POST", f"{MAIL}/pause"))
    async with queue.started():
        waiting = asyncio.create_task(queue.wait_for_items(asyncio.Event()))
        await queue.pass_time("61s")
        assert await waiting == []


async def test_a_limit_bounds_what_is_held_and_frees_with_every_end(any_queue: Queue) -> None:
    queue = any_queue
    for _ in range(5):
        await queue.put()
    ok(await queue.send("PUT", MAIL, {"concurrency": 2}))
    held = await queue.pull()
    assert len(held) == 2
    assert await queue.pull(worker_id="w2") == []
    await queue.post(f"/{held[0]['job_id']}/ack")
    assert len(await queue.pull(worker_id="w2")) == 1
    ok(await queue.send("PUT", MAIL, {"concurrency": None}))
    assert len(await queue.pull(worker_id="w2")) == 2


async def test_a_rate_lets_so_many_through_in_a_stretch(any_queue: Queue) -> None:
    queue = any_queue
    for _ in range(6):
        await queue.put()
    ok(await queue.send("PUT", MAIL, {"rate": {"count": 2, "per_sec": 10}}))
    assert len(await queue.pull()) == 2
    assert await queue.pull() == []
    await queue.advance("5s")
    assert len(await queue.pull()) == 1
    await queue.advance("60s")
    assert len(await queue.pull()) == 2


async def test_a_rate_that_is_raised_counts_at_once(any_queue: Queue) -> None:
    """What was handed out by a slower rate keeps nobody waiting for as long as that one would have."""
    queue = any_queue
    for _ in range(8):
        await queue.put(group_key="a")
    slow, fast = {"count": 1, "per_sec": 86_400}, {"count": 3, "per_sec": 1}
    ok(await queue.send("PUT", MAIL, {"rate": slow, "key_rate": slow}))
    assert len(await queue.pull()) == 1
    assert await queue.pull() == []
    ok(await queue.send("PUT", MAIL, {"rate": fast}))
    assert await queue.pull() == []
    ok(await queue.send("PUT", MAIL, {"key_rate": fast}))
    assert len(await queue.pull()) == 3
    assert await queue.pull() == []
    await queue.advance("1s")
    assert len(await queue.pull()) == 3


async def test_keys_are_limited_apart(any_queue: Queue) -> None:
    queue = any_queue
    ids = [await queue.put(group_key=key) for key in ("a", "a", "b", "a", "b")] + [await queue.put()]
    ok(await queue.send("PUT", MAIL, {"key_concurrency": 1}))
    held = [job["job_id"] for job in await queue.pull()]
    assert held == [ids[0], ids[2], ids[5]]
    await queue.post(f"/{ids[0]}/ack")
    again = await queue.pull()
    assert [(job["job_id"], job["group_key"]) for job in again] == [(ids[1], "a")]
    ok(await queue.send("PUT", MAIL, {"key_concurrency": None, "key_rate": {"count": 1, "per_sec": 60}}))
    assert [job["job_id"] for job in await queue.pull()] == [ids[3], ids[4]]
    for key in ("a", "b", "c"):
        await queue.put(group_key=key)
    assert [job["group_key"] for job in await queue.pull()] == ["c"]


async def test_what_is_wrong_is_said_and_nothing_is_set(queue: Queue) -> None:
    wrong = {"concurrency": 0, "rate": {"count": 0, "per_sec": 0}, "speed": 1}
    assert refused(await queue.send("PUT", MAIL, wrong))[2] == {"concurrency", "rate.count", "rate.per_sec", "speed"}
    assert ok(await queue.send("GET", MAIL))["version"] == 0
    assert refused(await queue.send("PUT", "/scheduler/queues/%07", {}))[2] == {"name"}
    set_once = ok(await queue.send("PUT", MAIL, {"concurrency": 1, "version": 0}))
    assert (set_once["version"], set_once["concurrency"], set_once["rate"]) == (1, 1, None)
    assert refused(await queue.send("PUT", MAIL, {"version": 0}))[:2] == (409, "VERSION_CONFLICT")
    item = {"object_type": "memory", "object_id": "m", "action": "verify", "run_at": queue.at(), "group_key": "x"}
    assert refused(await queue.send("POST", "/scheduler/jobs", item))[2] == {"group_key"}
