"""What every attempt carries: the same ids and planned instant over all attempts of a run, and a fence that rises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ksana.domain.jobs import Job
from ksana.domain.outcomes import AttemptContext
from ksana.domain.references import Scope
from ksana.domain.runs import Run

_NO_SCOPE = Scope({}, {})


class Contexts:
    """Makes the context of an attempt. The trace id is the store's identity and the run's id: no need to store it."""

    def __init__(self, identity: int, callback_base: str) -> None:
        self._trace = f"{identity:016x}"
        self._callback_base = callback_base.rstrip("/")

    def trace_id(self, run_id: int) -> str:
        return f"{self._trace}{run_id:016x}"

    def of(
        self,
        run: Run,
        job: Job,
        scope: Scope | None = None,
        checkpoint: Any = None,
        keep: Callable[[bytes], None] | None = None,
    ) -> AttemptContext:
        """The context of an attempt; a step of a chain has a scope, and a checkpoint if it saved one before."""
        token = run.callback_token or ""
        step, scope = ("", _NO_SCOPE) if scope is None else (run.step or "", scope)
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
            step=step,
            artifacts=scope.artifacts,
            params=scope.params,
            item=scope.item,
            index=scope.index,
            checkpoint=checkpoint,
            keep=keep,
        )
