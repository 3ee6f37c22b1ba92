"""A thousand schedules due at the same instant on Redis: how late their functions are called, against Celery Beat with
one worker and against APScheduler, in the same run.

python bench/beat.py URL COUNT          one measurement of ours
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import uvloop
from figures import MILLIS, Row, at_most
from fresh import Measurement, in_rounds, measure
from on_redis import AT_ONCE, drained, engine_on, expect_history

from ksana.domain.jobs import JobSpec, TargetSpec
from ksana.domain.outcomes import AttemptContext
from ksana.domain.schedules import Every

# What is measured must not carry what only the one who measures needs.
if TYPE_CHECKING:
    from places import Places

_COUNT = 1_000
_QUICK = 10
_LEAD = 3
_THREADS = 8
_PEERS = {"Celery Beat and a worker": "with_beat.py", "APScheduler": "with_apscheduler.py"}


def rows(places: Places, rounds: int, quick: bool) -> Iterator[Row]:
    count = _COUNT // _QUICK if quick else _COUNT
    measurements: dict[str, Measurement] = {
        "ours": lambda: measure("beat.py", places.server("redis"), count, key="p99_ms")
    }
    measurements |= {name: _peer(places, script, count) for name, script in _PEERS.items()}
    found = in_rounds(rounds, MILLIS, measurements)
    part = f"p99 lateness, {count:,} schedules due at once, Redis"
    for name in _PEERS:
        yield Row(part, found["ours"], name, found[name], at_most(1))


def _peer(places: Places, script: str, count: int) -> Measurement:
    from peers import install

    def take() -> float:
        where = f"{places.server('redis')}#{places.prefix}"
        return measure(f"peers/{script}", where, count, key="p99_ms", python=install.python())

    return take


async def _late(url: str, count: int) -> list[float]:
    late: list[float] = []
    done = asyncio.Event()

    async def tick(run: AttemptContext) -> None:
        late.append(time.time() - run.planned_at.timestamp())
        if len(late) == count:
            done.set()

    async with engine_on(url, {"tick": tick}, _THREADS) as engine:
        first_at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=_LEAD + count // 1000)
        # One burst: the next lies beyond the end.
        every = Every(timedelta(hours=1), first_at, start_at=first_at, end_at=first_at + timedelta(minutes=1))
        spec = JobSpec(name="beat", target=TargetSpec("python", {"function": "tick"}), schedule=every)
        for start in range(0, count, AT_ONCE):
            await engine.jobs.create_many("v2", [spec] * min(AT_ONCE, count - start))
        await engine.start()
        assert datetime.now(UTC) < first_at, "the burst came before everything was in place"
        await done.wait()
        await drained(engine)
        await expect_history(engine, count)
    return late


def _told(late: list[float]) -> dict[str, float]:
    ordered = sorted(late)
    share = {"p50_ms": 0.5, "p99_ms": 0.99}
    told = {name: ordered[int(len(ordered) * part)] * 1000 for name, part in share.items()}
    return {**told, "max_ms": ordered[-1] * 1000}


if __name__ == "__main__":
    print(json.dumps(_told(uvloop.run(_late(sys.argv[1], int(sys.argv[2]))))))
