"""What a million stored jobs cost: planning a hundred due per second, starting up, and memory, against a thousand.

python bench/scale.py seed URL JOBS         store jobs of which a hundred come due in every second
python bench/scale.py plan URL              plan a number of such seconds
python bench/scale.py start URL SINCE       be ready to plan, then idle; SINCE is when the process was asked for
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop
from figures import MEGABYTES, MILLIS, SECONDS, SHARE, Figure, Missing, Row, Unit, at_most
from fresh import FailedError, say, script
from ours import Bench

from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.schedules import Every

# What is measured must not carry what only the one who measures needs.
if TYPE_CHECKING:
    from places import Places

_FEW = 1_000
_MANY = 1_000_000
_QUICK = 20
_DUE_PER_SECOND = 100
_WARM_UP = 10
_SECONDS = 50
_STORED_AT_ONCE = 5_000
_WORKERS = 2000
_IDLE = 3
_STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
_FIGURES = (
    ("cpu_ms", "CPU to plan 100 due", MILLIS, at_most(1.5)),
    ("wall_ms", "time to plan 100 due", MILLIS, at_most(1.5)),
    ("rss_mb", "memory while planning", MEGABYTES, at_most(1.5)),
)

Told = list[dict[str, float]]


def rows(places: Places, rounds: int, quick: bool) -> Iterator[Row]:
    many = _MANY // _QUICK if quick else _MANY
    for store, shown in _STORES.items():
        try:
            with places.fresh(store) as few_url, places.fresh(store) as many_url:
                yield from _of_store(shown, few_url, many_url, many, rounds)
        except FailedError as error:
            yield Row(f"{many:,} jobs, {shown}", Missing(str(error)))


def _of_store(store: str, few_url: str, many_url: str, many: int, rounds: int) -> Iterator[Row]:
    for url, jobs in ((few_url, _FEW), (many_url, many)):
        say(f"  {store}: storing {jobs:,} jobs")
        script("scale.py", "seed", url, jobs)
    few: Told = []
    much: Told = []
    starts: Told = []
    for _ in range(rounds):
        few.append(script("scale.py", "plan", few_url))
        much.append(script("scale.py", "plan", many_url))
        starts.append(script("scale.py", "start", many_url, time.time()))
        say(f"  {store}: {few[-1]} {much[-1]} {starts[-1]}")
    for key, what, unit, wanted in _FIGURES:
        yield Row(
            f"{what}, {many:,} jobs, {store}",
            _figure(much, key, unit),
            f"{_FEW:,} jobs",
            _figure(few, key, unit),
            wanted,
        )
    yield Row(f"start-up, {many:,} jobs, {store}", _figure(starts, "seconds", SECONDS), wanted=at_most(5))
    yield Row(f"CPU while nothing is due, {many:,} jobs, {store}", _figure(starts, "idle", SHARE), wanted=at_most(0.02))


def _figure(told: Told, key: str, unit: Unit) -> Figure:
    return Figure(tuple(one[key] for one in told), unit)


class _Hand:
    """A clock that is set by hand: a second of planning need not take one."""

    def __init__(self, now: datetime) -> None:
        self.at = now

    def now(self) -> datetime:
        return self.at

    async def sleep(self, span: timedelta) -> None:
        self.at += span


async def _seed(url: str, count: int) -> dict[str, float]:
    bench = Bench(url, _WORKERS)
    await bench.store.open()
    now = datetime.now(UTC).replace(microsecond=0)
    # Far enough off that nothing comes due by itself while others are measured.
    first_at = now + timedelta(days=1)
    every = timedelta(seconds=count // _DUE_PER_SECOND)
    ids = await bench.store.reserve_ids("job", count)
    for start in range(0, count, _STORED_AT_ONCE):
        share = range(start, min(start + _STORED_AT_ONCE, count))
        await bench.store.add_jobs([_job(ids[i], first_at + timedelta(seconds=i // 100), every, now) for i in share])
    await bench.store.close()
    return {"jobs": count}


def _job(job_id: int, slot_at: datetime, every: timedelta, now: datetime) -> Job:
    return Job(
        id=job_id,
        surface="v2",
        name=f"job {job_id}",
        target=TargetSpec("noop"),
        schedule=Every(every, origin_at=slot_at, start_at=slot_at),
        created_at=now,
        updated_at=now,
        next_slot_at=slot_at,
        next_fire_at=slot_at,
    )


async def _plan(url: str) -> dict[str, float]:
    clock = _Hand(datetime.now(UTC))
    bench = Bench(url, _WORKERS, clock=clock)
    await bench.store.open()
    await bench.engine.join()
    walls: list[float] = []
    cpus: list[float] = []
    for _ in range(_WARM_UP + _SECONDS):
        due_at = await bench.store.next_fire_at()
        assert due_at is not None
        clock.at = due_at
        wall, cpu = time.perf_counter(), time.process_time()
        await bench.engine.planner.run_once()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        while not bench.engine.runner.is_idle:
            await bench.engine.runner.run_once()
    rss = _rss()
    await bench.close()
    return {
        "cpu_ms": statistics.median(cpus[_WARM_UP:]) * 1000,
        "wall_ms": statistics.median(walls[_WARM_UP:]) * 1000,
        "rss_mb": rss,
    }


def _rss() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def _start(url: str, since: float) -> dict[str, float]:
    bench = Bench(url, _WORKERS)
    await bench.store.open()
    await bench.engine.start()
    await bench.engine.planner.run_once()
    seconds = time.time() - since
    cpu = time.process_time()
    await asyncio.sleep(_IDLE)
    idle = (time.process_time() - cpu) / _IDLE
    await bench.close()
    return {"seconds": seconds, "idle": idle}


def main() -> None:
    match sys.argv[1:]:
        case ["seed", url, count]:
            told = uvloop.run(_seed(url, int(count)))
        case ["plan", url]:
            told = uvloop.run(_plan(url))
        case ["start", url, since]:
            told = uvloop.run(_start(url, float(since)))
        case _:
            sys.exit(__doc__)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
