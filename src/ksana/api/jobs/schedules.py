"""From what a request says to a schedule: replaced as a whole when it names a kind, else changed in place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from ksana.api.jobs.shapes import ScheduleShape
from ksana.api.jobs.spans import read_instant, read_span
from ksana.api.jobs.views import show_schedule
from ksana.api.services import JobDefaults
from ksana.domain.errors import Problem
from ksana.domain.jobs import JobSpec
from ksana.domain.schedules import CronSchedule, Every, Once, Schedule

_REQUIRED: Final = {"once": "run_at", "every": "every", "cron": "expr"}
_TAKES: Final = {
    "once": {"run_at"},
    "every": {"every", "start_at", "jitter"},
    "cron": {"expr", "timezone", "start_at", "jitter"},
}
# What clients write for a span they leave alone.
_NOTHING: Final = frozenset({None, "", "0", "0s"})

_SOME_INSTANT: Final = datetime(2000, 1, 1, tzinfo=UTC)
# Longer than any jitter, which would otherwise be blamed for an interval that could not be read.
_SOME_SPAN: Final = timedelta(days=365_000)
_NEVER_WRONG: Final = "@yearly"
_WITH_SECONDS: Final = 6


def read_schedule(
    shape: ScheduleShape,
    spec: JobSpec,
    extras: dict[str, Any],
    defaults: JobDefaults,
    now: datetime,
    problems: list[Problem],
) -> Schedule | None:
    """The schedule a request means. What cannot be read goes into `problems`, and a harmless value stands in."""
    said = _overlaid(shape, spec)
    kind = said.get("kind")
    if kind is None:
        problems.append(Problem("schedule.kind", f"is required: one of {', '.join(sorted(_TAKES))}"))
        return None
    _refuse_foreign(said, kind, problems)
    start_at = read_instant(said.get("start_at"), "schedule.start_at", problems)
    extras.pop("every", None)
    jitter = read_span(said.get("jitter") or "", "schedule.jitter", extras, problems)
    if not said.get(_REQUIRED[kind]):
        problems.append(Problem(f"schedule.{_REQUIRED[kind]}", f'is required for the kind "{kind}"'))
    if kind == "once":
        return Once(read_instant(said.get("run_at"), "schedule.run_at", problems) or _SOME_INSTANT)
    if kind == "every":
        text = said.get("every") or ""
        every = read_span(text, "schedule.every", extras, problems, default=_SOME_SPAN, instead=_SOME_SPAN)
        return _as_before(Every(every, now, start_at, None, jitter), spec.schedule)
    expr = said.get("expr") or _NEVER_WRONG
    if len(expr.split()) == _WITH_SECONDS and not defaults.seconds_field:
        message = "has a field for seconds, which scheduler.enable_seconds_field: false refuses"
        problems.append(Problem("schedule.expr", message))
    timezone = said.get("timezone") or defaults.timezone
    return _as_before(CronSchedule(expr, timezone, start_at, None, jitter), spec.schedule)


def _overlaid(shape: ScheduleShape, spec: JobSpec) -> dict[str, Any]:
    """What is said, on top of what was said before unless a kind is named."""
    said = {name: value for name, value in msgspec.structs.asdict(shape).items() if value is not None}
    if shape.kind is not None or spec.schedule is None:
        return said
    return {**msgspec.to_builtins(show_schedule(spec)), **said}


def _refuse_foreign(said: dict[str, Any], kind: str, problems: list[Problem]) -> None:
    for name, value in said.items():
        if name != "kind" and name not in _TAKES[kind] and value not in _NOTHING:
            problems.append(Problem(f"schedule.{name}", f'does not go with the kind "{kind}"; leave it out'))


def _as_before(schedule: Every | CronSchedule, old: Schedule | None) -> Schedule:
    """The schedule with what this surface has no word for as it was.

    An interval that stays as long as it was keeps counting from where it began, so saying it again moves nothing.
    """
    if isinstance(schedule, CronSchedule):
        return msgspec.structs.replace(schedule, end_at=old.end_at) if isinstance(old, CronSchedule) else schedule
    if not isinstance(old, Every):
        return schedule
    origin_at = old.origin_at if old.every == schedule.every else schedule.origin_at
    return msgspec.structs.replace(schedule, origin_at=origin_at, end_at=old.end_at)
