"""Finding what a path names. This surface finds only what it made."""

from __future__ import annotations

import re
from typing import Any, Final

from ksana.api.chains.failures import ChainNotFound, RunNotFound
from ksana.api.chains.run_ids import number_of
from ksana.api.kit import Call
from ksana.api.services import Services
from ksana.domain.jobs import Job
from ksana.domain.plans import CHAIN
from ksana.domain.runs import Run

SURFACE: Final = "chains"
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,17}")


async def find_chain(call: Call[Any, Any]) -> Job:
    """The chain of the path."""
    services: Services = call.services
    chain_id = call.text("chainId")
    found = await services.engine.store.get_jobs([int(chain_id)]) if _NUMBER.fullmatch(chain_id) else []
    job = found[0] if found else None
    if job is None or job.deleted_at is not None or job.surface != SURFACE:
        raise ChainNotFound(chain_id)
    return job


async def find_run(call: Call[Any, Any]) -> Run:
    """The run of the path; it can be found even if its chain is deleted."""
    services: Services = call.services
    store, run_id = services.engine.store, call.text("id")
    number = number_of(await store.identity(), run_id)
    found = await store.get_runs([number]) if number is not None else []
    run = found[0] if found else None
    if run is None or run.surface != SURFACE or run.kind != CHAIN or run.job_id is None:
        raise RunNotFound(run_id)
    return run
