"""Functions that do nothing, run by one process on Redis, history kept, against Dramatiq in the same run.

python bench/redis_noop.py URL COUNT sync|async         one measurement of ours
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import uvloop
from figures import RATE, Row
from fresh import Measurement, in_rounds, measure
from on_redis import AT_ONCE, drained, engine_on, expect_history

from ksana.domain.archive import Section
from ksana.domain.jobs import JobSpec, TargetSpec
from ksana.domain.policies import Overlap, OverlapRule
from ksana.domain.runs import Run

# What is measured must not carry what only the one who measures needs.
if TYPE_CHECKING:
    from places import Places

_COUNT = 20_000
_QUICK = 10
# As many as the peer has.
_THREADS = 8


def rows(places: Places, rounds: int, quick: bool) -> Iterator[Row]:
    from peers.catalog import PEERS

    count = _COUNT // _QUICK if quick else _COUNT

    def ours(kind: str) -> Measurement:
        return lambda: measure("redis_noop.py", places.server("redis"), count, kind)

    [peer] = [peer for peer in PEERS if peer.store == "redis" and peer.mode == "noop"]
    measurements = {
        "def": ours("sync"),
        "async def": ours("async"),
        peer.name: lambda: peer.measure(places, quick=quick),
    }
    found = in_rounds(rounds, RATE, measurements)
    for kind in ("def", "async def"):
        yield Row(f"no-op functions ({kind}), Redis", found[kind], peer.name, found[peer.name], peer.wanted)


def _sync() -> None:
    pass


async def _async() -> None:
    pass


async def _rate(url: str, count: int, kind: str) -> dict[str, float]:
    functions = {"sync": _sync, "async": _async}
    async with engine_on(url, functions, _THREADS) as engine:
        job = await engine.jobs.create(
            "v2",
            JobSpec(
                name="bench", target=TargetSpec("python", {"function": kind}), overlap=Overlap(OverlapRule.PARALLEL)
            ),
        )
        ids = await engine.store.reserve_ids("run", count)
        now = datetime.now(UTC)
        for start in range(0, count, AT_ONCE):
            runs = [
                Run(id=id, job_id=job.id, job_version=1, surface="v2", kind="python", due_at=now, created_at=now)
                for id in ids[start : start + AT_ONCE]
            ]
            await engine.store.restore(Section.RUNS, runs)
        began, cpu = time.perf_counter(), time.process_time()
        await engine.start()
        await drained(engine)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        await expect_history(engine, count)
    return {"rate": count / seconds, "cpu_micros": cpu / count * 1e6}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_rate(sys.argv[1], int(sys.argv[2]), sys.argv[3]))))
