"""Dead letters: found, grouped by what they died of, put back; and the figures of the queues."""

from typing import Any

from tests.api.queue.world import JOBS, Queue, instant, refused

DEAD = "/scheduler/dead-letters"


async def test_dead_letters_are_found_grouped_and_put_back(any_queue: Queue) -> None:
    queue = any_queue
    ids = [await queue.bury(f"timeout of {n % 2}") for n in range(4)]
    other = await queue.bury("Timeout elsewhere", queue="sms")
    alive = await queue.put()
    assert [job["job_id"] for job in (await queue.get("dead-letters"))["items"]] == [other, *ids[::-1]]
    found = await queue.get("dead-letters?error=timeout%20of&queue=mail&page_size=3&sort=job_id")
    assert ([job["job_id"] for job in found["items"]], found["total"]) == (ids[:3], 4)
    groups = (await queue.get("dead-letters/groups"))["groups"]
    assert [(group["queue"], group["error"], group["count"]) for group in groups] == [
        ("mail", "timeout of 0", 2),
        ("mail", "timeout of 1", 2),
        ("sms", "Timeout elsewhere", 1),
    ]
    assert groups[0]["job_id"] == ids[2]
    assert [group["count"] for group in (await queue.get("dead-letters/groups?queue=sms"))["groups"]] == [1]
    assert len((await queue.get("dead-letters/groups?limit=1"))["groups"]) == 1

    async def redrive(**said: Any) -> Any:
        answer = await queue.send("POST", f"{DEAD}/redrive", said)
        assert answer.status == 200, answer.body
        return answer.json()

    tried = await redrive(error="timeout", limit=3, dry_run=True)
    assert (tried["count"], [result["job"]["job_id"] for result in tried["results"]]) == (3, ids[:3])
    assert (await queue.get("dead-letters"))["total"] == 5
    done = await redrive(error="timeout", limit=3, rate_per_sec=0.5)
    spread = [instant(result["job"]["run_at"]) - queue.now for result in done["results"]]
    assert [span.total_seconds() for span in spread] == [0, 2, 4]
    assert {(result["job"]["status"], result["job"]["attempt"]) for result in done["results"]} == {("queued", 0)}
    by_id = await redrive(job_ids=[ids[3], alive, "job_999", "x", ids[0]])
    assert [result["status"] for result in by_id["results"]] == [200, 409, 404, 404, 409]
    assert by_id["count"] == 1
    edited = await redrive(job_ids=[other], payload={"fixed": True})
    assert edited["results"][0]["job"]["payload"] == {"fixed": True}
    [held] = await queue.pull("sms")
    assert (held["payload"], held["last_error"]) == ({"fixed": True}, "Timeout elsewhere")


async def test_a_redrive_says_what_it_means(queue: Queue) -> None:
    wrong: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {"job_ids"}),
        ({"job_ids": []}, {"job_ids"}),
        ({"job_ids": ["job_1", "job_1"], "queue": "mail"}, {"job_ids", "queue"}),
        ({"queue": "mail", "payload": 1}, {"payload"}),
        ({"queue": "mail", "rate_per_sec": 0}, {"rate_per_sec"}),
    ]
    for said, fields in wrong:
        assert refused(await queue.send("POST", f"{DEAD}/redrive", said)) == (400, "INVALID_ARGUMENT", fields)


async def test_one_that_is_over_without_success_can_be_put_back(queue: Queue) -> None:
    job_id = await queue.put({"n": 1})
    path = f"{JOBS}/{job_id}/requeue"
    assert refused(await queue.send("POST", path))[:2] == (409, "INVALID_STATE")
    await queue.pull()
    await queue.post(f"/{job_id}/fail", {"error": "bad", "retryable": False})
    back = await queue.post(f"/{job_id}/requeue", {"delay_sec": 60, "payload": None})
    assert (back["status"], back["attempt"], back["payload"]) == ("queued", 0, None)
    assert back["run_at"] == queue.at("60s")
    assert refused(await queue.send("POST", f"{JOBS}/job_99/requeue"))[:2] == (404, "NOT_FOUND")


async def test_the_figures_of_the_queues(any_queue: Queue) -> None:
    """S-39, X-134: on every store, each queue and all together; 0 when there is nothing."""
    queue = any_queue
    nothing = await queue.get("stats")
    assert nothing.pop("queues") == []
    assert set(nothing.values()) == {0}
    for _ in range(5):
        await queue.put()
    await queue.put(delay_sec=3600)
    await queue.bury(queue="sms")
    one, two = await queue.pull(limit=2)
    await queue.post(f"/{one['job_id']}/ack")
    await queue.post(f"/{two['job_id']}/fail", {"error": "x", "retry_delay_sec": 0.5})
    await queue.pull(limit=1)
    queue.clock.move_to(queue.now.replace(microsecond=0) + (instant(queue.at("90s")) - instant(queue.at())))
    stats = await queue.get("stats")
    mail, sms = stats.pop("queues")
    assert mail == {"queue": "mail", "queued": 4, "due": 3, "lag_seconds": 90, "running": 1, "dead_letters": 0}
    assert sms == {"queue": "sms", "queued": 0, "due": 0, "lag_seconds": 0, "running": 0, "dead_letters": 1}
    assert stats == {
        "jobs_due_count": 3,
        "jobs_lag_seconds": 90,
        "job_success_rate": 0.5,
        "job_retry_rate": 1 / 3,
        "dead_letter_count": 1,
    }


async def test_items_are_listed_by_what_is_asked_for(any_queue: Queue) -> None:
    """S-7, S-17."""
    queue = any_queue
    about = (await queue.post("", queue.document("0s")))["job_id"]
    first, second, third = [await queue.put(n) for n in range(3)]
    dead = await queue.bury(queue="sms")
    [held] = await queue.pull(limit=1, worker_id="w7")
    assert held["job_id"] == first
    asked: dict[str, list[str]] = {
        "": [dead, third, second, first, about],
        "?queue=mail": [third, second, first],
        "?status=queued": [third, second, about],
        "?status=queued&queue=mail&sort=run_at": [second, third],
        "?worker_id=w7": [first],
        "?status=dead_letter": [dead],
        "?status=failed": [],
        "?object_type=cognition": [about],
        "?action=verify": [],
        "?action=revalidate&queue=governance": [about],
        "?page=2&page_size=2": [second, first],
    }
    for query, ids in asked.items():
        assert [job["job_id"] for job in (await queue.get(f"jobs{query}"))["items"]] == ids, query
    for wrong in ("?status=done", "?colour=red", "?sort=error"):
        assert refused(await queue.send("GET", f"{JOBS}{wrong}"))[0] == 400
    assert refused(await queue.send("GET", f"{JOBS}/job_99"))[:2] == (404, "NOT_FOUND")
