"""Schedules: see when one would fire before anything is stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from ksana.api.kit import Call, Input, Route, Scope, Timestamp, timestamp
from ksana.api.services import Services
from ksana.api.v2.schedule_shapes import Instant, Problems, ScheduleShape, WordsView, read_schedule, show_words
from ksana.domain.explain import Lint, Words, clock_note_of, explain, explain_schedule
from ksana.domain.schedules import CronSchedule, Once, Schedule, next_slot, validate
from ksana.domain.times import zone


class PreviewInput(Input, frozen=True):
    """A schedule to look at, from an instant on (now unless said otherwise)."""

    schedule: ScheduleShape
    from_at: Instant | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=100)] = 5


class LintView(msgspec.Struct, frozen=True):
    """Something that may not be what was meant; `code` stays the same whatever the words."""

    code: str
    message: WordsView


class FireAtView(msgspec.Struct, frozen=True):
    """One planned instant: in UTC, on the clocks of the schedule's zone, and what a change of clocks does to it."""

    at: Timestamp
    local: str
    dst: WordsView | None


class PreviewView(msgspec.Struct, frozen=True):
    """When it would fire, in instants and in words; `lints` tell what about it tends to surprise, and `notes` the same
    in English alone."""

    normalized: str | None
    next: list[Timestamp]
    notes: list[str]
    words: WordsView
    lints: list[LintView]
    fires: list[FireAtView]


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
    words, lints = explain_schedule(schedule)
    normalized = None
    if isinstance(schedule, Once) and not slots:
        lints = [_PASSED]
    if isinstance(schedule, CronSchedule):
        explained = explain(schedule.expr, zone(schedule.timezone), after, body.count, schedule.timezone)
        normalized, lints = explained.normalized, explained.lints
    return PreviewView(
        normalized=normalized,
        next=[timestamp(slot) for slot in slots],
        notes=[lint.message.en for lint in lints],
        words=show_words(words),
        lints=[LintView(lint.code, show_words(lint.message)) for lint in lints],
        fires=[_fire(schedule, slot) for slot in slots],
    )


_PASSED = Lint(
    "passed",
    Words(
        "run_at has passed: a job made now would be recorded as missed, not run",
        "run_at 已过：现在创建的任务会记为错过，不会运行",
    ),
)


def _fire(schedule: Schedule, slot: datetime) -> FireAtView:
    where = zone(schedule.timezone) if isinstance(schedule, CronSchedule) else UTC
    note = clock_note_of(schedule, slot)
    local = slot.astimezone(where).isoformat(timespec="seconds")
    return FireAtView(timestamp(slot), local, None if note is None else show_words(note))


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
