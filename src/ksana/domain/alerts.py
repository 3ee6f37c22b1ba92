"""Alerts: word of runs that ended in failure, kept in an outbox until everybody who is to hear has heard.

An alert is committed with the move it tells of, so there is one for each hook and each such move, never more and never
fewer. It is delivered at least once: a node that dies half-way leaves it to come due again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from ksana.domain.jobs import Job
from ksana.domain.moves import Move
from ksana.domain.policies import Retry, RetryStrategy
from ksana.domain.states import Reason, State
from ksana.domain.times import format_instant

ALERTING = frozenset({State.FAILED, State.TIMEOUT, State.DEAD_LETTER})
"""Ends that somebody may have to look at. A canceled run was ended by somebody who knows."""

RETRY = Retry(
    max_attempts=12,
    strategy=RetryStrategy.EXPONENTIAL,
    initial_delay=timedelta(seconds=5),
    max_delay=timedelta(hours=1),
)
"""How often a hook is tried that does not take an alert: for about three hours."""

ERROR_LENGTH = 1024


class AlertState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """Word of one move for one hook. (`run_id`, `epoch`, `hook`) is unique: `epoch` is the run's after the move."""

    run_id: int
    epoch: int
    hook: str
    body: bytes
    created_at: datetime
    due_at: datetime | None
    attempts: int = 0
    state: AlertState = AlertState.PENDING
    ended_at: datetime | None = None
    error: str = ""

    @property
    def id(self) -> str:
        """The same over all deliveries, so that a receiver can tell a repeat."""
        return f"alert_{self.run_id}_{self.epoch}"


class AlertQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which alerts, newest first, which page."""

    run_id: int | None = None
    state: AlertState | None = None
    offset: int = 0
    limit: int = 50


def alerts_of(moves: Iterable[tuple[Move, Job | None]], hooks: Sequence[str], now: datetime) -> list[Alert]:
    """The alerts these moves give rise to: one for each hook and each run that ends in failure, or that
    a gate has held back for long."""
    return [
        Alert(run_id=move.run.id, epoch=move.run.epoch, hook=hook, body=body, created_at=now, due_at=now)
        for move, job in moves
        if move.run.state in ALERTING or move.run.reason is Reason.GATE
        for body in [_body(move, job, now)]
        for hook in hooks
    ]


def settled(alert: Alert, problem: str, now: datetime) -> Alert:
    """The alert after a delivery: done if there was no problem, else due again until its attempts are used up."""
    if not problem:
        return msgspec.structs.replace(alert, state=AlertState.DELIVERED, due_at=None, ended_at=now, error="")
    error = problem[:ERROR_LENGTH]
    if not RETRY.allows_another(alert.attempts):
        return msgspec.structs.replace(alert, state=AlertState.FAILED, due_at=None, ended_at=now, error=error)
    return msgspec.structs.replace(alert, due_at=now + RETRY.delay_after(alert.attempts), error=error)


def _body(move: Move, job: Job | None, now: datetime) -> bytes:
    run = move.run
    told: dict[str, Any] = {
        "event": "run.gate_blocked" if run.reason is Reason.GATE else f"run.{run.state.value.lower()}",
        "id": f"alert_{run.id}_{run.epoch}",
        "at": format_instant(now),
        "run": {
            "id": run.id,
            "state": run.state.value,
            "reason": None if run.reason is None else run.reason.value,
            "trigger": run.trigger.value,
            "attempt": run.attempt,
            "failures": run.failures,
            "planned_at": format_instant(run.planned_at),
            "started_at": None if run.started_at is None else format_instant(run.started_at),
            "ended_at": None if run.ended_at is None else format_instant(run.ended_at),
            "error": run.error,
        },
        "job": None if job is None else _job(job),
    }
    return msgspec.json.encode(told)


def _job(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "ref": job.ref,
        "name": job.name,
        "surface": job.surface,
        "kind": job.target.kind,
        "tags": list(job.tags),
    }
