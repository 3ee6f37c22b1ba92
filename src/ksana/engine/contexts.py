"""What every attempt carries: the same ids and planned instant over all attempts of a run, and a fence that rises."""

from __future__ import annotations

import msgspec

from ksana.domain.jobs import Job
from ksana.domain.outcomes import AttemptContext
from ksana.domain.runs import Run


class Contexts:
    """Makes the context of an attempt. The trace id is the store's identity and the run's id: no need to store it."""

    def __init__(self, identity: int, callback_base: str) -> None:
        self._trace = f"{identity:016x}"
        self._callback_base = callback_base.rstrip("/")

    def trace_id(self, run_id: int) -> str:
        return f"{self._trace}{run_id:016x}"

    def of(self, run: Run, job: Job) -> AttemptContext:
        token = run.callback_token or ""
        return AttemptContext(
            run_id=run.id,
            job_id=run.job_id,
            job_ref=job.shown_id,
            job_name=job.name,
            planned_at=run.slot_at or run.created_at,
            triggered_at=run.created_at,
            attempt=run.attempt,
            fence=run.epoch,
            trace_id=f"{self._trace}{run.id:016x}",
            timeout=job.timeouts.total,
            connect_timeout=job.timeouts.connect,
            callback_url=f"{self._callback_base}/{token}" if token else "",
            callback_token=token,
            input=None if run.input is None else msgspec.json.decode(run.input),
        )
