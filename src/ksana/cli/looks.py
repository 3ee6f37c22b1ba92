"""How jobs and runs look in a table: states by colour, icon and word, schedules and spans as people write them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from ksana.cli.output import Cell, Column, Out
from ksana.domain.states import State

if TYPE_CHECKING:
    from ksana.client.results import Cron, Every, Job, Once, Run

_WAIT, _OFF, _BUSY, _RETRY, _OUTSIDE, _OK, _BAD = (
    ("○", "bright_black"),
    ("⊘", "bright_black"),
    ("◐", "blue"),
    ("↻", "yellow"),
    ("⇄", "magenta"),
    ("✓", "green"),
    ("✕", "red"),
)
_FAMILIES = {
    State.WAITING: _WAIT,
    State.SCHEDULED: _WAIT,
    State.RUNNING: _BUSY,
    State.STOPPING: _BUSY,
    State.RETRYING: _RETRY,
    State.CALLBACK_PENDING: _OUTSIDE,
    State.SUCCESS: _OK,
    State.FAILED: _BAD,
    State.TIMEOUT: _BAD,
    State.DEAD_LETTER: _BAD,
    State.CANCELED: _OFF,
    State.SKIPPED: _OFF,
    State.MISSED: _OFF,
}


def state_cell(state: State | str, out: Out) -> Cell:
    """A state; the icon only where somebody looks, so that scripts can compare the word."""
    icon, style = _FAMILIES.get(State(state), _WAIT)
    return Cell(f"{icon} {state.lower()}" if out.is_terminal else str(state), style)


def schedule_text(schedule: Once | Every | Cron | None, out: Out) -> str:
    from ksana.client.results import Cron, Every

    if schedule is None:
        return "by hand"
    if isinstance(schedule, Cron):
        return f"{schedule.expr} ({schedule.timezone})"
    if isinstance(schedule, Every):
        return f"every {schedule.every}"
    return f"at {out.instant(schedule.run_at)}"


def span_text(millis: float | None) -> str:
    """Milliseconds as people read them."""
    if millis is None:
        return ""
    if millis < 1000:
        return f"{millis:.0f} ms"
    if millis < 60_000:
        return f"{millis / 1000:.1f} s"
    minutes, seconds = divmod(round(millis / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def delay_text(run: Run) -> str:
    """How long after its planned instant a run began."""
    return "" if run.started_at is None else span_text(_millis(run.planned_at, run.started_at))


def first_line(text: str) -> str:
    return text.partition("\n")[0]


def _paused(job: Job, out: Out) -> Cell:
    until = "" if job.paused_until is None else f" until {out.instant(job.paused_until)}"
    return Cell(f"paused{until}", "bright_black")


def job_columns(out: Out) -> list[Column[Job]]:
    return [
        Column("id", lambda job: str(job.id)),
        Column("name", lambda job: Cell(job.name, "bold")),
        Column("kind", lambda job: job.target.kind),
        Column("schedule", lambda job: schedule_text(job.schedule, out)),
        Column("next", lambda job: out.instant(job.next_fire_at) if job.enabled else _paused(job, out)),
        Column("last", lambda job: "" if job.last_run is None else state_cell(job.last_run.state, out)),
    ]


def run_columns(out: Out) -> list[Column[Run]]:
    return [
        Column("id", lambda run: str(run.id)),
        Column("job", lambda run: Cell(run.job_name or run.kind, "bold")),
        Column("state", lambda run: state_cell(run.state, out)),
        Column("planned", lambda run: out.instant(run.planned_at)),
        Column("delay", delay_text),
        Column("took", lambda run: span_text(run.duration_ms)),
        Column("attempts", lambda run: str(run.attempt)),
        Column("trigger", lambda run: str(run.trigger)),
        Column("error", lambda run: first_line(run.error), is_text=True),
    ]


def json_text(value: Any) -> str:
    """A value on one line."""
    import msgspec

    return "" if value is None else msgspec.json.encode(value).decode()


def _millis(since: datetime, until: datetime) -> float:
    return max(0.0, (until - since).total_seconds() * 1000)
