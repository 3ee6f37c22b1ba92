"""Marks on a time line: runs and planned instants, merged where a screen could not tell them apart."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from ksana.domain.jobs import Job
from ksana.domain.runs import Run
from ksana.domain.schedules import Schedule, count_slots, next_slot
from ksana.domain.states import State

MOST_MARKS: Final = 400
"""How many marks fit beside each other on a lane."""
# How many places there are for what is planned: fewer where many jobs have to share the work of finding them.
_MOST_PLANNED: Final = 60
_LEAST_PLANNED: Final = 20
_TICK: Final = timedelta(microseconds=1)

_WORST_FIRST: Final = (
    State.DEAD_LETTER,
    State.TIMEOUT,
    State.FAILED,
    State.RETRYING,
    State.MISSED,
    State.STOPPING,
    State.RUNNING,
    State.CALLBACK_PENDING,
    State.CANCELED,
    State.SKIPPED,
    State.SUCCESS,
    State.SCHEDULED,
    State.WAITING,
)
_RANK: Final = {state: rank for rank, state in enumerate(_WORST_FIRST)}


class Mark(msgspec.Struct, frozen=True):
    """A stretch of a lane. Of several runs it shows the worst, and the newest of these."""

    from_at: datetime
    to_at: datetime
    state: State
    count: int
    run_id: int | None


class Window(msgspec.Struct, frozen=True):
    """The stretch of time that is shown, and where now is in it."""

    since: datetime
    until: datetime
    now: datetime

    @property
    def step(self) -> timedelta:
        return (self.until - self.since) / MOST_MARKS


def past_marks(runs: Iterable[Run], window: Window) -> list[Mark]:
    """Runs that begin in the same step become one mark. No mark reaches beyond now."""
    marks: dict[int, Mark] = {}
    step = max(window.step, _TICK)
    for run in runs:
        mark = _mark(run, window)
        place = (mark.from_at - window.since) // step
        known = marks.get(place)
        marks[place] = mark if known is None else _merged(known, mark)
    return [marks[place] for place in sorted(marks)]


def _mark(run: Run, window: Window) -> Mark:
    begun = run.started_at or run.ended_at or run.due_at
    ended = run.ended_at or window.now
    latest = min(window.now, window.until)
    from_at = min(max(begun, window.since), latest)
    return Mark(from_at, max(from_at, min(ended, latest)), run.state, 1, run.id)


def _merged(one: Mark, other: Mark) -> Mark:
    worst = min(one, other, key=lambda mark: (_RANK[mark.state], -(mark.run_id or 0)))
    return Mark(
        min(one.from_at, other.from_at),
        max(one.to_at, other.to_at),
        worst.state,
        one.count + other.count,
        worst.run_id,
    )


def planned_marks(jobs: Iterable[Job], window: Window) -> list[Mark]:
    """The instants at which these jobs will fire, from now on. A lane has a bounded number of places for them, so those
    of a busy schedule are counted and not visited."""
    begin = max(window.now, window.since)
    if window.until <= begin:
        return []
    schedules = [job.schedule for job in jobs if job.schedule is not None and job.enabled]
    places = max(_LEAST_PLANNED, _MOST_PLANNED // max(1, len(schedules)))
    step = max(window.step, (window.until - begin) / places)
    marks: dict[int, Mark] = {}
    for schedule in schedules:
        for place, mark in _planned(schedule, begin, window.until, step):
            known = marks.get(place)
            marks[place] = mark if known is None else _merged(known, mark)
    return [marks[place] for place in sorted(marks)]


def _planned(schedule: Schedule, begin: datetime, until: datetime, step: timedelta) -> Iterable[tuple[int, Mark]]:
    slot = next_slot(schedule, begin)
    while slot is not None and slot < until:
        place = (slot - begin) // step
        # The last place of the window may be cut short; the slot at its end belongs to what is not shown.
        end = min(begin + (place + 1) * step, until) - _TICK
        yield place, Mark(slot, slot, State.SCHEDULED, 1 + count_slots(schedule, slot, end), None)
        slot = next_slot(schedule, end)
