"""Finding what a path names. This surface finds only what it made."""

from __future__ import annotations

from typing import Any, Final

from ksana.api.kit import Call
from ksana.api.kit.errors import InvalidId
from ksana.api.services import Services
from ksana.domain.errors import NotFound
from ksana.domain.jobs import Job
from ksana.domain.runs import Run

SURFACE: Final = "tasks"


async def find_task(call: Call[Any, Any]) -> Job:
    """The task of the path."""
    services: Services = call.services
    task_id = _number(call)
    found = await services.engine.store.get_jobs([task_id])
    job = found[0] if found else None
    if job is None or job.deleted_at is not None or job.surface != SURFACE:
        raise NotFound(f"there is no task {task_id}")
    return job


async def find_run(call: Call[Any, Any]) -> Run:
    """The run of the path; it can be found even if its task is deleted."""
    services: Services = call.services
    run_id = _number(call)
    found = await services.engine.store.get_runs([run_id])
    run = found[0] if found else None
    if run is None or run.surface != SURFACE:
        raise NotFound(f"there is no run {run_id}")
    return run


def _number(call: Call[Any, Any]) -> int:
    found = call.number("id")
    if found == 0:
        raise InvalidId("id", "must be a whole number from 1")
    return found
