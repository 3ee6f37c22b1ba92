"""The resumer: pauses that were to end at an instant end at it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from ksana.domain.errors import NotFound, VersionConflict
from ksana.domain.ports import Clock, Store
from ksana.engine.acting import acting
from ksana.engine.auditing import SCHEDULER, Actor
from ksana.engine.job_verbs import JobVerbs
from ksana.engine.loops import Loop, StoreHealth

_BATCH: Final = 100
# The node that was told of a pause wakes for its end. Others need to know only in case it is gone by then.
_POLL: Final = timedelta(seconds=5)
_OVER: Final = Actor(SCHEDULER, "the pause was until now")


class Resumer(Loop):
    """End pauses."""

    name = "resumer"

    def __init__(self, store: Store, clock: Clock, jobs: JobVerbs, health: StoreHealth) -> None:
        super().__init__(clock, health, _POLL)
        self._store = store
        self._jobs = jobs

    async def run_once(self) -> datetime | None:
        pauses = await self._store.pauses(_BATCH)
        now = self._clock.now()
        for job_id, until in pauses:
            if until > now:
                return until
            await self._end(job_id)
        return now if len(pauses) == _BATCH else None

    async def _end(self, job_id: int) -> None:
        try:
            with acting(_OVER):
                await self._jobs.end_pause(job_id)
        except (NotFound, VersionConflict):
            # Somebody has deleted it meanwhile, or is at it; whoever looks next sees what came of it.
            pass
