"""What a test holds: plain calls, whether the test itself is a coroutine or not. The engine lives in a thread of its
own, and has come to rest whenever a call returns."""

from __future__ import annotations

import asyncio
import importlib
import shutil
import tempfile
import threading
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar, Unpack

import msgspec

from ksana.api.queue.item_reading import read_new_job as read_new_item
from ksana.api.queue.item_shapes import NewJob
from ksana.api.services import JobDefaults
from ksana.api.v2.job_reading import read_new_job
from ksana.api.v2.job_shapes import JobInput
from ksana.client import jobs as asking
from ksana.client import queue as queue_asking
from ksana.client.asking import JobWords
from ksana.client.calls import Call
from ksana.client.items import Action, Item, ObjectType
from ksana.domain.callbacks import Word
from ksana.domain.durations import parse_duration
from ksana.domain.errors import InvalidArgument, KsanaError, NotFound
from ksana.domain.jobs import Job
from ksana.domain.moves import Kept
from ksana.domain.queries import JobQuery, RunQuery
from ksana.domain.runs import Attempt, Run
from ksana.domain.times import parse_instant
from ksana.periodic.definitions import Definitions
from ksana.periodic.syncing import sync
from ksana.testing.scripted_http import Broken, HttpCall, Refused, Reply, Script, Silent
from ksana.testing.seen import ItemSeen, RunSeen, RunsSeen
from ksana.testing.stage import Stage
from ksana.testing.virtual_loop import VirtualLoop

__all__ = ["Broken", "HttpCall", "ItemSeen", "Refused", "Rehearsal", "Reply", "RunSeen", "RunsSeen", "Silent"]

T = TypeVar("T")

_START: Final = datetime(2030, 1, 1, tzinfo=UTC)
_SURFACE: Final = "v2"
# Memory that looks like a directory, where there is one: nothing here has to outlive a power cut.
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the directory in it is made for this process alone
_PAGE: Final = 1000
_CLOSING: Final = 10.0


