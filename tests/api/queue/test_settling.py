"""What workers say of items: done, failed, given back; one at a time or many."""

from typing import Any

from ksana.domain.alerts import AlertQuery
from ksana.domain.jobs import TargetSpec
from tests.api.queue.conftest import MakeQueue
from tests.api.queue.world import JOBS, Queue, refused


class Hook:
    name = "pager"

    async def deliver(self, alert: Any) -> str:
        return ""

    async def close(self) -> None: ...


async def test_an_acknowledged_job_is_done_and_says_so_again(queue: Queue) -> None:
    """S-22, S-25, S-26, X-126: what is said again changes nothing, whether by the token or without one."""
    made = await queue.post("", queue.document("0s"))
    path = f"/{made['job_id']}/ack"
    body = {"result": "succeeded", "audit_event_id": "aud_789", "next_action_at": "2031-02-28T00:00:00Z"}
    assert refused(await queue.send("POST", JOBS + path, body))[:2] == (409, "INVALID_STATE")
    [held] = await queue.pull(None)
    done = await queue.post(path, {**body, "lease_token": held["lease_token"]})
    assert (done["status"], done["attempt"], done["lease_until"]) == ("succeeded", 0, None)
    seen = await queue.get(f"jobs/{made['job_id']}")
    assert (seen["audit_event_id"], seen["next_action_at"]) == ("aud_789", "2031-02-28T00:00:00Z")
    other = {**body, "next_action_at": "2035-01-01T00:00:00Z", "audit_event_id": "aud_1"}
    for said in (other, {**other, "lease_token": held["lease_token"]}):
        assert await queue.post(path, said) == done
    assert await queue.get(f"jobs/{made['job_id']}") == seen
    stale = await queue.send("POST", JOBS + path, {"lease_token": "1.9"})
    assert refused(stale)[:2] == (409, "STALE_LEASE")
    for job_id in ("job_999", "999", "job_x", "job_" + "9" * 30):
        assert refused(await queue.send("POST", f"{JOBS}/{job_id}/ack", body))[:2] == (404, "NOT_FOUND")


async def test_an_ack_that_says_failed_ends_the_job_without_another_try(queue: Queue) -> None:
    """S-7, X-82, X-127."""
    job_id = await queue.put()
    await queue.pull()
    path = f"{JOBS}/{job_id}/ack"
    assert refused(await queue.send("POST", path, {"result": "maybe"}))[2] == {"result"}
    assert refused(await queue.send("POST", path, {"error": "x", "next_action_at": "x"}))[2] == {
        "error",
        "next_action_at",
    }
    wrong = {"result": "failed", "output": 1, "next_action_at": "2031-01-01T00:00:00Z"}
    assert refused(await queue.send("POST", path, wrong))[2] == {"output", "next_action_at"}
    over = await queue.post(
        f"/{job_id}/ack", {"result": "failed", "error": "no such object", "audit_event_id": "aud_1"}
    )
    assert (over["status"], over["attempt"], over["last_error"]) == ("failed", 1, "no such object")
    assert (await queue.get(f"jobs/{job_id}"))["audit_event_id"] == "aud_1"
    assert refused(await queue.send("POST", path, {}))[:2] == (409, "INVALID_STATE")


async def test_a_failed_job_comes_back_until_it_is_a_dead_letter(make_queue: MakeQueue) -> None:
    """S-27, S-28, S-29, S-30, S-31, S-32: later each time, with the same key, and with one alert in the end."""
    queue = await make_queue(hooks=[Hook()])
    made = await queue.post("", queue.document("1m", priority="high"))
    path = f"/{made['job_id']}/fail"
    body = {"error": "timeout while verifying evidence", "retry_delay_sec": 300}
    assert refused(await queue.send("POST", JOBS + path, body))[:2] == (409, "INVALID_STATE")
    minutes = 1
    for attempt in (1, 2):
        await queue.pull(None, now=queue.at(f"{minutes}m"))
        minutes += 5
        failed = await queue.post(path, body)
        assert (failed["status"], failed["attempt"], failed["last_error"]) == ("queued", attempt, body["error"])
        assert failed["run_at"] == queue.at(f"{minutes}m")
        assert failed["idempotency_key"] == made["idempotency_key"]
        assert await queue.pull(None, now=queue.at(f"{minutes - 1}m")) == []
    await queue.post("", queue.document("11m", object_id="other", priority="low"))
    await queue.pull(None, now=queue.at("11m"), limit=1)
    dead = await queue.post(path, body)
    assert (dead["status"], dead["attempt"], dead["idempotency_key"]) == ("dead_letter", 3, made["idempotency_key"])
    assert refused(await queue.send("POST", JOBS + path, body))[:2] == (409, "INVALID_STATE")
    [alert] = (await queue.store.find_alerts(AlertQuery())).items
    assert (f"job_{alert.run_id}", alert.hook) == (made["job_id"], "pager")
    assert b"run.dead_letter" in alert.body
    assert [job["object_id"] for job in await queue.pull(None, now=queue.at("1h"))] == ["other"]


