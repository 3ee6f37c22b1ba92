"""Where the time of a run went: waiting to start, attempts, rests between them, and waiting for others to finish it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from ksana.domain.outcomes import Verdict
from ksana.domain.runs import Attempt, Run
from ksana.domain.states import Reason, State
from ksana.domain.steps import CHAIN


class SegmentKind(StrEnum):
    """What a stretch of time was spent on. STEPS is the work of children: steps of a chain, items of a list."""

    WAIT = "wait"
    ATTEMPT = "attempt"
    BACK_OFF = "back_off"
    CALLBACK = "callback"
    STEPS = "steps"


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch. An attempt that is under way has the outcome `running`; one that left no word has none."""

    kind: SegmentKind
    from_at: datetime
    to_at: datetime
    label: str
    attempt: int | None = None
    outcome: str | None = None
    code: int | None = None


_LABELS = {SegmentKind.WAIT: "waited to start", SegmentKind.CALLBACK: "waited for the callback"}
_RUNNING = "running"


def waterfall(run: Run, attempts: Sequence[Attempt], now: datetime) -> list[Segment]:
    """The stretches of a run's life up to its end, or to `now`, one after the other."""
    end = run.ended_at or now
    first = attempts[0].started_at if attempts else run.started_at or end
    found: list[Segment] = []
    at, last = _waited_since(run, first), None
    for attempt in attempts:
        if attempt.started_at > at:
            found.append(_between(last, at, attempt.started_at, attempt.number))
        found.append(_told(attempt))
        at, last = max(at, attempt.ended_at), attempt
    if _has_untold(run, last):
        began = run.started_at if last is None and run.attempt == 1 and run.started_at is not None else run.due_at
        began = min(max(began, at), end)
        if began > at:
            found.append(_between(last, at, began, run.attempt))
        found.append(_handed_over(began, end) if _hands_over(run) else _untold(run, began, end))
    elif end > at and _goes_on(run, last):
        found.append(_between(last, at, end, run.attempt + 1))
    return found


def _waited_since(run: Run, until: datetime) -> datetime:
    # An attempt that failed moves the due instant on: one that lies behind the first attempt is not the first.
    due_at = run.due_at if run.due_at <= until else run.planned_at
    return min(max(run.planned_at, due_at), until)


def _has_untold(run: Run, last: Attempt | None) -> bool:
    """Whether an attempt was begun of which nobody has told: it is under way, or was taken from its worker."""
    is_told = run.attempt <= (0 if last is None else last.number)
    return not is_told and (run.state in (State.RUNNING, State.STOPPING) or run.state.is_final)


def _goes_on(run: Run, last: Attempt | None) -> bool:
    """Whether a run's time went on behind its last attempt: it is not over, or was not ended by that attempt."""
    return not run.state.is_final or last is None or last.verdict is Verdict.WAIT or run.reason is not None


def _between(last: Attempt | None, from_at: datetime, to_at: datetime, number: int) -> Segment:
    kind = SegmentKind.WAIT if last is None else SegmentKind.BACK_OFF
    if last is not None and last.verdict is Verdict.WAIT:
        kind = SegmentKind.CALLBACK
    return Segment(kind=kind, from_at=from_at, to_at=to_at, label=_LABELS.get(kind, f"rested before attempt {number}"))


def _told(attempt: Attempt) -> Segment:
    outcome = "timeout" if attempt.timed_out else attempt.verdict.value
    said = str(attempt.code) if attempt.code is not None else outcome
    return Segment(
        kind=SegmentKind.ATTEMPT,
        from_at=attempt.started_at,
        to_at=attempt.ended_at,
        label=f"attempt {attempt.number}: {said}",
        attempt=attempt.number,
        outcome=outcome,
        code=attempt.code,
    )


def _hands_over(run: Run) -> bool:
    """Whether children do the work; handing it over to them is no attempt."""
    return run.kind == CHAIN or run.reason is Reason.CHILDREN


def _handed_over(from_at: datetime, to_at: datetime) -> Segment:
    return Segment(kind=SegmentKind.STEPS, from_at=from_at, to_at=to_at, label="its steps were worked on")


def _untold(run: Run, from_at: datetime, to_at: datetime) -> Segment:
    is_over = run.state.is_final
    return Segment(
        kind=SegmentKind.ATTEMPT,
        from_at=from_at,
        to_at=to_at,
        label=f"attempt {run.attempt}: {'left no word' if is_over else _RUNNING}",
        attempt=run.attempt,
        outcome=None if is_over else _RUNNING,
    )