class Rehearsal:
    """Jobs, runs, a clock and HTTP, all of them pretended but the scheduler. It begins at midnight, 1 January 2030,
    UTC, unless `load` or `begin` say otherwise."""

    def __init__(self) -> None:
        self.http = Script()
        self._start = _START
        self._stage: Stage | None = None
        self._loop: VirtualLoop | None = None
        self._directory: Path | None = None

    def __enter__(self) -> Rehearsal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Time

    @property
    def now(self) -> datetime:
        return self._start if self._stage is None else self._stage.clock.now()

    def begin(self, at: str | datetime) -> Rehearsal:
        """Say when it is, before anything has happened."""
        if self._stage is not None:
            raise InvalidArgument.of("at", "time has begun already; advance it")
        self._start = parse_instant(at, "at") if isinstance(at, str) else at.astimezone(UTC)
        return self

    def advance(self, span: str | timedelta) -> None:
        """Let time pass, and everything happen that is due meanwhile."""
        by = parse_duration(span, "span") if isinstance(span, str) else span
        self._do(self._open_stage().advance_to(self.now + by))

    def advance_to(self, instant: str | datetime) -> None:
        """Let time pass until then."""
        at = parse_instant(instant, "instant") if isinstance(instant, str) else instant
        if at < self.now:
            raise InvalidArgument.of("instant", f"it is {self.now} already, and time does not go back")
        self._do(self._open_stage().advance_to(at))

    # Jobs

    def load(self, app: str | Definitions, *, at: str | datetime | None = None) -> Rehearsal:
        """Start a program with jobs in code, given as such or as `"package.module:app"`."""
        if at is not None:
            self.begin(at)
        found = _imported(app) if isinstance(app, str) else app
        stage = self._open_stage()
        stage.functions.update(found.functions)
        stage.handle(found.handlers)
        self._do(sync(stage.engine, found.definitions, getattr(found, "name", "app")))
        return self

    def job(
        self,
        name: str,
        *,
        target: Mapping[str, Any] | None = None,
        http: str | None = None,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        **words: Unpack[JobWords],
    ) -> Job:
        """Make a job, in the words of `Client.jobs.create`."""
        described = asking.create(name, target=target, http=http, json=json, headers=headers, **words)
        body = msgspec.json.decode(described.body or b"", type=JobInput)
        return self._do(self._make(body))

    async def _make(self, body: JobInput) -> Job:
        stage = self._open_stage()
        verbs = stage.engine.jobs
        spec = read_new_job(body, JobDefaults(), stage.clock.now(), verbs.checked)
        job = await verbs.create(_SURFACE, spec)
        await stage.settle()
        return job

    # Items

    def enqueue(self, queue: str, payload: Any = None, **words: Any) -> ItemSeen:
        """Put something into a queue, in the words of `Client.queue.enqueue`."""
        return self._put(queue_asking.enqueue(queue, payload, **words))

    def enqueue_action(
        self, object_type: ObjectType, object_id: str, action: Action, run_at: str | datetime, **words: Any
    ) -> ItemSeen:
        """Have something done to an object, in the words of `Client.queue.enqueue_action`."""
        return self._put(queue_asking.enqueue_action(object_type, object_id, action, run_at, **words))

    def _put(self, described: Call[Item]) -> ItemSeen:
        body = msgspec.json.decode(described.body or b"", type=NewJob)
        return ItemSeen(self, self._do(self._enqueue(body)).id)

    async def _enqueue(self, body: NewJob) -> Run:
        stage = self._open_stage()
        new = read_new_item(body, stage.clock.now(), None)
        [(run, _)] = await stage.engine.queue.enqueue([new])
        if isinstance(run, KsanaError):
            raise run
        await stage.settle()
        return run

    def kept_of(self, run_id: int) -> Kept | None:
        """What a run has handed on, if it has."""
        return self._do(self._open_stage().store.kept([run_id])).get(run_id)

    # Runs

    def run(self, name: str, input: Any = None) -> RunSeen:
        """Run a job now."""
        given = None if input is None else msgspec.json.encode(input)
        return RunSeen(self, self._do(self._trigger(name, given)).id)

    async def _trigger(self, name: str, given: bytes | None) -> Run:
        stage = self._open_stage()
        run = await stage.engine.runs.trigger((await self._named(name)).id, given)
        await stage.settle()
        return run

    def runs(self, name: str) -> RunsSeen:
        """The runs of a job, in the order of what they stand for."""
        return RunsSeen([RunSeen(self, run.id) for run in self._do(self._runs_of(name))])

    async def _runs_of(self, name: str) -> list[Run]:
        job = await self._named(name)
        store = self._open_stage().store
        found: list[Run] = []
        while True:
            query = RunQuery(job_id=job.id, is_child=False, before_id=found[-1].id if found else None, limit=_PAGE)
            page = await store.find_runs(query)
            found += page.items
            if len(page.items) < _PAGE:
                return sorted(found, key=lambda run: (run.planned_at, run.id))

    async def _named(self, name: str) -> Job:
        page = await self._open_stage().store.find_jobs(JobQuery(name=name, limit=_PAGE))
        for job in page.items:
            if job.name == name:
                return job
        raise NotFound(f"there is no job called {name!r}; load its app, or make it with ksana.job")

    def run_as_it_is(self, run_id: int) -> Run:
        """A run as it stands now."""
        return self._do(self._open_stage().engine.runs.get(run_id))

    def attempts_of(self, run_id: int) -> list[Attempt]:
        """The tries at a run, oldest first."""
        return self._do(self._open_stage().store.attempts(run_id))

    def call_back(self, run_id: int, error: str = "") -> None:
        """Say how a run ended that waits for a callback."""
        self._do(self._hear(run_id, error))

    async def _hear(self, run_id: int, error: str) -> None:
        stage = self._open_stage()
        run = await stage.engine.runs.get(run_id)
        await stage.engine.runs.call_back(run.callback_token or "", Word(succeeded=not error, error=error))
        await stage.settle()

    # Beginning and end

    def _open_stage(self) -> Stage:
        if self._stage is None:
            loop = self._loop = VirtualLoop()
            threading.Thread(target=_turn, args=(loop,), name="ksana-rehearsal", daemon=True).start()
            self._directory = Path(tempfile.mkdtemp(prefix="ksana-", dir=_MEMORY if _MEMORY.is_dir() else None))
            self._stage = _done(_built(loop, self._directory, self._start, self.http), loop)
        return self._stage

    def close(self) -> None:
        """Put everything away."""
        loop, stage, directory = self._loop, self._stage, self._directory
        self._loop = self._stage = self._directory = None
        if loop is not None:
            try:
                if stage is not None:
                    asyncio.run_coroutine_threadsafe(stage.close(), loop).result(_CLOSING)
            finally:
                loop.call_soon_threadsafe(loop.stop)
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        self._open_stage()
        return _done(work, self._loop)


def _done(work: Coroutine[Any, Any, T], loop: VirtualLoop | None) -> T:
    assert loop is not None
    return asyncio.run_coroutine_threadsafe(work, loop).result()


async def _built(loop: VirtualLoop, directory: Path, start: datetime, script: Script) -> Stage:
    stage = Stage(loop, directory, start, script)
    await stage.open()
    return stage


def _turn(loop: VirtualLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _imported(path: str) -> Definitions:
    module, _, name = path.partition(":")
    found = getattr(importlib.import_module(module), name or "app", None)
    if not isinstance(found, Definitions):
        raise NotFound(f"{path} is no app; write package.module:name of a Ksana()")
    return found
