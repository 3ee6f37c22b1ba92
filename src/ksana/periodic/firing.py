"""One slot's way into the queue: claim, enqueue, settle; and what is left behind when that is cut short."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Coroutine
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from ksana.domain.times import format_instant
from ksana.observe.schedule_series import ScheduleSeries
from ksana.periodic import telling
from ksana.periodic.errors import StateError
from ksana.periodic.judging import Finish, Fire
from ksana.periodic.queue import Queue
from ksana.periodic.schedule import Job, Schedule
from ksana.periodic.state import Claimed, States, Stored

_NAMESPACE: Final = uuid.UUID("6d0cbd0c-0c0f-5c4e-9f3f-2f6a1d1e7b35")
# Who enqueues gives up before the lease ends, so that nobody else is at it at the same time.
_PATIENCE: Final = 0.75
# How long one that is cut short tries to say so; all it saves others is the wait for the lease.
_PARTING: Final = 1.0


class Due(msgspec.Struct, frozen=True):
    """A slot that is to be fired, or finished, and the state that says so."""

    schedule: Schedule
    stored: Stored
    verdict: Fire | Finish
    now: datetime

    @property
    def slot_at(self) -> datetime:
        return self.verdict.slot_at

    @property
    def ran_at(self) -> datetime:
        """When it ran: never before its slot, however far behind the clock of one who takes over is."""
        return max(self.now, self.slot_at)

    def job(self) -> Job:
        schedule = self.schedule
        slot = format_instant(self.slot_at, "seconds")
        return Job(
            id=str(uuid.uuid5(_NAMESPACE, f"{schedule.id} {slot}")),
            name=schedule.job,
            payload=schedule.payload,
            priority=schedule.priority,
            metadata={
                "schedule_id": schedule.id,
                "scheduled_at": slot,
                "triggered_at": format_instant(self.now, "seconds"),
                "trigger_type": "cron",
            },
        )


class _Result(StrEnum):
    """How a try to enqueue ended."""

    ENQUEUED = "enqueued"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    NOT_OURS = "not ours"


class Firing:
    """Fires slots. One that is in the queue but could not be settled, because Redis went away in between, is settled
    when it is met again."""

    def __init__(self, states: States, queue: Queue, metrics: ScheduleSeries, lock_ttl: timedelta) -> None:
        self._states = states
        self._queue = queue
        self._metrics = metrics
        self._lock_ttl = lock_ttl
        self._patience = lock_ttl.total_seconds() * _PATIENCE
        self._unsettled: dict[str, tuple[str, datetime]] = {}

    async def fire(self, due: Due) -> bool:
        """Enqueue the job of a slot, unless somebody else does or has; answer whether it was enqueued here and now."""
        if await self._only_had_to_settle(due):
            return False
        schedule, token, job = due.schedule, str(uuid.uuid4()), due.job()
        began = time.perf_counter()
        try:
            result, error = await self._try(due, token, job)
        except asyncio.CancelledError:
            await self._at_parting(self._states.abandon(due.stored, token, due.slot_at, ""))
            raise
        if result is _Result.ENQUEUED:
            self._metrics.ran(schedule.id, time.perf_counter() - began, due.ran_at)
            telling.info(
                "Scheduled job enqueued",
                schedule_id=schedule.id,
                job_name=schedule.job,
                job_id=job.id,
                priority=str(schedule.priority),
                next_run=format_instant(due.verdict.next_at, "seconds"),
            )
            await self._settle(due, token)
        elif result is not _Result.NOT_OURS:
            self._metrics.failed(schedule.id, time.perf_counter() - began)
            telling.error(
                "Failed to enqueue scheduled job", schedule_id=schedule.id, job_name=schedule.job, error=error
            )
            undo = self._states.give_back if result is _Result.REFUSED else self._states.abandon
            await self._note(schedule.id, undo(due.stored, token, due.slot_at, error))
        return result is _Result.ENQUEUED

    async def _try(self, due: Due, token: str, job: Job) -> tuple[_Result, str]:
        """Claim the slot and enqueue its job; answer how that ended, and what went wrong."""
        try:
            async with asyncio.timeout(self._patience):
                if not await self._is_claimed(due, token):
                    return _Result.NOT_OURS, ""
                try:
                    await self._queue.enqueue(job)
                except Exception as error:
                    return _Result.REFUSED, str(error) or type(error).__name__
        except TimeoutError:
            return _Result.UNKNOWN, f"the queue did not answer within {self._patience:g} s"
        return _Result.ENQUEUED, ""

    async def _is_claimed(self, due: Due, token: str) -> bool:
        schedule_id = due.schedule.id
        try:
            if isinstance(due.verdict, Finish):
                claimed = await self._states.take_over(due.stored, token, self._lock_ttl)
            else:
                next_at = due.verdict.next_at
                claimed = await self._states.claim(due.stored, due.slot_at, next_at, token, self._lock_ttl)
        except StateError as error:
            self._metrics.lock_failed(schedule_id)
            telling.error("Failed to acquire schedule lock", schedule_id=schedule_id, error=str(error))
            # Maybe only the answer was lost.
            await self._at_parting(self._states.abandon(due.stored, token, due.slot_at, ""))
            return False
        if claimed is Claimed.LOCKED:
            self._metrics.lock_contended(schedule_id)
            telling.debug("Schedule already locked by another instance", schedule_id=schedule_id)
        elif claimed is Claimed.CHANGED:
            telling.debug("Schedule already fired by another instance", schedule_id=schedule_id)
        return claimed is Claimed.OURS

    async def _settle(self, due: Due, token: str) -> None:
        schedule_id = due.schedule.id
        self._unsettled[schedule_id] = (token, due.ran_at)
        try:
            if await self._note(schedule_id, self._states.settle(due.stored, token, due.ran_at)):
                del self._unsettled[schedule_id]
        except asyncio.CancelledError:
            await self._at_parting(self._states.settle(due.stored, token, due.ran_at))
            raise

    async def _only_had_to_settle(self, due: Due) -> bool:
        """Whether this very slot was enqueued here before; then it is settled, and must not be enqueued again."""
        schedule_id = due.schedule.id
        token, ran_at = self._unsettled.get(schedule_id, ("", due.now))
        if not token or token not in due.stored.firing:
            self._unsettled.pop(schedule_id, None)
            return False
        if await self._note(schedule_id, self._states.settle(due.stored, token, ran_at)):
            del self._unsettled[schedule_id]
        return True

    async def _note(self, schedule_id: str, move: Coroutine[Any, Any, None]) -> bool:
        """Move a slot; answer whether Redis answered. If it does not, the slot's lease decides."""
        try:
            await move
        except StateError as error:
            telling.error("Failed to update schedule state", schedule_id=schedule_id, error=str(error))
            return False
        return True

    async def _at_parting(self, move: Coroutine[Any, Any, None]) -> None:
        try:
            async with asyncio.timeout(_PARTING):
                await move
        except (StateError, TimeoutError) as error:
            # Locks and leases end by themselves.
            telling.debug("Failed to release schedule", error=str(error))
