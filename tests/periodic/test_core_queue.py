"""Schedules whose queue is Ksana itself: the document's end-to-end test, down to the worker (B-73)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ksana.domain.outcomes import AttemptContext
from ksana.domain.queries import JobQuery, RunQuery
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.engine.engine import Engine, EngineOptions
from ksana.periodic import CoreQueue, CronScheduler, Job, JobPriority
from ksana.stores.open import open_store
from ksana.targets.python import PythonTarget
from tests.kit.clock import NodeClock
from tests.periodic.room import NOON, Room


class Plant:
    """A node of Ksana with a worker, on a store of its own, and schedulers that feed it."""

    def __init__(self, room: Room, engine: Engine) -> None:
        self.room = room
        self.engine = engine
        self.handled: list[Any] = []

    def scheduler(self) -> CronScheduler:
        return CronScheduler(self.room.registry, CoreQueue(self.engine), self.room.client, clock=self.engine.clock)

    async def work(self) -> None:
        while (await self.engine.store.counts(self.engine.clock.now())).unfinished:
            await self.engine.runner.run_once()

    async def runs(self) -> list[Run]:
        return (await self.engine.store.find_runs(RunQuery(descending=False))).items


@pytest.fixture
async def plant(room: Room, fresh_sqlite_path: Path) -> AsyncIterator[Plant]:
    functions: dict[str, Any] = {}
    target = PythonTarget(functions, lazy=True)
    engine = Engine(
        open_store(f"sqlite:///{fresh_sqlite_path}"),
        {"python": target},
        EngineOptions(workers=1),
        clock=NodeClock(room.clock),
    )
    plant = Plant(room, engine)

    async def cleanup_old_data(run: AttemptContext) -> None:
        plant.handled.append(run.input)

    functions["cleanup_old_data"] = cleanup_old_data
    await engine.store.open()
    await engine.join()
    yield plant
    await engine.stop()
    await target.close()
    await engine.store.close()


async def test_a_registered_schedule_ends_in_its_handler(plant: Plant) -> None:
    """B-7, B-18, B-43, B-44, B-73: registered, due in its zone, in the queue, worked on with its payload; and a name
    no worker knows fails there, clearly, and troubles no scheduler."""
    room = plant.room
    zoned = room.schedule("0 8 * * *", job="cleanup_old_data", timezone="America/New_York", payload=b'{"days": 30}')
    room.schedule("0 13 * * *", job="nobody_knows", priority=JobPriority.HIGH)
    scheduler = plant.scheduler()
    await scheduler.tick()
    room.clock.move_to(NOON + timedelta(hours=1))
    assert await scheduler.tick() == 2
    await plant.work()
    [seen] = plant.handled
    assert (seen["payload"], seen["priority"]) == ({"days": 30}, "normal")
    assert seen["metadata"]["schedule_id"] == zoned.id
    assert seen["metadata"]["scheduled_at"] == "2030-01-01T13:00:00Z"
    done, failed = sorted(await plant.runs(), key=lambda run: run.state is State.FAILED)
    assert (done.state, failed.state) == (State.SUCCESS, State.FAILED)
    assert "no function is registered as 'nobody_knows'" in failed.error
    room.clock.move_to(NOON + timedelta(days=1, hours=1))
    assert await scheduler.tick() == 2


async def test_urgent_jobs_are_worked_on_first(plant: Plant) -> None:
    """B-17, B-44."""
    queue = CoreQueue(plant.engine)
    for priority in (JobPriority.LOW, JobPriority.NORMAL, JobPriority.HIGH):
        await queue.enqueue(Job(id=priority, name="cleanup_old_data", payload=b"", priority=priority, metadata={}))
    await plant.work()
    assert [seen["priority"] for seen in plant.handled] == ["high", "normal", "low"]
    assert plant.handled[0]["payload"] is None


async def test_a_job_that_was_enqueued_before_is_not_enqueued_again(plant: Plant) -> None:
    """B-3: by any node, even if what carries it out was deleted meanwhile."""
    job = Job(id="one", name="cleanup_old_data", payload=b"1", priority=JobPriority.NORMAL, metadata={})
    first, second = CoreQueue(plant.engine), CoreQueue(plant.engine)
    await first.enqueue(job)
    await second.enqueue(job)
    assert len(await plant.runs()) == 1
    [carrier] = (await plant.engine.store.find_jobs(JobQuery(surface="periodic"))).items
    await plant.engine.jobs.delete(carrier.id)
    await first.enqueue(Job(id="two", name="cleanup_old_data", payload=b"2", priority=JobPriority.NORMAL, metadata={}))
    assert len(await plant.runs()) == 2
