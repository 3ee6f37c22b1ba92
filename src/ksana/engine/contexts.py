"""What every attempt carries: the same ids and planned instant over all attempts of a run, and a fence that rises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ksana.domain.jobs import Job
from ksana.domain.outcomes import AttemptContext
from ksana.domain.references import Scope
from ksana.domain.runs import Run


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
        given = None if run.input is None else msgspec.json.decode(run.input)
        # Every attempt has one of these, and most have nothing to say beyond this: by their places, values cost half.
        common = (
            run.id,
            run.job_id,
            job.shown_id,
            job.name,
            run.slot_at or run.created_at,
            run.created_at,
            run.attempt,
            run.epoch,
            f"{self._trace}{run.id:016x}",
            job.timeouts.total,
            job.timeouts.connect,
            f"{self._callback_base}/{token}" if token else "",
            token,
            given,
        )
        if scope is None:
            if checkpoint is None and keep is None:
                return AttemptContext(*common)
            return AttemptContext(*common, checkpoint=checkpoint, keep=keep)
        return AttemptContext(
            *common,
            step=run.step or "",
            artifacts=scope.artifacts,
            params=scope.params,
            item=scope.item,
            index=scope.index,
            checkpoint=checkpoint,
            keep=keep,
        )
