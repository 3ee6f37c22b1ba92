"""The engine as the measurements drive it: opened on a URL, seeded with runs, and watched until nothing is left."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ksana.domain.jobs import Job, JobSpec, TargetSpec
from ksana.domain.policies import Overlap, OverlapRule
from ksana.domain.ports import Clock, Observer, Target
from ksana.domain.runs import Run
from ksana.engine.clock import SystemClock
from ksana.engine.engine import Engine, EngineOptions
from ksana.observe.metrics import MetricsObserver
from ksana.observe.run_log import LogObserver
from ksana.process import collect_at_ease
from ksana.stores.mysql import MysqlDatabase
from ksana.stores.postgres import PostgresDatabase
from ksana.stores.sql.run_rows import run_to_row
from ksana.stores.sql.statements import Statement
from ksana.stores.sql.store import SqlStore
from ksana.stores.sql.tables import RUNS
from ksana.stores.sql.tx import Database
from ksana.stores.sqlite import SqliteDatabase
from ksana.targets.builtin import NoopTarget

BATCH = 500

_DATABASES: Mapping[str, Callable[[str], Database]] = {
    "sqlite": lambda url: SqliteDatabase(Path(url.removeprefix("sqlite://"))),
    "postgresql": PostgresDatabase,
    "mysql": MysqlDatabase,
}
_UNFINISHED = Statement("SELECT COUNT(*) FROM ksana_runs WHERE ended_at IS NULL")
_SUCCEEDED = Statement("SELECT COUNT(*) FROM ksana_runs WHERE state = 'SUCCESS' AND ended_at IS NOT NULL")
_ATTEMPTS = Statement(
    "SELECT (SELECT COUNT(*) FROM ksana_attempts) + COUNT(*) FROM ksana_runs WHERE last_attempt IS NOT NULL"
)
_SEEDED_AT_ONCE = 2000


class Bench:
    """A store with an engine on it, in a process that is like a server's."""

    def __init__(self, url: str, workers: int, target: Target | None = None, clock: Clock | None = None) -> None:
        collect_at_ease()
        target, clock = target or NoopTarget(), clock or SystemClock()
        self.database = _DATABASES[url.partition("://")[0]](url)
        self.store = SqlStore(self.database)
        options = EngineOptions(workers=workers, batch=BATCH)
        self.engine = Engine(self.store, {target.kind: target}, options, clock=clock, observers=observers(clock))

    async def seed(self, kind: str, config: dict[str, Any], count: int) -> None:
        """Store that many runs of one job, all due."""
        spec = JobSpec(name="bench", target=TargetSpec(kind, config), overlap=Overlap(OverlapRule.PARALLEL))
        job = await self.engine.jobs.create("v2", spec)
        ids = await self.store.reserve_ids("run", count)
        for rows in _rows(job, ids):
            await self.database.write(lambda tx, rows=rows: tx.insert(RUNS, rows))  # type: ignore[misc]

    async def drained(self) -> None:
        """Return when the store holds nothing unfinished."""
        # Only the store knows, and it does not tell by itself.
        while not self.engine.runner.is_idle or await self._count(_UNFINISHED):  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    async def expect_history(self, count: int) -> None:
        """A run that left no trace was not measured but lost."""
        kept = await self._count(_SUCCEEDED), await self._count(_ATTEMPTS)
        assert kept == (count, count), f"{kept} runs and attempts kept of {count}"

    async def _count(self, statement: Statement) -> int:
        [(count,)] = await self.database.read(lambda tx: tx.rows(statement))
        return int(count)

    async def close(self) -> None:
        await self.engine.stop()
        await self.store.close()


def observers(clock: Clock) -> tuple[Observer, ...]:
    """What a server listens to its engine with: it is part of what a run costs."""
    _log_to_nowhere()
    return LogObserver(clock.now, _trace_id), MetricsObserver(clock.now, version="bench")


def _log_to_nowhere() -> None:
    logging.basicConfig(level=logging.INFO, handlers=[logging.FileHandler(os.devnull)])


def _trace_id(run_id: int) -> str:
    return f"{run_id:032x}"


def _rows(job: Job, ids: range) -> Iterator[list[tuple[Any, ...]]]:
    now = datetime.now(UTC)

    def row(run_id: int) -> tuple[Any, ...]:
        kind = job.target.kind
        run = Run(
            id=run_id, job_id=job.id, job_version=job.version, surface="v2", kind=kind, due_at=now, created_at=now
        )
        return run_to_row(run)

    for start in range(0, len(ids), _SEEDED_AT_ONCE):
        yield [row(run_id) for run_id in ids[start : start + _SEEDED_AT_ONCE]]
