"""The engine on Redis as the measurements drive it: functions of Python, under a prefix of its own that is gone at the
end."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import redis.asyncio
from ours import BATCH, observers

from ksana.domain.archive import Section
from ksana.domain.queries import RunQuery
from ksana.domain.states import State
from ksana.engine.clock import SystemClock
from ksana.engine.engine import Engine, EngineOptions
from ksana.process import collect_at_ease
from ksana.stores.open import open_store
from ksana.targets.python import PythonTarget

AT_ONCE = 1000
_WORKERS = 2000
_SUCCEEDED = RunQuery(states=frozenset({State.SUCCESS}), limit=1)


@asynccontextmanager
async def engine_on(url: str, functions: Mapping[str, Callable[..., Any]], threads: int) -> AsyncIterator[Engine]:
    """An engine that has not begun to work, on an empty store, in a process that is like a server's."""
    collect_at_ease()
    prefix = f"ksana_bench_{secrets.token_hex(6)}"
    store = open_store(f"{url}?prefix={prefix}")
    await store.open()
    clock = SystemClock()
    target = PythonTarget(functions, threads=threads)
    options = EngineOptions(workers=_WORKERS, batch=BATCH)
    engine = Engine(store, {target.kind: target}, options, clock=clock, observers=observers(clock))
    try:
        yield engine
    finally:
        await engine.stop()
        await target.close()
        await store.close()
        await _forget(url, prefix)


async def drained(engine: Engine) -> None:
    """Return when the store holds nothing unfinished."""
    # Only the store knows when all is done, and it does not tell by itself.
    while not engine.runner.is_idle or (await engine.store.counts(datetime.now(UTC))).unfinished:  # noqa: ASYNC110
        await asyncio.sleep(0.005)


async def expect_history(engine: Engine, count: int) -> None:
    """A run that left no trace was not measured but lost."""
    store = engine.store
    kept = (await store.find_runs(_SUCCEEDED)).total, (await store.extent(Section.ATTEMPTS)).count
    assert kept == (count, count), f"{kept} runs and attempts kept of {count}"


async def _forget(url: str, prefix: str) -> None:
    server = redis.asyncio.from_url(url)
    keys = [key async for key in server.scan_iter(match=f"{{{prefix}}}:*", count=5000)]
    for start in range(0, len(keys), AT_ONCE):
        await server.unlink(*keys[start : start + AT_ONCE])
    await server.aclose()
