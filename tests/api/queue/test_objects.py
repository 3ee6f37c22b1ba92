"""Objects: told of, written back by acks, held back by gates, verified as often as they may be, and all is audited."""

import asyncio
from typing import Any

import pytest

from ksana.domain.alerts import AlertQuery
from tests.api.queue.conftest import MakeQueue
from tests.api.queue.test_settling import Hook
from tests.api.queue.world import JOBS, Queue, ok, refused

OBJECT = "/scheduler/objects/cognition/cg_123"
OPEN = {"persona": "pass", "cognition": "pass"}


async def say(queue: Queue, **said: Any) -> Any:
    return ok(await queue.send("PUT", OBJECT, said))


async def verify(queue: Queue, n: int = 1) -> str:
    """Enqueue an item that verifies the object and is due, and give its id."""
    made = await queue.post("", queue.document(action="verify", idempotency_key=f"k{n}"))
    job_id: str = made["job_id"]
    return job_id


async def test_an_object_is_told_of_and_what_is_left_out_stays(queue: Queue) -> None:
    """X-128."""
    assert refused(await queue.send("GET", OBJECT))[:2] == (404, "NOT_FOUND")
    first = await queue.send("PUT", OBJECT, {"risk_tier": "high", "attributes": {"owner": "a"}})
    assert (first.status, first.headers["etag"]) == (201, '"1"')
    made = ok(first)
    assert (made["epistemic_state"], made["auto_verify_budget"], made["unknowable_verify_cap"]) == ("unassessed", 2, 3)
    assert made["held_back"]
    changed = await say(queue, gates=OPEN, next_action_at="2031-01-01T00:00:00Z")
    assert (changed["version"], changed["risk_tier"], changed["attributes"]) == (2, "high", {"owner": "a"})
    assert (changed["held_back"], changed["next_action_at"]) == (False, "2031-01-01T00:00:00Z")
    assert await queue.get("objects/cognition/cg_123") == changed
    assert refused(await queue.send("PUT", OBJECT, {"version": 1}))[:2] == (409, "VERSION_CONFLICT")
    assert refused(await queue.send("PUT", OBJECT, {}, If_Match='"1"'))[:2] == (412, "VERSION_CONFLICT")
    wrong = {"risk_tier": "huge", "gates": {"persona": "maybe"}, "auto_verify_budget": -1, "colour": "red"}
    assert refused(await queue.send("PUT", OBJECT, wrong))[2] == {
        "risk_tier",
        "gates.persona",
        "auto_verify_budget",
        "colour",
    }
    assert refused(await queue.send("PUT", "/scheduler/objects/dream/x", {}))[:2] == (404, "NOT_FOUND")
    await queue.send("PUT", "/scheduler/objects/memory/m_1", {"risk_tier": "low"})
    assert [one["object_id"] for one in (await queue.get("objects"))["items"]] == ["cg_123", "m_1"]
    for asked, found in (
        ("risk_tier=high", 1),
        ("object_type=memory", 1),
        ("epistemic_state=uncertain", 0),
        ("due_before=2031-01-02T00:00:00Z", 1),
        ("due_before=2030-12-31T00:00:00Z", 0),
    ):
        assert (await queue.get(f"objects?{asked}"))["total"] == found, asked


async def test_a_gate_that_is_left_out_stays_as_it_is(queue: Queue) -> None:
    await say(queue, risk_tier="high", gates=OPEN)
    changed = await say(queue, gates={"persona": "limit"})
    assert (changed["gates"], changed["held_back"]) == ({"persona": "limit", "cognition": "pass"}, False)


async def test_what_an_ack_says_of_an_object_is_refused_for_an_item_about_none(queue: Queue) -> None:
    """Nobody would write it back, nor enqueue what comes next."""
    ids = [await queue.put(), await queue.put(group_key="tenant-7")]
    await queue.pull()
    next_one = {"auto_enqueue": True, "action": "decay", "next_action_at": queue.at("1h")}
    for job_id in ids:
        path = f"{JOBS}/{job_id}/ack"
        assert refused(await queue.send("POST", path, {"epistemic_state": "supported"}))[2] == {"epistemic_state"}
        assert refused(await queue.send("POST", path, next_one))[2] == {"auto_enqueue"}
        assert (await queue.get(f"jobs/{job_id}"))["status"] == "running"
    many = [{"job_id": ids[0], "epistemic_state": "refuted"}, {"job_id": ids[1]}]
    answers = (await queue.post("/ack", {"jobs": many}))["results"]
    assert [answer["status"] for answer in answers] == [400, 200]


