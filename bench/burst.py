"""Ten thousand jobs due at the same instant on SQLite: how late the last of them start, against a bare loop over a heap
that stores a run and the next instant of each, 500 a commit, as durably as we do.

python bench/burst.py ours|heap URL COUNT       one measurement
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import json
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import uvloop
from figures import MILLIS, Row, at_most
from fresh import Measurement, in_rounds, measure
from ours import BATCH, Bench

from ksana.domain.jobs import JobSpec, TargetSpec
from ksana.domain.outcomes import SUCCESS, AttemptContext, Outcome
from ksana.domain.schedules import Every

# What is measured must not carry what only the one who measures needs.
if TYPE_CHECKING:
    from places import Places

_COUNT = 10_000
_QUICK = 5
_BURSTS = 3
_PERIOD = 4
_LEAD = 2
_WORKERS = 2000
_CREATED_AT_ONCE = 1000


def rows(places: Places, rounds: int, quick: bool) -> Iterator[Row]:
    count = _COUNT // _QUICK if quick else _COUNT
    found = in_rounds(rounds, MILLIS, {side: _late(places, side, count) for side in ("ours", "heap")})
    part = f"p99 lateness, {count:,} jobs due at once, SQLite"
    yield Row(part, found["ours"], "heapq + sqlite3", found["heap"], at_most(3))


def _late(places: Places, side: str, count: int) -> Measurement:
    def take() -> float:
        with places.fresh("sqlite") as url:
            return measure("burst.py", side, url, count, key="p99_ms")

    return take


class _Stopwatch:
    """A target that writes down how late each run starts. Like `http` and `python` it is begun rather than awaited."""

    kind = "stopwatch"

    def __init__(self, expected: int) -> None:
        self.late: list[float] = []
        self.done = asyncio.Event()
        self._expected = expected

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        return config

    def awaits_callback(self, config: dict[str, Any], input: Any = None) -> bool:
        return False

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        return self.begin(context, config, None)

    def begin(self, context: AttemptContext, config: dict[str, Any], tell: Callable[[Outcome], None] | None) -> Outcome:
        self.late.append(time.time() - context.planned_at.timestamp())
        if len(self.late) == self._expected:
            self.done.set()
        return SUCCESS

    async def close(self) -> None:
        return None


def _first_at(count: int) -> float:
    """A whole second far enough off for everything to be in place before."""
    return float(int(time.time()) + _LEAD + count // 2000)


async def _ours(url: str, count: int) -> list[float]:
    target = _Stopwatch(count * _BURSTS)
    bench = Bench(url, _WORKERS, target)
    await bench.store.open()
    first_at = datetime.fromtimestamp(_first_at(count), UTC)
    last_at = first_at + timedelta(seconds=_PERIOD * (_BURSTS - 1) + 1)
    schedule = Every(timedelta(seconds=_PERIOD), origin_at=first_at, start_at=first_at, end_at=last_at)
    spec = JobSpec(name="burst", target=TargetSpec(target.kind), schedule=schedule)
    for start in range(0, count, _CREATED_AT_ONCE):
        await bench.engine.jobs.create_many("v2", [spec] * min(_CREATED_AT_ONCE, count - start))
    await bench.engine.start()
    assert datetime.now(UTC) < first_at, "the first burst came before everything was in place"
    await target.done.wait()
    await bench.drained()
    await bench.expect_history(count * _BURSTS)
    await bench.close()
    return target.late


def _heap(url: str, count: int) -> list[float]:
    connection = sqlite3.connect(url.removeprefix("sqlite://"), isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, next_at REAL)")
    connection.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, job_id INT, due_at REAL, state INT)")
    due_at = _first_at(count)
    due = [(due_at, job_id) for job_id in range(count)]
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO jobs (next_at, id) VALUES (?, ?)", due)
    connection.execute("COMMIT")
    assert time.time() < due_at, "the first burst came before everything was in place"
    late: list[float] = []
    while len(late) < count * _BURSTS:
        now = time.time()
        batch: list[tuple[float, int]] = []
        while due[0][0] <= now and len(batch) < BATCH:
            at, job_id = due[0]
            batch.append(heapq.heapreplace(due, (at + _PERIOD, job_id)))
        if not batch:
            time.sleep(due[0][0] - now)
            continue
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO runs (due_at, job_id, state) VALUES (?, ?, 1)", batch)
        following = [(at + _PERIOD, job_id) for at, job_id in batch]
        connection.executemany("UPDATE jobs SET next_at = ? WHERE id = ?", following)
        connection.execute("COMMIT")
        for at, _ in batch:
            late.append(time.time() - at)
    connection.close()
    return late


def _p99(late: list[float]) -> float:
    return sorted(late)[int(len(late) * 0.99)] * 1000


def main() -> None:
    side, url, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if side != "ours":
        # A limit pays for nothing that it could do without.
        gc.disable()
    late = uvloop.run(_ours(url, count)) if side == "ours" else _heap(url, count)
    bursts = [_p99(late[start : start + count]) for start in range(0, len(late), count)]
    # The first burst also reads every job for the first time; it counts as the others do.
    print(json.dumps({"p99_ms": sorted(bursts)[len(bursts) // 2], "first_ms": bursts[0], "worst_ms": max(bursts)}))


if __name__ == "__main__":
    main()
