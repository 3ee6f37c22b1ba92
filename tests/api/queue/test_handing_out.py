"""Pulling: what is due, in order, to one worker each, for as long as its lease."""

import asyncio
import itertools

from tests.api.queue.world import JOBS, Queue, instant, refused


async def test_due_jobs_are_handed_out_in_the_order_of_the_document(queue: Queue) -> None:
    """S-13, S-14, S-15, S-16, S-17, S-19, S-20, S-21: by run_at, then priority; `now` is the worker's."""
    offsets = {
        "a": ("10s", "low"),
        "b": ("10s", "high"),
        "c": ("10s", "medium"),
        "d": ("5s", "low"),
        "e": ("1h", "high"),
    }
    for object_id, (after, priority) in offsets.items():
        await queue.post("", queue.document(after, object_id=object_id, priority=priority))
    assert await queue.pull(None) == []
    assert await queue.pull(None, now=queue.at("4s")) == []
    first = await queue.pull(None, now=queue.at("10s"), limit=2)
    assert [job["object_id"] for job in first] == ["d", "b"]
    rest = await queue.pull(None, "worker-2", now=queue.at("10s"))
    assert [job["object_id"] for job in rest] == ["c", "a"]
    assert {job["status"] for job in first + rest} == {"running"}
    seen = await queue.get(f"jobs/{rest[0]['job_id']}")
    assert (seen["worker_id"], seen["status"]) == ("worker-2", "running")
    # By the clock of the server, whatever the worker's says.
    assert instant(seen["started_at"]) == queue.now
    assert (instant(seen["lease_until"]) - queue.now).total_seconds() == 900
    assert await queue.pull(None, now=queue.at("59m")) == []
    [last] = await queue.pull(None, now=queue.at("1h"))
    assert last["object_id"] == "e"
    for wrong in ({}, {"worker_id": ""}, {"worker_id": "w", "limit": 0}, {"worker_id": "w", "limit": 1001}):
        assert refused(await queue.send("POST", f"{JOBS}/pull", wrong))[0] == 400
    for said in ({"now": "soon"}, {"wait_sec": 61}, {"lease_sec": 0}, {"order": "random"}):
        assert refused(await queue.send("POST", f"{JOBS}/pull", {"worker_id": "w", **said}))[2] == set(said)


async def test_without_a_limit_a_hundred_are_handed_out(queue: Queue) -> None:
    """S-21."""
    await queue.post("/batch", {"jobs": [{"queue": "mail"}] * 101})
    assert [len(await queue.pull()), len(await queue.pull())] == [100, 1]


async def test_no_job_goes_to_two_workers(any_queue: Queue) -> None:
    """S-18: ten pulls at once on a hundred jobs."""
    await any_queue.post("/batch", {"jobs": [any_queue.document("0s", object_id=f"o{n}") for n in range(100)]})
    pulls = [any_queue.pull(None, f"w{n}", limit=15) for n in range(10)]
    handed_out = list(itertools.chain(*await asyncio.gather(*pulls), await any_queue.pull(None)))
    assert len({job["job_id"] for job in handed_out}) == len(handed_out) == 100


async def test_a_worker_may_want_some_types_or_another_order(queue: Queue) -> None:
    """S-43, S-44: queues and types are apart, and by priority a high one has a head start of ten minutes."""
    for kind, action in (("memory", "verify"), ("memory", "decay"), ("cognition", "verify")):
        await queue.post("", queue.document("0s", object_type=kind, action=action, object_id=kind))
    assert [job["type"] for job in await queue.pull(None, object_type="cognition")] == ["cognition.verify"]
    assert [job["type"] for job in await queue.pull(None, action="verify")] == ["memory.verify"]
    assert await queue.pull("mail") == []
    assert [job["type"] for job in await queue.pull(None, types=["memory.decay"])] == ["memory.decay"]
    said = {"worker_id": "w", "types": ["a"], "action": "verify"}
    assert refused(await queue.send("POST", f"{JOBS}/pull", said))[2] == {"types"}

    old = await queue.put("old", priority="low")
    await queue.advance("5m")
    new = await queue.put("new", priority="high")
    await queue.advance("1s")
    assert [job["job_id"] for job in await queue.pull(order="priority", limit=1)] == [new]
    assert [job["job_id"] for job in await queue.pull()] == [old]