async def test_a_late_job_rests_from_now_and_one_beyond_help_fails_at_once(queue: Queue) -> None:
    """X-74, X-82."""
    job_id = await queue.put()
    await queue.advance("1h")
    await queue.pull()
    assert (await queue.post(f"/{job_id}/fail", {"error": "x", "retry_delay_sec": 60}))["run_at"] == queue.at("60s")
    await queue.advance("60s")
    await queue.pull()
    over = await queue.post(f"/{job_id}/fail", {"error": "bad payload", "retryable": False})
    assert (over["status"], over["attempt"]) == ("failed", 2)
    for wrong in ({}, {"error": ""}, {"error": "x", "retry_delay_sec": -1}):
        assert refused(await queue.send("POST", f"{JOBS}/{job_id}/fail", wrong))[0] == 400


async def test_what_is_given_back_can_be_had_at_once_and_counts_as_no_failure(queue: Queue) -> None:
    job_id = await queue.put()
    [held] = await queue.pull()
    back = await queue.post(f"/{job_id}/release", {"lease_token": held["lease_token"]})
    assert (back["status"], back["attempt"], back["worker_id"]) == ("queued", 0, None)
    assert [job["job_id"] for job in await queue.pull(worker_id="w2")] == [job_id]


async def test_many_are_settled_in_one_step_and_each_is_answered(any_queue: Queue) -> None:
    queue = any_queue
    await queue.post("/batch", {"jobs": [{"queue": "mail"}] * 5})
    held = await queue.pull()
    acks = [{"job_id": job["job_id"], "lease_token": job["lease_token"]} for job in held[:2]]
    acks[1]["lease_token"] = "1.7"
    acks += [{"job_id": "job_999"}, {"job_id": "nobody"}, {"job_id": held[2]["job_id"], "output": {"n": 2}}]
    calls = queue.main.gate.calls
    results = (await queue.post("/ack", {"jobs": acks}))["results"]
    assert queue.main.gate.calls - calls == 2
    assert [result["status"] for result in results] == [200, 409, 404, 404, 200]
    assert results[0]["job"]["status"] == "succeeded"
    assert results[1]["error"]["code"] == "STALE_LEASE"
    assert (await queue.get(f"jobs/{held[2]['job_id']}"))["output"] == {"n": 2}

    fails = [{"job_id": held[3]["job_id"], "error": "a"}, {"job_id": held[0]["job_id"], "error": "b"}]
    results = (await queue.post("/fail", {"jobs": fails}))["results"]
    assert [result["status"] for result in results] == [200, 409]
    assert results[0]["job"]["last_error"] == "a"
    assert refused(await queue.send("POST", f"{JOBS}/fail", {"jobs": [fails[0]] * 2}))[2] == {"jobs[1].job_id"}
    wrong = {"job_id": held[4]["job_id"], "next_action_at": "never"}
    assert refused(await queue.send("POST", f"{JOBS}/ack", {"jobs": [wrong]}))[2] == {"jobs[0].next_action_at"}


async def test_a_step_of_a_chain_is_an_item_and_its_own_run_is_none(queue: Queue) -> None:
    nodes = [
        {"id": "q", "type": "queue", "cfg": {"queue": "mail", "payload": 7}},
        {"id": "b", "type": "echo", "dependsOn": ["q"], "cfg": {"message": "{{q.artifact.done}}"}},
    ]
    chain = await queue.trigger(await queue.job(target=TargetSpec("chain", {"nodes": nodes})))
    [held] = await queue.pull()
    assert (held["payload"], held["type"], held["object_type"]) == (7, "q", None)
    [step] = [run for run in await queue.store.children(chain.id) if run.step == "q"]
    assert refused(await queue.send("POST", f"{JOBS}/job_{step.id}/ack"))[:2] == (404, "NOT_FOUND")
    assert (await queue.get("jobs"))["total"] == 1
    await queue.post(f"/{held['job_id']}/ack", {"output": {"done": "yes"}})
    await queue.settle()
    standing = await queue.main.engine.chains.steps(await queue.run(chain.id))
    assert [one.artifact for one in standing] == [b'{"done":"yes"}', b'"yes"']
