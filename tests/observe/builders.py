"""Jobs, runs and moves as the engine would report them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ksana.domain.claims import Claimed
from ksana.domain.fires import Gap
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.moves import Move
from ksana.domain.outcomes import Exchange, Verdict
from ksana.domain.runs import Attempt, Run
from ksana.domain.schedules import Every
from ksana.domain.states import Reason, State

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def job(id: int = 7, **fields: Any) -> Job:
    given: dict[str, Any] = {
        "surface": "v2",
        "name": "nightly",
        "target": TargetSpec("http", {"url": "https://example.com/hook"}),
        "schedule": Every(timedelta(minutes=1), NOON),
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Job(id=id, **(given | fields))


def run(state: State = State.SUCCESS, *, id: int = 41, seconds: float = 0.2, **fields: Any) -> Run:
    given: dict[str, Any] = {
        "job_id": 7,
        "surface": "v2",
        "kind": "http",
        "state": state,
        "attempt": 1,
        "due_at": NOON,
        "created_at": NOON,
    }
    if state.is_final and state not in (State.SKIPPED, State.MISSED):
        given |= {"started_at": NOON, "ended_at": NOON + timedelta(seconds=seconds)}
    elif state.is_final:
        given["ended_at"] = NOON
    return Run(id=id, **(given | fields))


def moved(run: Run, job: Job | None = None, exchange: Exchange | None = None) -> tuple[Move, Job | None]:
    attempt = Attempt(
        run_id=run.id,
        number=run.attempt,
        epoch=run.epoch,
        started_at=NOON,
        ended_at=NOON + timedelta(milliseconds=120),
        verdict=Verdict.SUCCESS,
        code=None if exchange is None else exchange.response_code,
        exchange=exchange,
    )
    return Move(run.epoch, run, attempt), job


def fired(run: Run, job: Job | None = None) -> Claimed:
    return Claimed(run, job)


def gap(count: int, reason: Reason = Reason.MISFIRE, job_id: int = 7) -> Gap:
    return Gap(
        job_id=job_id,
        from_at=NOON - timedelta(minutes=count),
        to_at=NOON - timedelta(minutes=1),
        count=count,
        reason=reason,
        recorded_at=NOON,
    )