async def test_whoever_waits_gets_what_comes_due(queue: Queue) -> None:
    async with queue.started():
        stays = asyncio.Event()
        waiting = asyncio.create_task(queue.wait_for_items(stays))
        await queue.pass_time("2s")
        job_id = await queue.put(delay_sec=3)
        await queue.pass_time("2s")
        assert not waiting.done()
        await queue.pass_time("1s")
        [job] = await waiting
        assert job["job_id"] == job_id

        waiting = asyncio.create_task(queue.wait_for_items(stays))
        await queue.pass_time("1s")
        queue.main.engine.queue.close()
        assert await waiting == []


async def test_nothing_is_handed_to_a_worker_that_has_hung_up(any_queue: Queue) -> None:
    """Neither if it hangs up while it waits, nor if it is gone by the time something was found for it."""
    queue, gone = any_queue, asyncio.Event()
    async with queue.started():
        waiting = asyncio.create_task(queue.wait_for_items(gone))
        await queue.pass_time("2s")
        gone.set()
        assert await waiting == []
        job_id = await queue.put()
        assert await queue.wait_for_items() == []
        [held] = await queue.pull()
        assert (held["job_id"], held["attempt"], held["last_error"]) == (job_id, 0, None)


async def test_a_worker_that_is_lost_loses_its_job_and_the_next_one_finds_what_it_left(queue: Queue) -> None:
    """S-45, X-136: a lapsed lease counts as a failed attempt; a heartbeat puts it off."""
    job_id = await queue.put(max_attempts=2)
    [held] = await queue.pull(lease_sec=60)
    await queue.advance("50s")
    beat = {"lease_sec": 60, "progress": {"done": 7}, "lease_token": held["lease_token"]}
    longer = await queue.post(f"/{job_id}/heartbeat", beat)
    assert (instant(longer["lease_until"]) - queue.now).total_seconds() == 60
    assert (await queue.get(f"jobs/{job_id}"))["progress"] == {"done": 7}
    queue.sink.has_made_wait = True
    await queue.advance("61s")
    lost = await queue.get(f"jobs/{job_id}")
    assert (lost["status"], lost["attempt"]) == ("queued", 1)
    assert "w1 did not answer" in lost["last_error"]
    [again] = await queue.pull(worker_id="w2")
    assert (again["progress"], again["last_error"]) == ({"done": 7}, lost["last_error"])
    for path, body in (("ack", {}), ("fail", {"error": "x"}), ("heartbeat", {}), ("release", {})):
        stale = await queue.send("POST", f"{JOBS}/{job_id}/{path}", {**body, "lease_token": held["lease_token"]})
        assert refused(stale)[:2] == (409, "STALE_LEASE")
    assert (await queue.post(f"/{job_id}/ack", {"lease_token": again["lease_token"]}))["status"] == "succeeded"


async def test_ten_workers_share_a_thousand_items_and_none_goes_twice(any_queue: Queue) -> None:
    """S-18, S-19."""
    queue = any_queue
    for first in range(0, 1000, 500):
        await queue.post("/batch", {"jobs": [{"queue": "mail", "payload": first + n} for n in range(500)]})
    handed: list[str] = []

    async def work(name: str) -> None:
        while jobs := await queue.pull(worker_id=name, limit=40):
            handed.extend(job["job_id"] for job in jobs)
            await queue.post("/ack", {"jobs": [{"job_id": job["job_id"]} for job in jobs]})

    await asyncio.gather(*[work(f"w{n}") for n in range(10)])
    assert len(handed) == len(set(handed)) == 1000
    assert (await queue.get("stats"))["queues"] == []
