"""The keeper: forgets what is old, sums up minutes, looks after what nobody else would notice. Now and then is enough,
and it may take long, so it is a duty of its own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from ksana.domain.ports import Clock, Store
from ksana.domain.retention import Retention
from ksana.engine.alerts import Alarm
from ksana.engine.loops import Loop, StoreHealth
from ksana.engine.runner import Runner

_CHUNK = 500
_EVERY = timedelta(minutes=1)
_FOREVER = datetime(1970, 1, 1, tzinfo=UTC)
# A result may be committed a little after the minute it ended in; what is summed up must be complete.
_SETTLED = timedelta(minutes=2)


class Upkeep(msgspec.Struct, frozen=True):
    """How long finished runs are kept (None: for ever), and how many of each job at least."""

    retention: timedelta | None = timedelta(days=30)
    keep_last: int = 10


class Keeper(Loop):
    """Forget, sum up, tidy."""

    name = "keeper"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        runner: Runner,
        health: StoreHealth,
        *,
        upkeep: Upkeep,
        poll: timedelta,
        alarm: Alarm,
    ) -> None:
        super().__init__(clock, health, poll)
        self._store = store
        self._runner = runner
        self._upkeep = upkeep
        self._alarm = alarm
        self._next_at: datetime | None = None

    async def run_once(self) -> datetime | None:
        now = self._clock.now()
        if self._next_at is None or now >= self._next_at:
            self._next_at = now + _EVERY
            # A store may finish a claim long after it failed to answer it.
            self._runner.doubt()
            await self._tidy(now)
        return None

    async def _tidy(self, now: datetime) -> None:
        before = _FOREVER if self._upkeep.retention is None else now - self._upkeep.retention
        retention = Retention(now, before, self._upkeep.keep_last, _CHUNK)
        while await self._store.prune(retention) == _CHUNK and not self._stopping:
            pass
        while await self._store.roll_up(now - _SETTLED) > 0 and not self._stopping:
            pass
        await self._alarm.give_up_unserved(self._store, now)
        if await self._store.admit_waiting():
            self._runner.wake_for_work()
