"""Schedules in code on Redis: a look at a hundred of them, idle and due, against a hundred bare round trips; a lock; a
state read and written.

python bench/periodic.py URL PREFIX ROUNDS              measure, and print milliseconds by name
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from figures import MILLIS, Figure, Missing, Row, Unit, at_most
from fresh import FailedError, script
from redis.asyncio import Redis

from ksana.periodic import CronScheduler, Job, Registry, Schedule, acquire_lock

# What is measured must not carry what only the one who measures needs.
if TYPE_CHECKING:
    from places import Places

_SCHEDULES = 100
_LONGEST_TICK = 10.0
_NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
_MICROS = Unit(lambda value: f"{value * 1000:.0f} µs")

Told = list[dict[str, float]]


def rows(places: Places, rounds: int, quick: bool) -> Iterator[Row]:
    told: Told = []
    try:
        for _ in range(rounds):
            told.append(script("periodic.py", places.server("redis"), places.prefix, 20 if quick else 200))
    except FailedError as error:
        yield Row("periodic", Missing(str(error)))
        return
    idle, due, trips = (_figure(told, name) for name in ("idle", "due", "trips"))
    part = f"a look at {_SCHEDULES} schedules"
    yield Row(f"{part}, none due", idle, wanted=at_most(_LONGEST_TICK))
    yield Row(f"{part}, none due", idle, f"{_SCHEDULES} round trips", trips, at_most(1))
    yield Row(f"{part}, all due", due, f"{_SCHEDULES} round trips", trips)
    yield Row("a lock taken and released", _figure(told, "lock", _MICROS))
    yield Row("a state read", _figure(told, "read", _MICROS))
    yield Row("a slot claimed and settled", _figure(told, "write", _MICROS))


def _figure(told: Told, name: str, unit: Unit = MILLIS) -> Figure:
    return Figure(tuple(each[name] for each in told), unit)


class _Clock:
    def __init__(self) -> None:
        self.time = _NOON

    def now(self) -> datetime:
        return self.time

    async def sleep(self, span: timedelta) -> None:
        raise NotImplementedError


class _Queue:
    async def enqueue(self, job: Job) -> None:
        pass


async def _median(work: Callable[[], Awaitable[object]], rounds: int) -> float:
    """Milliseconds, the first few left out."""
    times = []
    for _ in range(rounds + 3):
        began = time.perf_counter()
        await work()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times[3:])


async def _measure(url: str, prefix: str, rounds: int) -> dict[str, float]:
    registry, clock = Registry(), _Clock()
    for number in range(_SCHEDULES):
        registry.register(Schedule(id=f"{prefix}_{number}", cron="* * * * *", job="job"))
    one = registry.list()[0]
    alone = Registry()
    alone.register(Schedule(id=f"{prefix}_alone", cron="* * * * *", job="job"))
    async with Redis.from_url(url) as client:
        scheduler = CronScheduler(registry, _Queue(), client, clock=clock)
        single = CronScheduler(alone, _Queue(), client, clock=clock)

        async def trips() -> None:
            for _ in range(_SCHEDULES):
                await client.ping()

        async def minute() -> None:
            clock.time += timedelta(minutes=1)
            assert await scheduler.tick() == _SCHEDULES

        async def fire() -> None:
            clock.time += timedelta(minutes=1)
            await single.tick()

        async def lock() -> None:
            held = await acquire_lock(client, f"{prefix}_lock", 60)
            assert held is not None
            await held.release()

        try:
            await scheduler.tick()
            return {
                "idle": await _median(scheduler.tick, rounds),
                "due": await _median(minute, max(5, rounds // 10)),
                "trips": await _median(trips, max(5, rounds // 10)),
                "lock": await _median(lock, rounds),
                "read": await _median(lambda: scheduler.get_state(one.id), rounds),
                "write": await _median(fire, rounds),
            }
        finally:
            ids = [schedule.id for schedule in (*registry.list(), *alone.list())]
            await client.delete(*(f"bananas:schedules:{each}" for each in ids))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
