"""The scheduler: looks at every registered schedule and enqueues the jobs of those that are due.

Any number of them may share one Redis. There is no leader: the claim on a slot decides, and it can be had once.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ksana.domain.durations import format_duration
from ksana.domain.errors import InvalidArgument, InvalidState
from ksana.domain.ports import Clock
from ksana.engine.clock import SystemClock
from ksana.engine.loops import rest
from ksana.observe.schedule_series import ScheduleSeries
from ksana.periodic import telling
from ksana.periodic.errors import StateError
from ksana.periodic.firing import Due, Firing
from ksana.periodic.judging import Finish, Fire, Plan, Verdict, Wait, judge
from ksana.periodic.queue import Queue
from ksana.periodic.registry import Registry
from ksana.periodic.schedule import Schedule, ScheduleState
from ksana.periodic.state import States, Stored

if TYPE_CHECKING:
    from redis.asyncio import Redis

LOCK_TTL: Final = timedelta(seconds=60)

_AT_ONCE: Final = 8
_LONGEST_PAUSE: Final = timedelta(seconds=4)


class CronScheduler:
    """Enqueues due jobs: `tick` once, `run` until told to stop, `start` and `stop` in the background.

    `interval` is how often it looks, in seconds or as a timedelta; a slot that is due earlier is not kept waiting.
    """

    def __init__(
        self,
        registry: Registry,
        queue: Queue,
        client: Redis,
        interval: float | timedelta = 1.0,
        *,
        clock: Clock | None = None,
        metrics: ScheduleSeries | None = None,
        lock_ttl: float | timedelta = LOCK_TTL,
    ) -> None:
        self.interval = interval if isinstance(interval, timedelta) else timedelta(seconds=interval)
        if self.interval <= timedelta(0):
            raise InvalidArgument.of("interval", "must be longer than nothing")
        self.metrics = metrics or ScheduleSeries()
        self._registry = registry
        self._clock = clock or SystemClock()
        self._states = States(client)
        ttl = lock_ttl if isinstance(lock_ttl, timedelta) else timedelta(seconds=lock_ttl)
        self._firing = Firing(self._states, queue, self.metrics, ttl)
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._next_at: datetime | None = None
        self._pause: timedelta | None = None
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._task: asyncio.Task[None] | None = None

    # In the background

    async def start(self) -> None:
        """Begin to work in a task of its own."""
        if self._task is not None and not self._task.done():
            raise InvalidState("this scheduler has been started already")
        self._is_stopping = False
        self._task = asyncio.create_task(self.run())

    async def stop(self) -> None:
        """Look no more, and wait for the look under way."""
        self._is_stopping = True
        self._wake.set()
        if self._task is not None:
            await asyncio.wait({self._task})
            self._task = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def run(self) -> None:
        """Work until stopped or cancelled. A Redis that goes away makes it pause, a little longer each time."""
        telling.info("Cron scheduler started", interval=format_duration(self.interval))
        try:
            while not self._is_stopping:
                self._wake.clear()
                await self._attend()
                await rest(self._clock, self._wake, self._until_next())
        finally:
            telling.info("Cron scheduler stopping")

    async def _attend(self) -> None:
        try:
            await self.tick()
        except Exception:
            telling.failure("The tick failed and is repeated")

    def _until_next(self) -> timedelta:
        if self._is_stopping:
            return timedelta(0)
        if self._pause is not None:
            return self._pause
        if self._next_at is None:
            return self.interval
        return min(self.interval, self._next_at - self._clock.now())

    # One look

    async def tick(self) -> int:
        """Look at every enabled schedule once and enqueue what is due; answer how many jobs."""
        now = self._clock.now()
        schedules = [schedule for schedule in self._registry.list() if schedule.enabled]
        states = await self._read(schedules)
        self._next_at = None
        async with asyncio.TaskGroup() as group:
            acts = []
            for schedule, stored in zip(schedules, states, strict=True):
                if stored is None or (verdict := self._judge(schedule, stored, now)) is None:
                    continue
                self._expect(schedule, verdict.next_at, now)
                if not isinstance(verdict, Wait):
                    acts.append(group.create_task(self._act(schedule, stored, verdict, now)))
        return sum(act.result() for act in acts)

    async def is_due(self, schedule: Schedule, now: datetime) -> bool:
        """Whether a slot of this schedule waits to be fired. What cannot be read is not due."""
        [stored] = await self._read([schedule])
        return stored is not None and isinstance(self._judge(schedule, stored, now), Fire)

    async def get_state(self, schedule_id: str) -> ScheduleState:
        """What Redis knows of a schedule, which may be nothing but its id. StateError if Redis does not answer."""
        [stored] = await self._states.read([schedule_id])
        if isinstance(stored, StateError):
            raise stored
        return stored.state

    async def _read(self, schedules: list[Schedule]) -> list[Stored | None]:
        """The states of these, None for one that cannot be read."""
        found: list[Stored | StateError]
        try:
            found = await self._states.read([schedule.id for schedule in schedules])
            self._pause = None
        except StateError as error:
            found = [error] * len(schedules)
            longest = max(self.interval, _LONGEST_PAUSE)
            self._pause = self.interval if self._pause is None else min(self._pause * 2, longest)
        for schedule, stored in zip(schedules, found, strict=True):
            if isinstance(stored, StateError):
                telling.error("Failed to get schedule state", schedule_id=schedule.id, error=str(stored))
        return [None if isinstance(stored, StateError) else stored for stored in found]

    def _judge(self, schedule: Schedule, stored: Stored, now: datetime) -> Verdict | None:
        try:
            return judge(self._registry, schedule, stored, now)
        except InvalidArgument as error:
            telling.error("Failed to calculate next run", schedule_id=schedule.id, error=str(error))
            return None

    def _expect(self, schedule: Schedule, next_at: datetime, now: datetime) -> None:
        self.metrics.planned(schedule.id, next_at)
        # One that is past already is somebody else's to finish, and nothing to hurry for.
        if next_at > now and (self._next_at is None or next_at < self._next_at):
            self._next_at = next_at

    async def _act(self, schedule: Schedule, stored: Stored, verdict: Plan | Fire | Finish, now: datetime) -> bool:
        async with self._at_once:
            try:
                if not isinstance(verdict, Plan):
                    return await self._firing.fire(Due(schedule, stored, verdict, now))
                await self._states.plan(stored, verdict.next_at)
            except StateError as error:
                telling.error("Failed to update schedule state", schedule_id=schedule.id, error=str(error))
            except Exception:
                # Whatever is wrong with one schedule, the others go on.
                telling.failure("Failed to execute schedule", schedule_id=schedule.id)
            return False
