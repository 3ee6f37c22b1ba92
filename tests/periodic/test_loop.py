"""The scheduler in the background: when it looks, how it stops, and what it does while Redis is away."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from ksana.domain.errors import InvalidArgument, InvalidState
from ksana.periodic import CronScheduler, Job
from tests.chaos.proxy import Proxy
from tests.periodic.room import DEADLINE, MINUTE, NOON, Recorder, Room

SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "ksana")


async def test_it_looks_every_second_unless_told_otherwise(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    """B-36, B-37, B-62, B-65: and says when it starts and stops."""
    room.schedule("0 * * * *")
    async with room.scheduler():
        assert await room.sleeping() == room.clock.time + SECOND
        room.pass_time(seconds=1)
        assert await room.sleeping() == room.clock.time + SECOND
    told = [(record.message, record.fields) for record in caplog.records]  # type: ignore[attr-defined]
    assert told == [
        ("Cron scheduler started", {"component": "scheduler", "interval": "1s"}),
        ("Cron scheduler stopping", {"component": "scheduler"}),
    ]


async def test_a_slot_does_not_wait_for_the_next_look(room: Room) -> None:
    """B-37: however rarely it looks."""
    schedule = room.schedule()
    async with room.scheduler(interval=timedelta(hours=1)):
        for minute in (1, 2, 3):
            assert await room.sleeping() == NOON + minute * MINUTE
            room.clock.move_to(NOON + minute * MINUTE)
        await room.sleeping()
    assert [job.metadata["triggered_at"] for job in room.queue.calls] == room.queue.slots(schedule.id)
    assert len(room.queue.calls) == 3


async def test_what_somebody_else_is_late_with_is_nothing_to_hurry_for(room: Room) -> None:
    """A slot under way elsewhere, with the next one past already, is looked at every second and not without a rest."""
    schedule = room.schedule()
    await room.store(schedule, next_run="2030-01-01T11:01:00Z", firing="2030-01-01T11:00:00Z somebody 9999999999999")
    async with room.scheduler():
        assert await room.sleeping() == room.clock.time + SECOND
    assert room.queue.calls == []


async def test_stopping_waits_for_the_look_under_way(room: Room) -> None:
    """B-36: and nothing of it is left behind."""
    schedule = room.schedule()
    await room.store(schedule, last_run="2030-01-01T11:59:00Z")
    began, gate = asyncio.Event(), asyncio.Event()

    class Slow(Recorder):
        async def enqueue(self, job: Job) -> None:
            began.set()
            await gate.wait()
            await super().enqueue(job)

    room.queue = Slow()
    scheduler = room.scheduler()
    await scheduler.start()
    await began.wait()
    stopping = asyncio.create_task(scheduler.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    gate.set()
    await stopping
    assert (await room.hash(schedule))["run_count"] == "1"


async def test_it_can_be_started_again_and_not_twice(room: Room) -> None:
    room.schedule()
    scheduler = room.scheduler()
    await scheduler.stop()
    for _ in range(2):
        await scheduler.start()
        with pytest.raises(InvalidState):
            await scheduler.start()
        await room.sleeping()
        await scheduler.stop()
        room.clock.wake()
    with pytest.raises(InvalidArgument, match="interval"):
        room.scheduler(interval=0)


async def test_running_it_ends_when_it_is_cancelled(room: Room) -> None:
    """B-36."""
    room.schedule()
    running = asyncio.create_task(room.scheduler().run())
    await room.sleeping()
    running.cancel()
    async with asyncio.timeout(DEADLINE):
        await asyncio.wait({running})
    assert running.cancelled()


async def test_an_error_nobody_foresaw_does_not_end_it(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    """B-6."""
    scheduler = room.scheduler()
    answers: list[Any] = [RuntimeError("surprise"), 0]

    async def tick() -> int:
        if isinstance(answer := answers.pop(0), Exception):
            raise answer
        return 0

    scheduler.tick = tick  # type: ignore[method-assign]
    async with scheduler:
        await room.sleeping()
        room.pass_time(seconds=1)
        await room.sleeping()
    assert answers == []
    assert [record.message for record in caplog.records if record.exc_info] == ["The tick failed and is repeated"]


async def test_a_redis_that_goes_away_is_waited_for(
    room: Room, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """B-6, B-57, B-73: an error at each look, ever longer pauses, and no slot twice or early when it is back; those
    that were missed became one."""
    schedule = room.schedule()
    parts = urlsplit(redis_url)
    async with Proxy(parts.hostname or "127.0.0.1", parts.port or 6379) as proxy:
        url = redis_url.replace(parts.netloc.rpartition("@")[2], f"127.0.0.1:{proxy.port}")
        async with Redis.from_url(url, retry=Retry(NoBackoff(), 0)) as client:
            clock = room.scheduler()._clock
            async with CronScheduler(room.registry, room.queue, client, clock=clock):
                await room.sleeping()
                await proxy.cut()
                pauses = []
                for _ in range(5):
                    room.clock.move_to(await room.sleeping())
                    caplog.clear()
                    pauses.append((await room.sleeping() - room.clock.time).total_seconds())
                    [record] = caplog.records
                    assert (record.levelname, record.message) == ("ERROR", "Failed to get schedule state")
                    assert record.fields["schedule_id"] == schedule.id  # type: ignore[attr-defined]
                assert pauses == [1, 2, 4, 4, 4]
                room.clock.move_to(NOON + 3 * MINUTE)
                await room.sleeping()
                await proxy.mend()
                room.clock.move_to(await room.sleeping())
                assert await room.sleeping() == room.clock.time + SECOND
    assert room.queue.slots(schedule.id) == ["2030-01-01T12:03:00Z"]
