"""Schedules: see when one would fire before anything is stored."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from ksana.api.kit import Call, Input, Route, Scope, Timestamp, timestamp
from ksana.api.services import Services
from ksana.api.v2.schedule_shapes import Instant, Problems, ScheduleShape, read_schedule
from ksana.domain.explain import explain
from ksana.domain.schedules import CronSchedule, Once, next_slot, validate
from ksana.domain.times import zone


class PreviewInput(Input, frozen=True):
    """A schedule to look at, from an instant on (now unless said otherwise)."""

    schedule: ScheduleShape
    from_at: Instant | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=100)] = 5


class PreviewView(msgspec.Struct, frozen=True):
    """When it would fire; `notes` tell what about it tends to surprise."""

    normalized: str | None
    next: list[Timestamp]
    notes: list[str]


async def preview(call: Call[PreviewInput, None]) -> PreviewView:
    """When a schedule would fire next. Nothing is stored."""
    services: Services = call.services
    body, problems = call.body, Problems()
    now = services.engine.clock.now()
    after = problems.instant(body.from_at, "from_at") or now
    schedule = read_schedule(body.schedule, after, services.defaults, problems)
    problems.raise_any()
    validate(schedule)
    slots: list[datetime] = []
    slot = next_slot(schedule, after)
    while slot is not None and len(slots) < body.count:
        slots.append(slot)
        slot = next_slot(schedule, slot)
    normalized, notes = None, list[str]()
    if isinstance(schedule, Once) and not slots:
        notes.append("run_at has passed: a job made now would be recorded as missed, not run")
    if isinstance(schedule, CronSchedule):
        explained = explain(schedule.expr, zone(schedule.timezone), after, body.count)
        normalized, notes = explained.normalized, explained.notes
    return PreviewView(normalized, [timestamp(slot) for slot in slots], notes)


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "POST",
            "/api/v2/schedules/preview",
            preview,
            Scope.JOB_READ,
            request=PreviewInput,
            response=PreviewView,
            summary="When would it fire?",
        )
    ]
