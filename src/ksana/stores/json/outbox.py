"""The outbox of alerts: written with the move they tell of, leased by whoever delivers them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from ksana.domain.alerts import Alert, AlertQuery, AlertState
from ksana.domain.moves import storable
from ksana.domain.queries import Page
from ksana.stores.json.tables import AlertKey, Tables
from ksana.stores.json.tx import Tx

_replace = msgspec.structs.replace


def keep_alerts(tx: Tx, alerts: Iterable[Alert]) -> None:
    """Put alerts of moves that were applied into the outbox. One that is there was put there by the same move."""
    for alert in alerts:
        if key_of(alert) not in tx.tables.alerts.rows:
            tx.put(tx.tables.alerts, key_of(alert), alert)


def key_of(alert: Alert) -> AlertKey:
    return alert.run_id, alert.epoch, alert.hook


def lease_alerts(tx: Tx, hooks: Sequence[str], now: datetime, until: datetime, limit: int) -> list[Alert]:
    alerts = tx.tables.alerts
    due: list[tuple[datetime, AlertKey]] = []
    for hook in dict.fromkeys(hooks):
        waiting = alerts.due[hook]
        due += waiting[: min(limit, waiting.through(now))]
    leased = [alerts.rows[key] for _, key in sorted(due)[:limit]]
    leased = [_replace(alert, due_at=until, attempts=alert.attempts + 1) for alert in leased]
    for alert in leased:
        tx.put(alerts, key_of(alert), alert)
    return leased


def settle_alerts(tx: Tx, alerts: Sequence[Alert]) -> None:
    for alert in alerts:
        stored = tx.tables.alerts.get(key_of(alert))
        if stored is None or stored.attempts != alert.attempts or stored.state is not AlertState.PENDING:
            continue
        settled = _replace(
            stored, due_at=alert.due_at, state=alert.state, ended_at=alert.ended_at, error=storable(alert.error)
        )
        tx.put(tx.tables.alerts, key_of(alert), settled)


def unserved_hooks(tables: Tables, known: Sequence[str], before: datetime) -> list[str]:
    """Hooks beside the known ones to which nothing is owed that came due after `before`."""
    due = tables.alerts.due
    return sorted(hook for hook in due.groups() if hook not in known and due[hook][-1][0] <= before)


def give_up_alerts(tx: Tx, hooks: Sequence[str], before: datetime, now: datetime, error: str) -> dict[str, int]:
    given_up: dict[str, int] = {}
    alerts = tx.tables.alerts
    for hook in hooks:
        owed = alerts.due[hook]
        for _, key in owed[: owed.through(before)]:
            given = _replace(alerts.rows[key], due_at=None, state=AlertState.FAILED, ended_at=now, error=error)
            tx.put(alerts, key, given)
            given_up[hook] = given_up.get(hook, 0) + 1
    return given_up


def find_alerts(tables: Tables, query: AlertQuery) -> Page[Alert]:
    found = [
        alert
        for alert in tables.alerts.rows.values()
        if query.run_id in (None, alert.run_id) and query.state in (None, alert.state)
    ]
    found.sort(key=lambda alert: (-alert.run_id, -alert.epoch, alert.hook))
    return Page(found[query.offset : query.offset + query.limit], len(found))
