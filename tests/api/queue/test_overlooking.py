"""Queues as operators look at them: how each stands, what is set for it, who holds its items."""

from __future__ import annotations

from tests.api.queue.world import Queue, ok


async def test_a_queue_shows_what_waits_is_held_and_is_dead(any_queue: Queue) -> None:
    queue = any_queue
    await queue.bury()
    for _ in range(3):
        await queue.put()
    await queue.put(run_at=queue.at("1h"))
    assert len(await queue.pull(worker_id="w1", limit=1)) == 1
    await queue.put(queue="other")
    await queue.advance("30s")
    shown = ok(await queue.send("GET", "/api/v2/queues"))["items"]
    assert shown == [
        {
            "queue": "mail",
            "paused": False,
            "reason": "",
            "queued": 3,
            "due": 2,
            "lag_seconds": 30.0,
            "held": 1,
            "dead_letters": 1,
            "limits": None,
        },
        {**shown[1], "queue": "other", "queued": 1, "due": 1, "held": 0, "dead_letters": 0},
    ]


async def test_what_is_set_for_a_queue_is_shown_even_if_it_is_empty(queue: Queue) -> None:
    ok(await queue.send("POST", "/scheduler/queues/mail/pause", {"reason": "full"}))
    [paused] = ok(await queue.send("GET", "/api/v2/queues"))["items"]
    assert (paused["paused"], paused["reason"], paused["limits"], paused["queued"]) == (True, "full", None, 0)
    ok(await queue.send("PUT", "/scheduler/queues/mail", {"concurrency": 4, "rate": {"count": 2, "per_sec": 60}}))
    [limited] = ok(await queue.send("GET", "/api/v2/queues"))["items"]
    assert limited["limits"] == {
        "concurrency": 4,
        "rate": {"count": 2, "per": "1m"},
        "key_concurrency": None,
        "key_rate": None,
    }


async def test_holders_are_told_with_what_they_hold_and_until_when(any_queue: Queue) -> None:
    queue = any_queue
    for _ in range(3):
        await queue.put()
    await queue.put(queue="other")
    await queue.pull(worker_id="slow", limit=1, lease_sec=60)
    await queue.advance("10s")
    await queue.pull(worker_id="busy", limit=2, lease_sec=60)
    await queue.pull("other", worker_id="elsewhere")
    shown = ok(await queue.send("GET", "/api/v2/queues/mail/holders"))["items"]
    assert [(one["holder"], one["items"]) for one in shown] == [("busy", 2), ("slow", 1)]
    assert [one["oldest_until"][:19] + "Z" for one in shown] == [queue.at("60s"), queue.at("50s")]
    assert ok(await queue.send("GET", "/api/v2/queues/nobody/holders")) == {"items": []}


async def test_putting_dead_letters_back_leaves_an_entry_for_each(queue: Queue) -> None:
    job_id = await queue.bury()
    ok(await queue.send("POST", "/scheduler/dead-letters/redrive", {"job_ids": [job_id]}))
    [entry] = ok(await queue.send("GET", "/api/v2/audit?subject=run"))["items"]
    assert (entry["action"], f"job_{entry['subject_id']}") == ("run.redrive", job_id)
    assert entry["after"]["state"] == "RETRYING"
