"""Enqueueing: the document's items and free ones, once for ever by their key, one or many at a time."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from ksana.domain.retention import Retention
from tests.api.queue.world import JOBS, Queue, refused

KEYS = {
    *("job_id", "object_type", "object_id", "action", "run_at", "priority", "attempt", "max_attempts"),
    *("idempotency_key", "status", "last_error"),
}


async def test_the_request_of_the_document_makes_a_queued_job(queue: Queue) -> None:
    """S-4, S-5, S-6, S-8, S-9, X-123: every key of the object; the same instant written otherwise is the same job."""
    body = queue.document("1h")
    answer = await queue.send("POST", JOBS, body)
    made = answer.json()
    assert (answer.status, answer.headers["location"]) == (201, f"{JOBS}/{made['job_id']}")
    assert made.keys() >= KEYS
    assert made["job_id"].startswith("job_")
    assert {name: made[name] for name in body} == body
    assert (made["status"], made["attempt"], made["max_attempts"], made["last_error"]) == ("queued", 0, 3, None)
    assert made["idempotency_key"] == f"cg_123:revalidate:{body['run_at']}"
    assert (made["queue"], made["type"], made["deduplicated"]) == ("governance", "cognition.revalidate", False)

    del body["priority"]
    body["run_at"] = body["run_at"].replace("Z", ".250+00:00")
    again = await queue.send("POST", JOBS, body)
    assert (again.status, again.json()) == (200, {**made, "deduplicated": True})
    other = await queue.post("", {**body, "action": "decay"})
    assert (other["priority"], other["run_at"]) == ("medium", made["run_at"].replace("Z", ".25Z"))


WRONG: list[tuple[dict[str, Any], set[str]]] = [
    ({"object_type": "dream"}, {"object_type"}),
    ({"action": "forget"}, {"action"}),
    ({"priority": "urgent"}, {"priority"}),
    ({"max_attempts": 0}, {"max_attempts"}),
    ({"object_type": None, "object_id": None}, {"object_type", "object_id"}),
    ({"run_at": None, "action": None}, {"run_at", "action"}),
    ({"object_id": ""}, {"object_id"}),
    ({"object_id": "a\nb"}, {"object_id"}),
    ({"run_at": "tomorrow"}, {"run_at"}),
    ({"run_at": "2030-01-01T00:00:00"}, {"run_at"}),
    ({"run_at": "2000-01-01T00:00:00Z"}, {"run_at"}),
    ({"run_at": "9999-01-01T00:00:00Z"}, {"run_at"}),
    ({"delay_sec": 5, "type": "x"}, {"delay_sec", "type"}),
    ({"colour": "red"}, {"colour"}),
]
WRONG_FREE: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"queue"}),
    ({"queue": "a b"}, {"queue"}),
    ({"queue": "governance"}, {"object_type", "object_id", "action"}),
    ({"queue": "mail", "delay_sec": 1, "run_at": "2030-01-01T00:00:00Z"}, {"delay_sec"}),
    ({"queue": "mail", "delay_sec": -1, "idempotency_key": ""}, {"delay_sec", "idempotency_key"}),
]


async def test_what_is_missing_or_wrong_is_named_and_nothing_is_stored(queue: Queue) -> None:
    """S-2, S-3, S-5, S-8, S-11, S-12."""
    for said, fields in WRONG:
        answer = await queue.send("POST", JOBS, queue.document("1h", **said))
        assert refused(answer) == (400, "INVALID_ARGUMENT", fields), said
    for said, fields in WRONG_FREE:
        assert refused(await queue.send("POST", JOBS, said)) == (400, "INVALID_ARGUMENT", fields), said
    assert refused(await queue.send("POST", JOBS, queue.document(timedelta(seconds=-1))))[2] == {"run_at"}
    assert (await queue.get("jobs"))["total"] == 0
    await queue.post("", queue.document("0s"))


async def test_a_key_is_used_once_for_ever(any_queue: Queue) -> None:
    """S-10, X-122: by however many at once, and after the item is done or forgotten."""
    queue, body = any_queue, any_queue.document("1h")
    answers = await asyncio.gather(*[queue.send("POST", JOBS, body) for _ in range(20)])
    assert sorted(answer.status for answer in answers) == [200] * 19 + [201]
    [job_id] = {answer.json()["job_id"] for answer in answers}
    assert (await queue.get("jobs"))["total"] == 1
    [held] = await queue.pull(None, now=queue.at("2h"))
    await queue.post(f"/{job_id}/ack")
    again = await queue.post("", body)
    assert (again["job_id"], again["status"], again["deduplicated"]) == (job_id, "succeeded", True)
    assert held["idempotency_key"] == again["idempotency_key"]
    late = queue.now + timedelta(days=90)
    await queue.store.prune(Retention(late, late, 0, 100))
    assert refused(await queue.send("POST", JOBS, body))[:2] == (409, "ALREADY_EXISTS")


async def test_free_items_carry_anything_and_have_keys_of_their_own_queue(queue: Queue) -> None:
    """S-43."""
    payload = {"to": ["a@b.c"], "n": 1.5, "nothing": None}
    made = await queue.post(
        "", {"queue": "mail", "payload": payload, "delay_sec": 90, "type": "welcome", "idempotency_key": "k"}
    )
    assert (made["payload"], made["run_at"], made["type"]) == (payload, queue.at("90s"), "welcome")
    assert (made["object_type"], made["object_id"], made["action"]) == (None, None, None)
    assert (await queue.post("", {"queue": "mail", "idempotency_key": "k"}))["job_id"] == made["job_id"]
    assert (await queue.post("", {"queue": "mail"}, Idempotency_Key="k"))["job_id"] == made["job_id"]
    assert not (await queue.post("", {"queue": "sms", "idempotency_key": "k"}))["deduplicated"]
    assert not (await queue.post("", {"queue": "sms"}))["deduplicated"]


async def test_of_many_each_is_answered_on_its_own_in_order(queue: Queue) -> None:
    mail = {"queue": "mail", "idempotency_key": "k"}
    jobs = [mail, {"queue": "mail", "max_attempts": 0}, queue.document("1h"), mail, {"nonsense": 1}]
    results = (await queue.post("/batch", {"jobs": jobs}))["results"]
    assert [result["status"] for result in results] == [201, 400, 201, 200, 400]
    assert results[3]["job"]["job_id"] == results[0]["job"]["job_id"]
    assert results[1]["error"]["problems"][0]["field"] == "max_attempts"
    assert (await queue.get("jobs"))["total"] == 2
    for wrong in ([], [mail] * 1001, [7]):
        assert refused(await queue.send("POST", f"{JOBS}/batch", {"jobs": wrong}))[0] == 400


@pytest.mark.parametrize("after", ["0s", "3s"])
async def test_the_current_second_is_not_the_past(queue: Queue, after: str) -> None:
    """S-11: instants are compared in whole seconds."""
    now = queue.at()
    queue.clock.move_to(queue.now + timedelta(milliseconds=900))
    assert (await queue.post("", queue.document(after) if after != "0s" else queue.document(run_at=now)))["job_id"]
