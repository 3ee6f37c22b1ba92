"""The real app without a network: both surfaces over an engine on a SQLite file, and time that a test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from starlette.types import ASGIApp

from ksana.api import jobs, ops, v2
from ksana.api.kit import KeyRing, Scope
from ksana.api.services import JobDefaults, Services
from ksana.api.stored import StoredAnswers, StoredKeys
from ksana.domain.durations import parse_duration
from ksana.domain.keys import new_key
from ksana.domain.ports import Hook, Store
from ksana.engine.engine import Engine, EngineOptions
from ksana.observe.metrics import MetricsObserver
from ksana.stores.sql.store import SqlStore
from ksana.stores.sqlite import SqliteDatabase
from ksana.targets.http import TargetPolicy
from ksana.targets.registry import GROUP, load_targets
from ksana.targets.services import TargetServices
from tests.api.kit.client import Answer, Client
from tests.api.kit.shared import Seat, shared_app
from tests.kit.attempts import an_attempt_ends
from tests.kit.clock import NodeClock, VirtualClock
from tests.kit.gate import Gate

VERSION = "1.2.3"
DEADLINE = 30.0
CALLBACKS = "http://ksana.test/api/v2/callbacks"


# Looked up once: it reads a file of every package that is installed.
PLUG_INS = tuple(entry_points(group=GROUP))
SURFACES = (v2.surface, jobs.surface, ops.surface)


def surfaces() -> list[Any]:
    """The surfaces of the program under test."""
    return [surface() for surface in SURFACES]


class World(Client):
    """A caller of the app who also holds its clock, its store and its engine."""

    def __init__(self, app: ASGIApp, engine: Engine, store: Gate, clock: VirtualClock, ring: KeyRing) -> None:
        super().__init__(app)
        self.app = app
        self.engine = engine
        self.store = store
        self.clock = clock
        self.ring = ring
        self._keys = 0

    async def patch(self, target: str, json_body: Any = None, **options: Any) -> Answer:
        return await self.call("PATCH", target, json_body=json_body, **options)

    async def delete(self, target: str, **options: Any) -> Answer:
        return await self.call("DELETE", target, **options)

    async def job(self, name: str = "j", kind: str = "noop", config: dict[str, Any] | None = None, **more: Any) -> Any:
        """Make a job through the API and give its view."""
        target = {"kind": kind, "config": config or {}}
        answer = await self.post("/api/v2/jobs", {"name": name, "target": target, **more})
        assert answer.status == 201, answer.body
        return answer.json()

    async def run(self, job: Any, **body: Any) -> Any:
        """Run a job now and give the run's view; it is not executed yet."""
        answer = await self.post(f"/api/v2/jobs/{job['id']}/runs", body)
        assert answer.status == 201, answer.body
        return answer.json()

    async def seen(self, path: str) -> Any:
        """The body of a GET that must succeed."""
        answer = await self.get(path)
        assert answer.status == 200, answer.body
        return answer.json()

    async def advance(self, span: str = "0s") -> None:
        """Let time pass, then let the engine do everything that is due."""
        self.clock.move_to(self.clock.time + parse_duration(span, "span"))
        await self.work()

    async def work(self) -> None:
        """Fire and execute what is due, until nothing is left."""
        await self.start()
        async with asyncio.timeout(DEADLINE):
            while not self.engine.runner.is_idle:
                await an_attempt_ends(self.engine.runner)
                # An end may have let in a run that waited for it.
                self.engine.runner.wake_for_work()
                await self.engine.runner.run_once()

    async def start(self) -> None:
        """Fire and claim what is due; attempts are then under way."""
        await self.engine.planner.run_once()
        self.engine.runner.wake_for_work()
        await self.engine.runner.run_once()

    async def key(self, *scopes: Scope) -> str:
        """Make an API key, known to the app at once."""
        self._keys += 1
        made = new_key(
            self._keys.to_bytes(40, "big"), name=f"key {self._keys}", scopes=scopes, created_at=self.clock.time
        )
        await self.store.add_key(made.stored)
        self.ring.forget()
        return made.text


@asynccontextmanager
async def open_world(
    path: Path, *, allowed_hosts: Sequence[str] = (), hooks: Sequence[Hook] = ()
) -> AsyncIterator[World]:
    """The app on a fresh file; the engine has joined, and works when told."""
    virtual = VirtualClock()
    clock = NodeClock(virtual)
    real = SqlStore(SqliteDatabase(path))
    gate = Gate(real)
    store = cast(Store, gate)
    policy = TargetPolicy.of(allow_loopback=True, allow_private=False)
    targets = load_targets(TargetServices(sleep=clock.sleep, now=clock.now, http_policy=policy), PLUG_INS)
    observer = MetricsObserver(clock.now, version=VERSION)
    options = EngineOptions(name="node-1", callback_base=CALLBACKS, lease=timedelta(seconds=10))
    await real.open()
    engine = Engine(store, targets, options, clock=clock, ticks=clock.ticks, observers=[observer], hooks=hooks)
    await engine.join()

    async def metrics() -> tuple[bytes, str]:
        await observer.refresh(store, clock.now())
        return observer.render()

    ring = KeyRing(StoredKeys(store), clock.ticks)
    seat = Seat(Services(engine, VERSION, JobDefaults(), metrics), StoredAnswers(store), ring)
    app = shared_app(seat, *SURFACES, version=VERSION, allowed_hosts=tuple(allowed_hosts))
    try:
        yield World(app, engine, gate, virtual, ring)
    finally:
        for target in targets.values():
            await target.close()
        await real.close()
