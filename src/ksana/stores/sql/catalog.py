"""Decoded jobs kept at hand, so that firing and claiming do not decode the same definition again and again.

An entry is good as long as its version is no older than the one asked for: versions only rise, and a change of a job
raises the version its resting runs carry in the same commit.
"""

from __future__ import annotations

from collections.abc import Iterable

from ksana.domain.jobs import Job
from ksana.stores.sql.job_rows import job_from_row
from ksana.stores.sql.statements import JOBS_BY_ID
from ksana.stores.sql.tx import Tx

_CAPACITY = 20_000


class Catalog:
    """A bounded memory of jobs by id. Their cursors are not to be trusted: a cursor moves without a new version."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}

    async def jobs(self, tx: Tx, wanted: Iterable[tuple[int, int]]) -> dict[int, Job]:
        """The jobs for (id, version) pairs, each at that version or a newer one."""
        found: dict[int, Job] = {}
        missing: set[int] = set()
        for job_id, version in wanted:
            job = self._jobs.get(job_id)
            if job is None or job.version < version:
                missing.add(job_id)
            else:
                found[job_id] = job
        if missing:
            for row in await tx.rows(JOBS_BY_ID, ids=list(missing)):
                job = job_from_row(row)
                found[job.id] = job
                self._keep(job)
        return found

    def known(self, wanted: Iterable[tuple[int, int]]) -> dict[int, Job] | None:
        """The same, as far as no more than memory is needed; None if one of them is not at hand."""
        found: dict[int, Job] = {}
        for job_id, version in wanted:
            job = self._jobs.get(job_id)
            if job is None or job.version < version:
                return None
            found[job_id] = job
        return found

    def forget(self) -> None:
        """Start anew: what was read may have been undone."""
        self._jobs.clear()

    def _keep(self, job: Job) -> None:
        if len(self._jobs) >= _CAPACITY:
            # Dicts keep insertion order: the longest-kept tenth goes. A job still in use is simply read again.
            for job_id in list(self._jobs)[: _CAPACITY // 10]:
                self._jobs.pop(job_id, None)
        self._jobs[job.id] = job