async def test_an_ack_writes_back_to_the_object_with_its_evidence(any_queue: Queue) -> None:
    """S-23, S-24, S-26, S-33, S-35: once, with before and after; an object nobody told of comes to be."""
    queue = any_queue
    job_id = await verify(queue)
    await queue.pull(None)
    body = {
        "audit_event_id": "aud_789",
        "next_action_at": "2031-02-28T00:00:00Z",
        "epistemic_state": "supported",
        "reason": "two sources agree",
    }
    await queue.post(f"/{job_id}/ack", body)
    await queue.post(f"/{job_id}/ack", {**body, "next_action_at": "2035-01-01T00:00:00Z"})
    seen = await queue.get("objects/cognition/cg_123")
    assert (seen["next_action_at"], seen["audit_event_id"]) == ("2031-02-28T00:00:00Z", "aud_789")
    assert (seen["epistemic_state"], seen["version"]) == ("supported", 1)
    audit = await queue.get("audit?object_type=cognition&object_id=cg_123")
    [entry] = audit["items"]
    assert (entry["action"], entry["actor"], entry["reason"]) == ("object.write_back", "w1", "two sources agree")
    assert (entry["audit_event_id"], entry["before"], audit["total"]) == ("aud_789", None, 1)
    assert entry["after"]["epistemic"] == "supported"
    assert (await queue.get("jobs?object_type=cognition&object_id=cg_123"))["total"] == 1
    assert (await queue.get("jobs?object_type=cognition&object_id=cg_1"))["total"] == 0


@pytest.mark.parametrize("said", [{"audit_event_id": "aud_2"}, {"epistemic_state": "refuted", "next_action_at": None}])
async def test_an_ack_that_leaves_out_when_comes_next_leaves_that_as_it_is(any_queue: Queue, said: Any) -> None:
    queue = any_queue
    await say(queue, next_action_at="2031-02-28T00:00:00Z")
    job_id = await verify(queue)
    await queue.pull(None)
    await queue.post(f"/{job_id}/ack", said)
    seen = await queue.get("objects/cognition/cg_123")
    assert (seen["version"], seen["next_action_at"]) == (2, "2031-02-28T00:00:00Z")
    assert (await say(queue, next_action_at=None))["next_action_at"] is None


async def test_what_an_action_cannot_lead_to_is_refused_with_nothing_done(queue: Queue) -> None:
    """S-34, S-38: the item stays the worker's."""
    await say(queue, epistemic_state="archived")
    job_id = await verify(queue)
    await queue.pull(None)
    wrong = await queue.send("POST", f"{JOBS}/{job_id}/ack", {"epistemic_state": "supported"})
    assert refused(wrong)[:2] == (409, "INVALID_STATE")
    assert "archived; verify cannot make it supported" in wrong.json()["message"]
    assert (await queue.get(f"jobs/{job_id}"))["status"] == "running"
    assert (await queue.post(f"/{job_id}/ack", {"next_action_at": "2031-01-01T00:00:00Z"}))["status"] == "succeeded"


async def test_many_acks_of_one_object_count_one_after_the_other(any_queue: Queue) -> None:
    queue = any_queue
    ids = [await verify(queue, n) for n in range(3)]
    await queue.pull(None)
    jobs = [
        {"job_id": ids[0], "epistemic_state": "uncertain", "audit_event_id": "a"},
        {"job_id": ids[1], "epistemic_state": "archived", "audit_event_id": "b"},
        {"job_id": ids[2], "epistemic_state": "refuted", "audit_event_id": "c"},
    ]
    answers = (await queue.post("/ack", {"jobs": jobs}))["results"]
    assert [answer["status"] for answer in answers] == [200, 409, 200]
    seen = await queue.get("objects/cognition/cg_123")
    assert (seen["epistemic_state"], seen["audit_event_id"], seen["version"]) == ("refuted", "c", 1)
    assert [one["audit_event_id"] for one in (await queue.get("audit"))["items"]] == ["c", "a"]


async def test_an_ack_may_enqueue_what_comes_next(any_queue: Queue) -> None:
    """X-129: with the ack or not at all, and once however often it is said."""
    queue = any_queue
    job_id = await verify(queue)
    await queue.pull(None)
    path = f"{JOBS}/{job_id}/ack"
    assert refused(await queue.send("POST", path, {"auto_enqueue": True}))[2] == {"action", "next_action_at"}
    assert refused(await queue.send("POST", path, {"action": "decay"}))[2] == {"action"}
    body = {"next_action_at": queue.at("1h"), "auto_enqueue": True, "action": "decay"}
    # As with any other item: it must be possible to try it again later.
    late = await queue.send("POST", path, {**body, "next_action_at": "9999-12-31T23:59:59Z"})
    assert refused(late)[2] == {"next_action_at"}
    for _ in range(2):
        ok(await queue.send("POST", path, body))
    [made] = (await queue.get("jobs?status=queued"))["items"]
    assert (made["object_id"], made["type"], made["run_at"]) == ("cg_123", "cognition.decay", queue.at("1h"))
    assert made["idempotency_key"] == f"cg_123:decay:{queue.at('1h')}"


