"""Alerts: who was told of which failed run, who is still to be told, and whom nobody could reach."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ksana.api.kit import Call, Page, PageQuery, Route, Scope, Timestamp, page_of, timestamp
from ksana.domain.alerts import Alert, AlertQuery, AlertState


class AlertsQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which alerts, newest run first."""

    run_id: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] | None = None
    state: AlertState | None = None


class AlertView(msgspec.Struct, frozen=True, kw_only=True):
    """Word of a failed run for one hook; `payload` is what it is told. `id` is the same over all deliveries."""

    id: str
    run_id: int
    hook: str
    state: AlertState
    attempts: int
    created_at: Timestamp
    due_at: Timestamp | None
    ended_at: Timestamp | None
    error: str
    payload: Any


async def list_alerts(call: Call[None, AlertsQuery]) -> Page[AlertView]:
    query = call.query
    wanted = AlertQuery(run_id=query.run_id, state=query.state, offset=query.offset, limit=query.page_size)
    found = await call.services.engine.store.find_alerts(wanted)
    return page_of([_show(alert) for alert in found.items], found.total, query)


def _show(alert: Alert) -> AlertView:
    return AlertView(
        id=alert.id,
        run_id=alert.run_id,
        hook=alert.hook,
        state=alert.state,
        attempts=alert.attempts,
        created_at=timestamp(alert.created_at),
        due_at=timestamp(alert.due_at),
        ended_at=timestamp(alert.ended_at),
        error=alert.error,
        payload=msgspec.Raw(alert.body),
    )


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "GET",
            "/api/v2/alerts",
            list_alerts,
            Scope.RUN_READ,
            query=AlertsQuery,
            response=Page[AlertView],
            summary="List alerts of failed runs",
        )
    ]
