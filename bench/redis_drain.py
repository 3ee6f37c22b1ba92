"""No-op runs drained by one process on Redis, history kept, and what each costs the process and the server.

python bench/redis_drain.py redis://127.0.0.1:6379/0 COUNT

Everything is under a prefix of its own, and gone at the end.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
from datetime import UTC, datetime

import redis.asyncio
import uvloop
from ours import BATCH, observers

from ksana.domain.archive import Section
from ksana.domain.jobs import JobSpec, TargetSpec
from ksana.domain.policies import Overlap, OverlapRule
from ksana.domain.queries import RunQuery
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.engine.clock import SystemClock
from ksana.engine.engine import Engine, EngineOptions
from ksana.process import collect_at_ease
from ksana.stores.open import open_store
from ksana.targets.builtin import NoopTarget

_WORKERS = 2000
_AT_ONCE = 1000
_SUCCEEDED = RunQuery(states=frozenset({State.SUCCESS}), limit=1)


async def _drain(url: str, count: int) -> dict[str, float]:
    collect_at_ease()
    prefix = f"ksana_bench_{secrets.token_hex(6)}"
    server = redis.asyncio.from_url(url)
    store = open_store(f"{url}?prefix={prefix}")
    await store.open()
    clock = SystemClock()
    options = EngineOptions(workers=_WORKERS, batch=BATCH)
    engine = Engine(store, {"noop": NoopTarget()}, options, clock=clock, observers=observers(clock))
    try:
        job = await engine.jobs.create(
            "v2", JobSpec(name="bench", target=TargetSpec("noop"), overlap=Overlap(OverlapRule.PARALLEL))
        )
        ids = await store.reserve_ids("run", count)
        now = datetime.now(UTC)
        for start in range(0, count, _AT_ONCE):
            runs = [
                Run(id=id, job_id=job.id, job_version=1, surface="v2", kind="noop", due_at=now, created_at=now)
                for id in ids[start : start + _AT_ONCE]
            ]
            await store.restore(Section.RUNS, runs)
        began, cpu, served = time.perf_counter(), time.process_time(), await _busy(server)
        await engine.start()
        # Only the store knows when all is done, and it does not tell by itself.
        while not engine.runner.is_idle or (await store.counts(now)).unfinished:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        served = await _busy(server) - served
        kept = (await store.find_runs(_SUCCEEDED)).total, (await store.extent(Section.ATTEMPTS)).count
        assert kept == (count, count), f"{kept} runs and attempts kept of {count}"
    finally:
        await engine.stop()
        await store.close()
        await _forget(server, prefix)
        await server.aclose()
    return {"rate": count / seconds, "cpu_micros": cpu / count * 1e6, "server_micros": served / count * 1e6}


async def _forget(server: redis.asyncio.Redis, prefix: str) -> None:
    keys = [key async for key in server.scan_iter(match=f"{{{prefix}}}:*", count=5000)]
    for start in range(0, len(keys), _AT_ONCE):
        await server.unlink(*keys[start : start + _AT_ONCE])


async def _busy(server: redis.asyncio.Redis) -> float:
    """Seconds of the processor that the server has used."""
    told = await server.info("cpu")
    return float(told["used_cpu_user"] + told["used_cpu_sys"])


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_drain(sys.argv[1], int(sys.argv[2])))))
