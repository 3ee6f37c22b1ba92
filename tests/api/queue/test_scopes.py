"""Who may do what: reading, sending and working have scopes of their own."""

from typing import Any

from ksana.api.kit import Scope
from tests.api.queue.world import JOBS, Queue

CALLS: list[tuple[Scope, str, str, Any]] = [
    (Scope.QUEUE_WRITE, "POST", JOBS, {"queue": "mail"}),
    (Scope.QUEUE_WRITE, "POST", f"{JOBS}/batch", {"jobs": [{"queue": "mail"}]}),
    (Scope.QUEUE_WORK, "POST", f"{JOBS}/pull", {"worker_id": "w", "queue": "mail", "limit": 1}),
    (Scope.QUEUE_WORK, "POST", f"{JOBS}/job_1/heartbeat", None),
    (Scope.QUEUE_WORK, "POST", f"{JOBS}/job_1/release", None),
    (Scope.QUEUE_WORK, "POST", f"{JOBS}/job_1/ack", None),
    (Scope.QUEUE_WORK, "POST", f"{JOBS}/job_1/fail", {"error": "x"}),
    (Scope.QUEUE_WORK, "POST", f"{JOBS}/ack", {"jobs": [{"job_id": "job_1"}]}),
    (Scope.QUEUE_WORK, "POST", f"{JOBS}/fail", {"jobs": [{"job_id": "job_1", "error": "x"}]}),
    (Scope.QUEUE_READ, "GET", JOBS, None),
    (Scope.QUEUE_READ, "GET", f"{JOBS}/job_1", None),
    (Scope.QUEUE_READ, "GET", "/scheduler/dead-letters", None),
    (Scope.QUEUE_READ, "GET", "/scheduler/dead-letters/groups", None),
    (Scope.QUEUE_WRITE, "POST", "/scheduler/dead-letters/redrive", {"queue": "mail"}),
    (Scope.QUEUE_WRITE, "POST", f"{JOBS}/job_1/requeue", None),
    (Scope.QUEUE_READ, "GET", "/scheduler/stats", None),
]


async def test_each_call_needs_its_own_scope(queue: Queue) -> None:
    await queue.put()
    scopes = sorted({call[0] for call in CALLS})
    only = {scope: await queue.key(scope) for scope in scopes}
    others = {scope: await queue.key(*(set(Scope) - {scope, Scope.ADMIN})) for scope in scopes}
    for scope, method, path, body in CALLS:
        assert (await queue.send(method, path, body)).status == 401
        assert (await queue.send(method, path, body, **others[scope])).status == 403
        assert (await queue.send(method, path, body, **only[scope])).status in (200, 201, 409)


async def test_a_worker_sees_what_is_being_worked_on_and_nothing_else(queue: Queue) -> None:
    """Or else it could not go on where the last one had stopped."""
    held, waiting = await queue.put(max_attempts=2), await queue.put()
    await queue.pull(limit=1)
    await queue.post(f"/{held}/heartbeat", {"progress": {"sent": 1}})
    work = await queue.key(Scope.QUEUE_WORK)
    seen = await queue.send("GET", f"{JOBS}/{held}", **work)
    assert (seen.status, seen.json()["progress"]) == (200, {"sent": 1})
    assert (await queue.send("GET", f"{JOBS}/{waiting}", **work)).status == 403
    await queue.send("POST", f"{JOBS}/{held}/ack", {"output": "secret"}, **work)
    assert (await queue.send("GET", f"{JOBS}/{held}", **work)).status == 403
