"""Turns: moving and claiming runs in one step, the innermost loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from ksana.domain.alerts import Alert
from ksana.domain.claims import Claim, Claimed, Turn
from ksana.domain.moves import Move, advance
from ksana.domain.policies import Priority
from ksana.domain.runs import Run
from ksana.domain.states import Event
from ksana.stores.json.families import move
from ksana.stores.json.outbox import keep_alerts
from ksana.stores.json.tables import Tables
from ksana.stores.json.tx import Tx

BY_PRIORITY = sorted(Priority, reverse=True)


def turn(
    tx: Tx, moves: Sequence[Move], claim: Claim | None, alerts: Sequence[Alert] = (), hooks: Sequence[str] = ()
) -> Turn:
    lost, admitted, followed = move(tx, moves, hooks)
    keep_alerts(tx, [alert for alert in alerts if alert.run_id not in lost])
    claimed = _claim(tx, claim) if claim is not None and claim.limit > 0 else []
    return Turn(lost, claimed, admitted, followed)


def _claim(tx: Tx, claim: Claim) -> list[Claimed]:
    tables = tx.tables
    due: list[int] = []
    for priority in BY_PRIORITY:
        if len(due) < claim.limit:
            due += _due(tables, claim, priority, claim.limit - len(due))
    claimed: list[Run] = []
    for run_id in due:
        run = advance(tables.runs.rows[run_id], Event.CLAIM, claim.now, node_id=claim.node_id)
        tx.put(tables.runs, run_id, run)
        claimed.append(run)
    return with_jobs(tables, claimed)


def _due(tables: Tables, claim: Claim, priority: Priority, limit: int) -> list[int]:
    """The next runs of one priority over all the queues."""
    found: list[tuple[datetime, int]] = []
    for queue in dict.fromkeys(claim.queues):
        ready = tables.runs.ready[queue, priority.value]
        found += ready[: min(limit, ready.through(claim.now))]
    return [run_id for _, run_id in sorted(found)[:limit]]


def with_jobs(tables: Tables, runs: Iterable[Run]) -> list[Claimed]:
    """Each run with the job it belongs to."""
    return [Claimed(run, None if run.job_id is None else tables.jobs.get(run.job_id)) for run in runs]
