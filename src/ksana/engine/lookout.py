"""What the feed is not told: how much there is, and what other nodes do. The store is asked for it, a little at a time
and only while somebody listens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from ksana.domain.errors import StoreUnavailable
from ksana.domain.jobs import Job
from ksana.domain.ports import Clock, Store
from ksana.domain.queries import Counts, JobQuery, JobSort, QueueCounts, RunQuery
from ksana.domain.runs import Run
from ksana.domain.states import UNFINISHED
from ksana.engine.feed import REMEMBERED, Feed, Listener, Topic

log = logging.getLogger(__name__)

_EVERY: Final = timedelta(seconds=1)
_NEWEST: Final = 200
_UNDER_WAY: Final = 500
_JOBS: Final = 100
# How often those who listen have to look for themselves while there is more under way than is looked at here.
_HINT_EVERY: Final = timedelta(seconds=10)
_ALL_TOLD: Final = frozenset({Topic.RUN, Topic.JOB})


class Lookout:
    """Asks the store once a second while somebody listens."""

    def __init__(self, feed: Feed, store: Store, clock: Clock) -> None:
        self._feed = feed
        self._store = store
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self.node_id: int | None = None
        self._begin()

    def _begin(self) -> None:
        self._stats: Counts | None = None
        self._queues: dict[str, QueueCounts] = {}
        self._runs: dict[int, int] | None = None
        self._jobs_until: datetime | None = None
        self._looked_at: datetime | None = None
        self._hinted_at: datetime | None = None

    def watch(self, listener: Listener) -> None:
        """Keep watch for somebody who has just begun to listen: what they have not been told yet is told again."""
        if {Topic.STATS, Topic.QUEUE} & listener.topics:
            self._stats, self._queues = None, {}
        if self._task is None or self._task.done():
            # Whoever comes back in time is told what happened here, and expects the same of what others did meanwhile.
            if self._looked_at is None or self._clock.now() - self._looked_at > REMEMBERED:
                self._begin()
            self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _watch(self) -> None:
        while self._feed.is_heard:
            try:
                await self.run_once()
            except StoreUnavailable:
                # It is asked again in a moment; whoever works with it says that it is away.
                pass
            except Exception:
                log.exception("the lookout failed and goes on")
            await self._clock.sleep(_EVERY)

    async def run_once(self) -> None:
        """Look at what somebody wants to know."""
        now = self._clock.now()
        self._looked_at = now
        if self._feed.wants(Topic.STATS):
            await self._look_at_stats(now)
        if self._feed.wants(Topic.QUEUE):
            await self._look_at_queues(now)
        if not (self._feed.wants(Topic.RUN) or self._feed.wants(Topic.JOB)):
            return
        if await self._are_others(now):
            await self._look_at_runs(now)
            await self._look_at_jobs(now)
        else:
            self._runs = self._jobs_until = None

    async def _look_at_stats(self, now: datetime) -> None:
        counts = await self._store.counts(now)
        if counts != self._stats:
            self._stats = counts
            self._feed.say(Topic.STATS, "", counts, now)

    async def _look_at_queues(self, now: datetime) -> None:
        found = {one.queue: one for one in await self._store.queue_counts(now)}
        for name in self._queues.keys() - found.keys():
            self._feed.say(Topic.QUEUE, name, QueueCounts(queue=name), now)
        for name, counts in found.items():
            if self._queues.get(name) != counts:
                self._feed.say(Topic.QUEUE, name, counts, now)
        self._queues = found

    async def _are_others(self, now: datetime) -> bool:
        return any(node.id != self.node_id and node.lease_until > now for node in await self._store.nodes())

    async def _look_at_runs(self, now: datetime) -> None:
        """Tell of runs that stand elsewhere than at the last look. What this node did itself is told once more, which
        does no harm: the epoch says so."""
        newest = (await self._store.find_runs(RunQuery(limit=_NEWEST, counted=False))).items
        live = (await self._store.find_runs(RunQuery(states=UNFINISHED, limit=_UNDER_WAY, counted=False))).items
        found = {run.id: run for run in [*newest, *live]}
        known, self._runs = self._runs, {run.id: run.epoch for run in found.values()}
        if known is None:
            return
        fresh = [run for run in found.values() if known.get(run.id) != run.epoch]
        if newest and all(run.id not in known for run in newest) and len(newest) == _NEWEST:
            # There may be more than were looked at.
            self._feed.lose_all(_ALL_TOLD)
            return
        if len(live) == _UNDER_WAY:
            self._hint(now)
        gone = [run_id for run_id in known if run_id not in found][:_UNDER_WAY]
        ended = [run for run in await self._store.get_runs(gone) if known[run.id] != run.epoch] if gone else []
        await self._tell([*fresh, *ended], now)

    def _hint(self, now: datetime) -> None:
        """What moves behind those that are looked at is not seen: say so now and then."""
        if self._hinted_at is None or now - self._hinted_at >= _HINT_EVERY:
            self._hinted_at = now
            self._feed.lose_all({Topic.RUN})

    async def _tell(self, runs: list[Run], now: datetime) -> None:
        jobs = await self._named({run.job_id for run in runs if run.job_id is not None})
        for run in sorted(runs, key=lambda run: run.id):
            self._feed.say_run(run, None if run.job_id is None else jobs.get(run.job_id), now)

    async def _named(self, ids: Iterable[int]) -> dict[int, Job]:
        wanted = list(ids)
        return {job.id: job for job in await self._store.get_jobs(wanted)} if wanted else {}

    async def _look_at_jobs(self, now: datetime) -> None:
        query = JobQuery(sort=JobSort.UPDATED, descending=True, limit=_JOBS)
        newest = (await self._store.find_jobs(query)).items
        until, self._jobs_until = self._jobs_until, newest[0].updated_at if newest else now
        if until is None:
            return
        fresh = [job for job in newest if job.updated_at > until]
        if fresh and len(fresh) == _JOBS:
            self._feed.lose_all({Topic.JOB})
            return
        for job in reversed(fresh):
            self._feed.say(Topic.JOB, job.id, job, now)