async def test_a_gate_keeps_the_items_of_a_risky_object_in_the_queue(make_queue: MakeQueue) -> None:
    """S-40, X-130: read at every pull, without an attempt or a place of the limit; told once, and once more after an
    hour."""
    queue = await make_queue(hooks=[Hook()])
    await say(queue, risk_tier="high")
    held = await verify(queue)
    free = (await queue.post("", queue.document(object_id="other")))["job_id"]
    assert [job["job_id"] for job in await queue.pull(None, limit=1)] == [free]
    await queue.post(f"/{free}/ack")
    assert await queue.pull(None) == []
    seen = await queue.get(f"jobs/{held}")
    assert (seen["status"], seen["attempt"], seen["last_error"]) == ("queued", 0, "gate_blocked")
    [entry] = (await queue.get("audit?action=decision_gate"))["items"]
    assert (entry["subject_id"], entry["actor"]) == ("cognition/cg_123", "scheduler")
    assert (await queue.store.find_alerts(AlertQuery())).total == 0
    await queue.advance("1h")
    for _ in range(3):
        assert await queue.pull(None) == []
    [alert] = (await queue.store.find_alerts(AlertQuery())).items
    assert b'"run.gate_blocked"' in alert.body
    await say(queue, gates=OPEN, reason="reviewed")
    assert [job["job_id"] for job in await queue.pull(None)] == [held]


async def test_what_is_handed_out_reaches_its_worker_though_nobody_can_be_told_of_the_rest(queue: Queue) -> None:
    await say(queue, risk_tier="high")
    held = await verify(queue)
    free = (await queue.post("", queue.document(object_id="other")))["job_id"]
    with queue.main.gate.away("settle") as outage:
        assert [job["job_id"] for job in await queue.pull(None)] == [free]
    assert outage.hits == 1
    assert (await queue.get(f"jobs/{held}"))["last_error"] is None
    await queue.pull(None)
    assert (await queue.get(f"jobs/{held}"))["last_error"] == "gate_blocked"


async def test_whoever_waits_is_served_when_the_gate_opens(queue: Queue) -> None:
    await say(queue, risk_tier="high")
    held = (await queue.post("", queue.document(queue="mail")))["job_id"]
    async with queue.started():
        waiting = asyncio.create_task(queue.wait_for_items(asyncio.Event()))
        await queue.pass_time("2s")
        assert not waiting.done()
        await say(queue, gates=OPEN)
        assert [job["job_id"] for job in await waiting] == [held]


async def test_the_budget_of_what_is_uncertain_is_spent_with_every_hand_out(any_queue: Queue) -> None:
    """S-41, X-131: a retry spends again, and what comes after that fails with the reason."""
    queue = any_queue
    await say(queue, epistemic_state="uncertain")
    first, second = await verify(queue, 1), await verify(queue, 2)
    assert [job["job_id"] for job in await queue.pull(None, limit=1)] == [first]
    await queue.post(f"/{first}/fail", {"error": "no"})
    assert len(await queue.pull(None, limit=1)) == 1
    assert (await queue.get("objects/cognition/cg_123"))["verify_count"] == 2
    assert await queue.pull(None) == []
    over = [await queue.get(f"jobs/{job_id}") for job_id in (first, second)]
    assert sorted(job["status"] for job in over) == ["failed", "running"]
    [failed] = [job for job in over if job["status"] == "failed"]
    assert failed["last_error"].startswith("auto_verify_budget exhausted")
    assert (await queue.get("audit?action=decision_budget"))["total"] == 1
    await say(queue, auto_verify_budget=9)
    await queue.post(f"/{failed['job_id']}/requeue")
    assert [job["job_id"] for job in await queue.pull(None)] == [failed["job_id"]]


async def test_what_cannot_be_known_is_not_verified_without_end(queue: Queue) -> None:
    """S-42, X-132: after three tries the next fails, and no more are taken."""
    await say(queue, unknown_type="ontic_unknowable")
    for n in range(4):
        await verify(queue, n)
    assert len(await queue.pull(None)) == 3
    await queue.pull(None)
    [failed] = (await queue.get("jobs?status=failed"))["items"]
    assert failed["last_error"].startswith("unknowable_verify_cap reached")
    more = queue.document(action="verify", idempotency_key="k9")
    assert refused(await queue.send("POST", JOBS, more))[:2] == (409, "VERIFY_CAP_REACHED")
    again = queue.document(action="verify", idempotency_key="k1")
    assert (await queue.post("", again))["deduplicated"]
    assert (await queue.post("", queue.document(action="archive")))["status"] == "queued"
    answers = (await queue.post("/batch", {"jobs": [more, {"queue": "mail"}]}))["results"]
    assert [answer["status"] for answer in answers] == [409, 201]
