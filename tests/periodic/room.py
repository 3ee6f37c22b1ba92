"""Schedulers to try out: on a real Redis, on a clock that moves when told, with a queue that remembers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from redis.asyncio import Redis

from ksana.periodic import CronScheduler, Job, Registry, Schedule
from tests.kit.clock import NodeClock, VirtualClock

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DEADLINE = 10.0


class Recorder:
    """A queue that keeps each id once and remembers every call; `fails` makes the next calls fail."""

    def __init__(self) -> None:
        self.calls: list[Job] = []
        self.kept: dict[str, Job] = {}
        self.fails = 0

    async def enqueue(self, job: Job) -> None:
        self.calls.append(job)
        if self.fails:
            self.fails -= 1
            raise RuntimeError("the queue is full")
        self.kept.setdefault(job.id, job)

    def slots(self, schedule_id: str) -> list[str]:
        """The slots of a schedule that are in the queue, as they came."""
        return [j.metadata["scheduled_at"] for j in self.kept.values() if j.metadata["schedule_id"] == schedule_id]


Fault = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]


class Wire:
    """The way of one scheduler to Redis, and to its queue: at step `at` it does what `fault` says, and once `is_cut`
    nothing gets through any more."""

    def __init__(self, client: Redis, queue: Recorder) -> None:
        self._client = client
        self._queue = queue
        self.steps = 0
        self.at = 0
        self.fault: Fault | None = None
        self.is_cut = False

    @property
    def client(self) -> Redis:
        return cast(Redis, self)

    def eval(self, *args: Any) -> Awaitable[Any]:
        return self._pass(lambda: self._client.eval(*args))

    async def enqueue(self, job: Job) -> None:
        await self._pass(lambda: self._queue.enqueue(job))

    async def _pass(self, send: Callable[[], Awaitable[Any]]) -> Any:
        if self.is_cut:
            raise ConnectionError("the wire is cut")
        self.steps += 1
        if self.steps == self.at and self.fault is not None:
            return await self.fault(send)
        return await send()


class Room:
    """A registry, a clock and a queue that any number of schedulers share. Ids of schedules begin with `prefix`."""

    def __init__(self, client: Redis, prefix: str) -> None:
        self.client = client
        self.clock = VirtualClock(NOON + timedelta(seconds=30))
        self.registry = Registry()
        self.queue = Recorder()
        self._prefix = prefix
        self._numbers = itertools.count(1)

    def schedule(self, cron: str = "* * * * *", **fields: Any) -> Schedule:
        """Register a schedule under an id that nobody else has."""
        schedule = Schedule(**{"id": self.id(), "cron": cron, "job": "report", **fields})
        self.registry.register(schedule)
        return schedule

    def id(self) -> str:
        return f"{self._prefix}_{next(self._numbers)}"

    def scheduler(self, wire: Wire | None = None, **options: Any) -> CronScheduler:
        given: dict[str, Any] = {"clock": NodeClock(self.clock), **options}
        if wire is not None:
            return CronScheduler(self.registry, wire, wire.client, **given)
        return CronScheduler(self.registry, self.queue, self.client, **given)

    def wire(self) -> Wire:
        return Wire(self.client, self.queue)

    def pass_time(self, **span: float) -> None:
        self.clock.move_to(self.clock.time + timedelta(**span))

    async def sleeping(self) -> datetime:
        """When the scheduler that has been started wakes; waits until it has gone to sleep."""
        async with asyncio.timeout(DEADLINE):
            while (wake_at := self.clock.next_wake_at) is None:
                await self.client.ping()
        return wake_at

    async def hash(self, schedule: Schedule) -> dict[str, str]:
        found = await self.client.hgetall(f"bananas:schedules:{schedule.id}")
        return {_text(name): _text(value) for name, value in found.items()}

    async def store(self, schedule: Schedule, **fields: str | bytes) -> None:
        mapping: dict[Any, Any] = {**fields}
        await self.client.hset(f"bananas:schedules:{schedule.id}", mapping=mapping)

    async def lapse(self, schedule: Schedule) -> None:
        """Let a minute pass on the server's clock too: locks and leases are over."""
        await self.client.delete(lock_key(schedule))
        if firing := (await self.hash(schedule)).get("firing"):
            await self.store(schedule, firing=f"{firing.rpartition(' ')[0]} 1")


def lock_key(schedule: Schedule) -> str:
    return f"bananas:schedule_lock:{schedule.id}"


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
