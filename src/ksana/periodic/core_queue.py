"""A queue that is Ksana itself: a job becomes a run of the core, with its retries, its history and its workers."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from ksana.domain.errors import AlreadyExists, NotFound
from ksana.domain.idempotency import IdempotencyClaim, IdempotencyRecord, IdempotencyReplay
from ksana.domain.jobs import JobSpec, TargetSpec
from ksana.domain.policies import Overlap, OverlapRule, Priority, Retry
from ksana.domain.queries import JobQuery
from ksana.domain.runs import Run
from ksana.engine.engine import Engine
from ksana.periodic.schedule import Job, JobPriority

SURFACE: Final = "periodic"

_SCOPE: Final = "surface:periodic"
_CREATED: Final = 201
_PRIORITIES: Final = {
    JobPriority.HIGH: Priority.HIGH,
    JobPriority.NORMAL: Priority.NORMAL,
    JobPriority.LOW: Priority.LOW,
}


class CoreQueue:
    """Jobs run as the function that is registered under their name. It finds the job in `run.input`, with the fields
    `id`, `payload`, `priority` and `metadata`. An id that was enqueued before is not enqueued again."""

    def __init__(self, engine: Engine, retry: Retry | None = None) -> None:
        self._engine = engine
        self._retry = retry or Retry()
        self._ids: dict[tuple[str, JobPriority], int] = {}

    async def enqueue(self, job: Job) -> None:
        input = msgspec.json.encode(
            {
                "id": job.id,
                "payload": msgspec.Raw(job.payload or b"null"),
                "priority": job.priority,
                "metadata": job.metadata,
            }
        )
        try:
            await self._trigger(job, input)
        except NotFound:
            # Somebody deleted it meanwhile.
            self._ids.pop((job.name, job.priority), None)
            await self._trigger(job, input)

    async def _trigger(self, job: Job, input: bytes) -> None:
        claim = IdempotencyClaim(_SCOPE, job.id, hashlib.sha256(job.id.encode()).digest())
        now = self._engine.clock.now()

        def record(run: Run) -> IdempotencyRecord:
            return claim.answered(_CREATED, str(run.id).encode(), now)

        try:
            await self._engine.runs.trigger(await self._job_id(job), input, record)
        except IdempotencyReplay:
            return

    async def _job_id(self, job: Job) -> int:
        """The job of the core that carries out what has this name and priority; made when first needed."""
        known = self._ids.get((job.name, job.priority))
        if known is None:
            known = self._ids[job.name, job.priority] = await self._find(job) or await self._create(job)
        return known

    async def _find(self, job: Job) -> int | None:
        found = await self._engine.store.find_jobs(JobQuery(surface=SURFACE, ref=_ref(job), limit=1))
        return found.items[0].id if found.items else None

    async def _create(self, job: Job) -> int:
        spec = JobSpec(
            name=job.name,
            ref=_ref(job),
            target=TargetSpec("python", {"function": job.name}),
            priority=_PRIORITIES[job.priority],
            retry=self._retry,
            overlap=Overlap(OverlapRule.PARALLEL),
        )
        try:
            return (await self._engine.jobs.create(SURFACE, spec)).id
        except AlreadyExists:
            # Another scheduler was quicker.
            found = await self._find(job)
            if found is None:
                raise
            return found


def _ref(job: Job) -> str:
    return f"{job.name}:{job.priority}"
