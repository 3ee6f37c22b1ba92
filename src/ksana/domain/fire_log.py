"""The fire log: what became of each planned instant, as one line for each run and each gap."""

from __future__ import annotations

from ksana.domain.fires import Gap
from ksana.domain.queries import FireRecord
from ksana.domain.runs import Run
from ksana.domain.states import State

_DECISIONS = {State.SKIPPED: "skipped", State.MISSED: "missed"}


def line_of_run(run: Run) -> FireRecord:
    """The line of a slot that has a run."""
    assert run.job_id is not None and run.slot_at is not None
    return FireRecord(
        job_id=run.job_id,
        from_at=run.slot_at,
        to_at=run.slot_at,
        count=1,
        decision=_DECISIONS.get(run.state, "fired"),
        reason=run.reason,
        run_id=run.id,
        recorded_at=run.created_at,
    )


def line_of_gap(gap: Gap) -> FireRecord:
    """The line of slots that have none."""
    return FireRecord(
        job_id=gap.job_id,
        from_at=gap.from_at,
        to_at=gap.to_at,
        count=gap.count,
        decision="left_out",
        reason=gap.reason,
        run_id=None,
        recorded_at=gap.recorded_at,
    )
