"""The outbox of alerts: written with the move they tell of, leased by whoever delivers them.

A lease is nothing but a later due instant, taken by comparing the number of attempts: two nodes that reach for one
alert cannot both raise it, and one that dies with it leaves it to come due again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from ksana.domain.alerts import Alert, AlertQuery, AlertState
from ksana.domain.queries import Page
from ksana.domain.times import from_micros, to_micros
from ksana.stores.sql.paging import count, page
from ksana.stores.sql.rows import Row, instant_or_none, micros_or_none, storable
from ksana.stores.sql.statements import Statement
from ksana.stores.sql.tables import Table
from ksana.stores.sql.tx import Tx
from ksana.stores.sql.where import Where

ALERTS = Table(
    "ksana_alerts",
    (
        ("run_id", "int"),
        ("epoch", "int"),
        ("hook", "text"),
        ("body", "bytes"),
        ("created_at", "int"),
        ("due_at", "int"),
        ("attempts", "int"),
        ("state", "text"),
        ("ended_at", "int"),
        ("error", "text"),
    ),
)
_ALERT = ", ".join(ALERTS.names)

DUE_ALERTS = Statement(
    f"SELECT {_ALERT} FROM ksana_alerts WHERE hook = :hook AND due_at <= :now ORDER BY due_at LIMIT :limit"
)
CHANGE_ALERT = Statement(
    "UPDATE ksana_alerts SET attempts = :attempts, due_at = :due_at, state = :state, ended_at = :ended_at,"
    " error = :error WHERE run_id = :run_id AND epoch = :epoch AND hook = :hook AND attempts = :was"
    " AND state = 'pending'"
)
LAST_DUE_ALERTS = Statement("SELECT hook, MAX(due_at) FROM ksana_alerts WHERE due_at IS NOT NULL GROUP BY hook")
GIVE_UP_ALERTS = Statement(
    "UPDATE ksana_alerts SET due_at = NULL, state = 'failed', ended_at = :now, error = :error"
    " WHERE hook = :hook AND due_at <= :before"
)


async def keep_alerts(tx: Tx, alerts: Iterable[Alert]) -> None:
    """Put alerts of moves that were applied into the outbox. One that is there was put there by the same move."""
    await tx.insert_new(ALERTS, [alert_to_row(alert) for alert in alerts])


async def due_alerts(tx: Tx, hooks: Sequence[str], now: datetime, limit: int) -> list[Alert]:
    """Alerts for these hooks that may be leased, earliest first."""
    due: list[Alert] = []
    for hook in hooks:
        due += map(alert_from_row, await tx.rows(DUE_ALERTS, hook=hook, now=to_micros(now), limit=limit))
    due.sort(key=lambda alert: (alert.due_at or now, alert.run_id, alert.epoch, alert.hook))
    return due[:limit]


async def lease_alerts(tx: Tx, due: Sequence[Alert], until: datetime) -> list[Alert]:
    """Those of the alerts that nobody else has leased since they were read."""
    leased = [msgspec.structs.replace(alert, due_at=until, attempts=alert.attempts + 1) for alert in due]
    return [alert for alert in leased if await _change(tx, alert, alert.attempts - 1)]


async def settle_alerts(tx: Tx, alerts: Sequence[Alert]) -> None:
    for alert in alerts:
        await _change(tx, alert, alert.attempts)


async def _change(tx: Tx, alert: Alert, was: int) -> int:
    return await tx.run(
        CHANGE_ALERT,
        attempts=alert.attempts,
        due_at=micros_or_none(alert.due_at),
        state=alert.state.value,
        ended_at=micros_or_none(alert.ended_at),
        error=storable(alert.error),
        run_id=alert.run_id,
        epoch=alert.epoch,
        hook=alert.hook,
        was=was,
    )


async def unserved_hooks(tx: Tx, known: Sequence[str], before: datetime) -> list[str]:
    """Hooks beside the known ones to which nothing is owed that came due after `before`."""
    owed = await tx.rows(LAST_DUE_ALERTS)
    return sorted(hook for hook, due_at in owed if hook not in known and due_at <= to_micros(before))


async def give_up_alerts(tx: Tx, hooks: Sequence[str], before: datetime, now: datetime, error: str) -> dict[str, int]:
    said = {"before": to_micros(before), "now": to_micros(now), "error": error}
    given_up = {hook: await tx.run(GIVE_UP_ALERTS, hook=hook, **said) for hook in hooks}
    return {hook: count for hook, count in given_up.items() if count}


async def find_alerts(tx: Tx, query: AlertQuery) -> Page[Alert]:
    where = Where()
    if query.run_id is not None:
        where.add("run_id = :run_id", run_id=query.run_id)
    if query.state is not None:
        where.add("state = :state", state=query.state.value)
    source = "FROM ksana_alerts"
    total = await count(tx, source, where)
    rows = await page(tx, _ALERT, source, where, "run_id DESC, epoch DESC, hook", query)
    return Page([alert_from_row(row) for row in rows], total)


def alert_to_row(alert: Alert) -> tuple[Any, ...]:
    return (
        alert.run_id,
        alert.epoch,
        alert.hook,
        alert.body,
        to_micros(alert.created_at),
        micros_or_none(alert.due_at),
        alert.attempts,
        alert.state.value,
        micros_or_none(alert.ended_at),
        storable(alert.error),
    )


def alert_from_row(row: Row) -> Alert:
    run_id, epoch, hook, body, created_at, due_at, attempts, state, ended_at, error = row
    return Alert(
        run_id=run_id,
        epoch=epoch,
        hook=hook,
        body=bytes(body),
        created_at=from_micros(created_at),
        due_at=instant_or_none(due_at),
        attempts=attempts,
        state=AlertState(state),
        ended_at=instant_or_none(ended_at),
        error=error,
    )
