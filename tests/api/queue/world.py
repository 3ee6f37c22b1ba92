"""The queue on a clock that a test moves: the surface over a real engine and a real store."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import cache
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from ksana.api import ops, queue, v2
from ksana.api.kit import KeyRing, Scope, build_app
from ksana.api.services import JobDefaults, Services
from ksana.api.stored import StoredAnswers, StoredKeys
from ksana.domain.items import Rates
from ksana.domain.keys import new_key
from ksana.domain.times import format_instant
from ksana.observe.queue_rates import QueueRates
from tests.api.kit.client import Answer, Client
from tests.kit.world import MakeStore, Span, World, span_of

JOBS = "/scheduler/jobs"


class Queue(World):
    """A world whose items are enqueued, pulled and settled over HTTP."""

    def __init__(self, make_store: MakeStore, **options: Any) -> None:
        super().__init__(make_store, **options)
        self._keys = 0
        self.client = Client(self.app)

    async def open(self) -> Queue:
        await super().open()
        self.ring = KeyRing(StoredKeys(self.store), lambda: 0.0)
        self.answers = StoredAnswers(self.store)
        return self

    @property
    def services(self) -> Services:
        return Services(self.main.engine, "1.2.3", JobDefaults(), None, queue_rates=self._rates)

    def _rates(self) -> Rates:
        rates = QueueRates()
        rates.on_moved([(move, None) for move in self.main.diary.moved], self.now)
        return rates()

    async def app(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """The one app of this process, as it serves this world."""
        token = _served.set(self)
        try:
            await _shared_app()(scope, receive, send)
        finally:
            _served.reset(token)

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.call(method, path, json_body=body, headers=named)

    async def wait_for_items(self, hangs_up: asyncio.Event | None = None) -> Any:
        """What a worker of the queue mail is answered who waits for up to a minute. It hangs up when that is set, or
        else at once."""
        wanted = {"worker_id": "w", "queue": "mail", "wait_sec": 60}
        return ok(await self.client.call("POST", f"{JOBS}/pull", json_body=wanted, hangs_up=hangs_up))["jobs"]

    async def post(self, path: str, body: Any = None, **headers: str) -> Any:
        """A POST below /scheduler/jobs that must succeed."""
        return ok(await self.send("POST", f"{JOBS}{path}", body, **headers))

    async def get(self, path: str) -> Any:  # type: ignore[override]
        return ok(await self.send("GET", f"/scheduler/{path}"))

    def at(self, after: Span = timedelta(0)) -> str:
        """An instant so long from now, as it is written."""
        return format_instant(self.now + span_of(after), "seconds")

    def document(self, after: Span = timedelta(0), **said: Any) -> dict[str, Any]:
        """The request of the document, some time from now."""
        named = {"object_type": "cognition", "object_id": "cg_123", "action": "revalidate", "priority": "medium"}
        return {**named, "run_at": self.at(after), **said}

    async def put(self, payload: Any = None, queue: str = "mail", **said: Any) -> str:
        """Enqueue an item about nothing, and give its id."""
        job_id: str = (await self.post("", {"queue": queue, "payload": payload, **said}))["job_id"]
        return job_id

    async def pull(self, queue: str | None = "mail", worker_id: str = "w1", **said: Any) -> list[Any]:
        """What a worker is handed out."""
        wanted = {"worker_id": worker_id, **({} if queue is None else {"queue": queue}), **said}
        jobs: list[Any] = (await self.post("/pull", wanted))["jobs"]
        return jobs

    async def bury(self, error: str = "no", **said: Any) -> str:
        """Make a dead letter, and give its id."""
        job_id = await self.put(max_attempts=1, **said)
        await self.pull(said.get("queue", "mail"))
        assert (await self.post(f"/{job_id}/fail", {"error": error}))["status"] == "dead_letter"
        return job_id

    async def key(self, *scopes: Scope) -> dict[str, str]:
        """Make an API key, known to the app at once, and give the headers it goes in."""
        self._keys += 1
        made = new_key(self._keys.to_bytes(40, "little"), name="a key", scopes=scopes, created_at=self.now)
        await self.store.add_key(made.stored)
        self.ring.forget()
        return {"X_API_Key": made.text}


_served: ContextVar[Queue] = ContextVar("served")


class _Of:
    """Something of the world that is served: an app is expensive to build, and all worlds share one."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(_served.get(), self._name), name)


@cache
def _shared_app() -> ASGIApp:
    return build_app(
        [queue.surface(), v2.surface(), ops.surface()],
        _Of("services"),
        keys=cast(KeyRing, _Of("ring")),
        idempotency=cast(StoredAnswers, _Of("answers")),
        version="1.2.3",
        allowed_hosts=["*"],
    )


def ok(answer: Answer) -> Any:
    """The JSON of an answer that must be a success."""
    assert 200 <= answer.status < 300, answer.body
    return answer.json()


def refused(answer: Answer) -> tuple[int, str, set[str]]:
    """The status, the code and the fields at fault of an error, whose body is as every error's on this surface."""
    body = answer.json()
    assert answer.status >= 400, body
    assert {"error", "code", "message", "request_id"} <= body.keys()
    assert body["error"] == body["message"]
    return answer.status, body["code"], {problem["field"] for problem in body.get("problems", [])}


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
