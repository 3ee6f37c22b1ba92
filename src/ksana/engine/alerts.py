"""Alerts: the alarm says which moves somebody is to hear of, the herald sees to it that they do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from ksana.domain.alerts import Alert, AlertState, alerts_of, settled
from ksana.domain.jobs import Job
from ksana.domain.moves import Move
from ksana.domain.ports import Clock, Hook, Store
from ksana.engine.loops import Loop, StoreHealth, ended

log = logging.getLogger(__name__)

_BATCH = 20
_LEASE = timedelta(minutes=1)
# Well within the lease, so that nobody else takes an alert up while it is being delivered.
_LONGEST = timedelta(seconds=30)
# Many leases long, so that a hook that another node has is never taken for one that nobody has.
_UNSERVED = timedelta(minutes=10)


class Alarm:
    """Makes the alerts that are stored together with moves; none while there is nobody to hear them."""

    def __init__(self, hooks: Sequence[str]) -> None:
        self.hooks = hooks
        self._watching_since: datetime | None = None

    def of(self, moves: Sequence[tuple[Move, Job | None]], now: datetime) -> Sequence[Alert]:
        return alerts_of(moves, self.hooks, now) if self.hooks else ()

    async def give_up_unserved(self, store: Store, now: datetime) -> None:
        """Give up what is owed to hooks that are no longer in the settings of any node. Asked now and then."""
        # After a standstill everything is overdue: whoever has the hook is given the time to come back as well.
        self._watching_since = self._watching_since or now
        before = now - _UNSERVED
        if self._watching_since > before:
            return
        error = "no node has this hook in its settings any more"
        for hook, count in (await store.give_up_alerts(self.hooks, before, now, error)).items():
            log.error("%d alerts for %s are given up: %s", count, hook, error)


class Herald(Loop):
    """Deliver what is due, one lease at a time. Any number of nodes may; each alert is delivered by one of them."""

    name = "herald"

    def __init__(self, store: Store, clock: Clock, health: StoreHealth, hooks: Sequence[Hook], poll: timedelta) -> None:
        super().__init__(clock, health, poll)
        self._store = store
        self._hooks = {hook.name: hook for hook in hooks}

    async def run_once(self) -> datetime | None:
        while self._hooks and not self._stopping:
            now = self._clock.now()
            leased = await self._store.lease_alerts(list(self._hooks), now, now + _LEASE, _BATCH)
            if leased:
                await self._deliver(leased)
            if len(leased) < _BATCH:
                break
        return None

    async def _deliver(self, alerts: Sequence[Alert]) -> None:
        under_way = [asyncio.create_task(self._tell(alert)) for alert in alerts]
        try:
            await ended(self._clock, under_way, _LONGEST)
        finally:
            for task in under_way:
                task.cancel()
        now = self._clock.now()
        results = [settled(alert, _problem(task), now) for alert, task in zip(alerts, under_way, strict=True)]
        for alert in results:
            if alert.state is AlertState.FAILED:
                log.error(
                    "%s was not delivered to %s in %d attempts and is given up: %s",
                    alert.id,
                    alert.hook,
                    alert.attempts,
                    alert.error,
                )
        await self._store.settle_alerts(results)

    async def _tell(self, alert: Alert) -> str:
        try:
            return await self._hooks[alert.hook].deliver(alert)
        except Exception as error:
            log.exception("hook %s broke its promise not to raise", alert.hook)
            return f"{type(error).__name__}: {error}"


def _problem(task: asyncio.Future[str]) -> str:
    return task.result() if task.done() and not task.cancelled() else "the hook did not answer in time"
