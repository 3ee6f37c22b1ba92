"""The real app over an engine on any store, with time that a test moves and a real HTTP server to call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

from ksana.api import ops, tasks, v2
from ksana.api.kit import KeyRing, Scope
from ksana.api.services import JobDefaults, Services
from ksana.api.stored import StoredAnswers, StoredKeys
from ksana.domain.keys import new_key
from ksana.domain.ports import Store, Target
from ksana.domain.runs import Run
from ksana.engine.engine import Engine, EngineOptions
from ksana.observe.metrics import MetricsObserver
from ksana.stores.open import open_store
from ksana.targets.builtin import NoopTarget
from ksana.targets.http import HttpTarget, TargetPolicy
from tests.api.kit.client import Answer, Client
from tests.api.kit.shared import Seat, shared_app
from tests.kit.attempts import an_attempt_ends
from tests.kit.clock import NodeClock, VirtualClock
from tests.kit.gate import Gate
from tests.kit.sink import Sink

VERSION = "1.2.3"
DEADLINE = 30.0
CALLBACKS = "http://cronjob.internal/api/v1/callbacks"
# New Year's noon of 2030 is when a world begins; this comes once a year, and not soon.
FAR = "0 0 0 1 7 *"
_SECOND = timedelta(seconds=1)


class World(Client):
    """A caller of the app who also holds its clock, its store, its engine and the server its tasks call."""

    def __init__(self, url: str, sink: Sink, services: dict[str, Any], options: dict[str, Any]) -> None:
        self._url = url
        self._services = {"defaults": JobDefaults(), **services}
        self.options = {"callback_base": CALLBACKS, "token_ttl": timedelta(hours=1), **options}
        self._names = self._keys = 0
        self._put_away: list[Store] = []
        self._targets: list[Target] = []
        self.sink = sink
        self.clock = VirtualClock()

    async def open(self) -> World:
        """Start a node on the store: the first, or one after the last is gone."""
        clock = NodeClock(self.clock)
        real = open_store(self._url, pool_idle=1)
        await real.open()
        self._put_away.append(real)
        self.store = Gate(real)
        store = cast(Store, self.store)
        policy = TargetPolicy.of(allow_loopback=True, allow_private=False)
        http = HttpTarget(policy=policy, now=clock.now, global_headers={"X-Team": "ops"})
        targets: dict[str, Target] = {"http": http, "noop": NoopTarget()}
        self._targets += targets.values()
        self.observer = MetricsObserver(clock.now, version=VERSION)
        options = EngineOptions(name="node", **self.options)
        self.engine = Engine(store, targets, options, clock=clock, ticks=clock.ticks, observers=[self.observer])
        await self.engine.join()
        self.ring = KeyRing(StoredKeys(store), clock.ticks)
        seat = Seat(self._given(store, clock), StoredAnswers(store), self.ring)
        surfaces = (v2.surface, tasks.surface, ops.surface)
        self.app = shared_app(seat, *surfaces, version=VERSION, allowed_hosts=("*",))
        super().__init__(self.app)
        return self

    def _given(self, store: Store, clock: NodeClock) -> Services:
        async def metrics() -> tuple[bytes, str]:
            await self.observer.refresh(store, clock.now())
            return self.observer.render()

        return Services(**{"engine": self.engine, "version": VERSION, "metrics": metrics, **self._services})

    async def close(self) -> None:
        for target in self._targets:
            await target.close()
        for store in self._put_away:
            await store.close()

    # Requests

    async def put(self, target: str, json_body: Any = None, **options: Any) -> Answer:
        return await self.call("PUT", target, json_body=json_body, **options)

    async def patch(self, target: str, json_body: Any = None, **options: Any) -> Answer:
        return await self.call("PATCH", target, json_body=json_body, **options)

    async def delete(self, target: str, **options: Any) -> Answer:
        return await self.call("DELETE", target, **options)

    async def seen(self, path: str) -> Any:
        """The body of a GET that must succeed."""
        return ok(await self.get(path))

    async def task(self, **fields: Any) -> int:
        """Make a task that calls the sink, and give its id."""
        self._names += 1
        body = {"name": f"task {self._names}", "cron_expr": FAR, "target_url": f"{self.sink.url}/work", **fields}
        answer = await self.post("/api/v1/tasks", body)
        assert answer.status == 201, answer.body
        made: int = answer.json()["id"]
        return made

    async def change(self, task_id: int, **fields: Any) -> None:
        assert ok(await self.patch(f"/api/v1/tasks/{task_id}", fields)) == {"updated": True}

    async def trigger(self, task_id: int, **body: Any) -> int:
        """Trigger a task and give the run's id; it is not executed yet."""
        run_id: int = ok(await self.post(f"/api/v1/tasks/{task_id}/trigger", body or None))["run_id"]
        return run_id

    async def run(self, run_id: int) -> Any:
        return await self.seen(f"/api/v1/runs/{run_id}")

    async def runs(self, task_id: int, query: str = "") -> list[Any]:
        """The runs of a task, newest first."""
        found: list[Any] = await self.seen(f"/api/v1/tasks/{task_id}/runs{query}")
        return found

    async def statuses(self, task_id: int) -> list[str]:
        """How the runs of a task stand, oldest first."""
        return [run["Status"] for run in reversed(await self.runs(task_id, "?page_size=200"))]

    async def stored(self, run_id: int) -> Run:
        [run] = await self.store.get_runs([run_id])
        return cast(Run, run)

    # Time and work

    async def begin(self) -> None:
        """Fire and claim what is due; attempts are then under way."""
        await self.engine.planner.attend()
        await self.engine.reaper.attend()
        await self.engine.keeper.attend()
        self.engine.runner.wake_for_work()
        await self.engine.runner.run_once()

    async def work(self) -> None:
        """Fire and execute what is due, until nothing is left."""
        await self.begin()
        async with asyncio.timeout(DEADLINE):
            while not self.engine.runner.is_idle:
                await an_attempt_ends(self.engine.runner)
                self.engine.runner.wake_for_work()
                await self.engine.runner.run_once()

    async def until(self, run_id: int, *statuses: str) -> Any:
        """Let attempts under way go on until a run stands so."""
        async with asyncio.timeout(DEADLINE):
            while (run := await self.run(run_id))["Status"] not in statuses:
                await an_attempt_ends(self.engine.runner)
                await self.begin()
        return run

    async def advance(self, seconds: int) -> None:
        """Let time pass, second by second, and do all that is due."""
        for _ in range(seconds):
            self.clock.move_to(self.clock.time + _SECOND)
            await self.work()

    async def restart_after(self, seconds: int) -> None:
        """The node dies as by a power cut; another one starts that much later."""
        self.store.close()
        self.clock.move_to(self.clock.time + seconds * _SECOND)
        await self.open()

    async def key(self, *scopes: Scope) -> dict[str, str]:
        """Make an API key, known to the app at once, and give the headers it goes in."""
        self._keys += 1
        made = new_key(self._keys.to_bytes(40, "little"), name="a key", scopes=scopes, created_at=self.clock.time)
        await self.store.add_key(made.stored)
        self.ring.forget()
        return {"X-API-Key": made.text}

    async def metric(self, series: str) -> float:
        """The value of one series as a scrape sees it; 0 if it is not there."""
        self.clock.move_to(self.clock.time + _SECOND)
        for line in (await self.get("/metrics")).body.decode().splitlines():
            name, _, value = line.rpartition(" ")
            if name == series:
                return float(value)
        return 0.0


def ok(answer: Answer) -> Any:
    """The JSON of an answer that must be a success."""
    assert 200 <= answer.status < 300, answer.body
    return answer.json()


def refused(answer: Answer) -> tuple[int, str]:
    """The status and the code of an error, whose body is as every error's on this surface."""
    body = answer.json()
    assert answer.status >= 400, body
    assert {"error", "code", "message", "request_id"} <= body.keys()
    assert body["error"] == body["code"]
    assert body["message"]
    assert answer.headers["content-type"] == "application/json"
    return answer.status, body["error"]


def problems(answer: Answer) -> dict[str, str]:
    """The fields a 400 names."""
    assert refused(answer) == (400, "INVALID_ARGUMENT"), answer.body
    return {problem["field"]: problem["message"] for problem in answer.json()["problems"]}


@asynccontextmanager
async def open_world(
    url: str, sink: Sink, services: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[World]:
    """The app on this store; `services` and `options` say what the settings would."""
    world = World(url, sink, services or {}, options)
    await world.open()
    try:
        yield world
    finally:
        await world.close()
