"""Decoded jobs kept at hand, so that firing and claiming neither fetch nor decode the same definition again and again.

An entry is good as long as its version is no older than the one asked for: versions only rise.
"""

from __future__ import annotations

from collections.abc import Iterable

from ksana.domain.claims import Claimed
from ksana.domain.jobs import Job
from ksana.domain.runs import Run
from ksana.stores.redis.job_values import job_from_value
from ksana.stores.redis.link import Link

_CAPACITY = 20_000


class Catalog:
    """A bounded memory of jobs by id. Their cursors are not to be trusted: a cursor moves without a new version."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._jobs: dict[int, Job] = {}

    async def jobs(self, wanted: Iterable[tuple[int, int]]) -> dict[int, Job]:
        """The jobs for (id, version) pairs, each at that version or a newer one."""
        found: dict[int, Job] = {}
        missing: list[int] = []
        for job_id, version in wanted:
            job = self._jobs.get(job_id)
            if job is None or job.version < version:
                missing.append(job_id)
            else:
                found[job_id] = job
        if missing:
            found.update(await self.read(missing))
        return found

    async def read(self, job_ids: Iterable[int]) -> dict[int, Job]:
        """The jobs as they are now."""
        ids = list(dict.fromkeys(job_ids))
        if not ids:
            return {}
        values = await self._link.ask("MGET", *[self._link.key(f"job:{job_id}") for job_id in ids])
        found = {job_id: job_from_value(value) for job_id, value in zip(ids, values, strict=True) if value is not None}
        for job in found.values():
            self._keep(job)
        return found

    async def with_jobs(self, runs: list[Run]) -> list[Claimed]:
        """Each run with the job it belongs to, as the job is now."""
        jobs = await self.read(run.job_id for run in runs if run.job_id is not None)
        return [Claimed(run, None if run.job_id is None else jobs.get(run.job_id)) for run in runs]

    def forget(self) -> None:
        """Start anew: the store may be another one."""
        self._jobs.clear()

    def _keep(self, job: Job) -> None:
        if len(self._jobs) >= _CAPACITY:
            # Dicts keep insertion order: the longest-kept tenth goes. A job still in use is simply read again.
            for job_id in list(self._jobs)[: _CAPACITY // 10]:
                self._jobs.pop(job_id, None)
        self._jobs[job.id] = job
