"""The entries that changes of jobs and runs leave in the audit. Only what somebody asked for leaves one; what happens
by itself is in the history of the runs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ksana.domain.errors import StoreUnavailable
from ksana.domain.jobs import Job
from ksana.domain.nodes import NodeInfo
from ksana.domain.ports import Clock, Store
from ksana.domain.runs import Run
from ksana.engine.acting import current_actor
from ksana.engine.auditing import Actor, Auditor

JOB: Final = "job"
RUN: Final = "run"
BACKFILL: Final = "backfill"
NODE: Final = "node"

log = logging.getLogger(__name__)


class Recorder:
    """Keeps entries of what was done. The change is made by then, so a store that goes away just now costs the entry
    and not the change; the log then has it."""

    def __init__(self, store: Store, clock: Clock, auditor: Auditor) -> None:
        self._store = store
        self._clock = clock
        self._auditor = auditor

    async def jobs(self, action: str, changes: Sequence[tuple[Job | None, Job | None]]) -> None:
        """Jobs were made, changed or deleted: each as it was and as it is."""
        if (actor := current_actor()) is None:
            return
        told = []
        for before, after in changes:
            job = after or before
            assert job is not None
            told.append(_Told(action, JOB, job.id, before, after))
        await self._keep(actor, told)

    async def run(self, action: str, before: Run | None, after: Run, reason: str = "") -> None:
        """A run was made or moved."""
        await self.runs(action, [(before, after)], reason)

    async def runs(self, action: str, changes: Sequence[tuple[Run | None, Run]], reason: str = "") -> None:
        """Runs were made or moved: each as it was, if that is known, and as it is."""
        if (actor := current_actor()) is None or not changes:
            return
        if reason:
            actor = msgspec.structs.replace(actor, reason=reason)
        told = [
            _Told(action, RUN, after.id, None if before is None else _shown(before), _shown(after))
            for before, after in changes
        ]
        await self._keep(actor, told)

    async def node(self, action: str, before: NodeInfo, after: NodeInfo) -> None:
        """A node was told something."""
        if (actor := current_actor()) is not None:
            await self._keep(actor, [_Told(action, NODE, after.id, before, after)])

    async def backfill(self, job: Job, runs: Sequence[Run]) -> None:
        """Slots of a job were filled in."""
        if (actor := current_actor()) is None or not runs:
            return
        slots = [run.planned_at for run in runs]
        after = {"count": len(runs), "since": min(slots), "until": max(slots), "first_run_id": runs[0].id}
        await self._keep(actor, [_Told("job.backfill", BACKFILL, job.id, None, after)])

    async def _keep(self, actor: Actor, told: Sequence[_Told]) -> None:
        now = self._clock.now()
        try:
            # Their numbers come from the store, too.
            entries = [
                await self._auditor.entry(
                    actor, one.action, one.subject, str(one.subject_id), now, before=one.before, after=one.after
                )
                for one in told
            ]
            await self._store.add_audit(entries)
        except StoreUnavailable as error:
            for one in told:
                log.error(
                    "%s of %s %d by %s is done, but not in the audit: %s",
                    one.action,
                    one.subject,
                    one.subject_id,
                    actor.name,
                    error.message,
                )


class _Told(NamedTuple):
    """A change that is to be entered."""

    action: str
    subject: str
    subject_id: int
    before: Any
    after: Any


def _shown(run: Run) -> dict[str, Any]:
    """What of a run tells where it stands."""
    told = {"state": run.state, "reason": run.reason, "attempt": run.attempt, "error": run.error, "job_id": run.job_id}
    return told if run.parent_id is None else {**told, "parent_id": run.parent_id, "step": run.step}
