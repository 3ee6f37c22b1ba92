"""The outbox of alerts: written with the move they tell of, leased by whoever delivers them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ksana.domain.alerts import Alert, AlertQuery
from ksana.domain.queries import Page
from ksana.domain.times import to_micros
from ksana.stores.redis.alert_values import alert_args, alert_from_value
from ksana.stores.redis.codes import ALERTS
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import FIND_ALERTS, GIVE_UP_ALERTS, LEASE_ALERTS, SETTLE_ALERTS
from ksana.stores.redis.values import fitting


async def lease_alerts(link: Link, hooks: Sequence[str], now: datetime, until: datetime, limit: int) -> list[Alert]:
    asked = dict.fromkeys(hooks)
    return _alerts(await link.run(LEASE_ALERTS, to_micros(now), to_micros(until), limit, len(asked), *asked))


def _alerts(reply: list[Any]) -> list[Alert]:
    return [alert_from_value(key, value) for key, value in zip(reply[::2], reply[1::2], strict=True)]


async def settle_alerts(link: Link, alerts: Sequence[Alert]) -> None:
    if not alerts:
        return
    with fitting():
        args: list[Any] = [len(alerts)]
        for alert in alerts:
            args += alert_args(alert)
    await link.run(SETTLE_ALERTS, *args)


async def give_up_alerts(
    link: Link, known: Sequence[str], before: datetime, now: datetime, error: str
) -> dict[str, int]:
    args = (to_micros(before), to_micros(now), error, len(known), *known)
    reply = await link.run(GIVE_UP_ALERTS, *args)
    return {hook.decode(): count for hook, count in zip(reply[::2], reply[1::2], strict=True)}


async def find_alerts(link: Link, query: AlertQuery) -> Page[Alert]:
    states = list(ALERTS.values()) if query.state is None else [ALERTS[query.state]]
    run = "" if query.run_id is None else query.run_id
    total, reply = await link.run(FIND_ALERTS, run, query.offset, query.limit, len(states), *states)
    return Page(_alerts(reply), total)
