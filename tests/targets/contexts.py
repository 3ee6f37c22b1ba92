"""Builds the attempts that target tests ask for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ksana.domain.outcomes import AttemptContext

_PLANNED_AT = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
# Passes while a test looks on, yet is not so short that nothing has begun.
TINY = timedelta(milliseconds=30)
AMPLE = timedelta(seconds=30)


def attempt_context(
    *, attempt: int = 1, fence: int = 1, timeout: timedelta = AMPLE, input: Any = None
) -> AttemptContext:
    return AttemptContext(
        run_id=7,
        job_id=3,
        job_ref="3",
        job_name="report",
        planned_at=_PLANNED_AT,
        triggered_at=_PLANNED_AT,
        attempt=attempt,
        fence=fence,
        trace_id="0af7651916cd43dd8448eb211c80319c",
        timeout=timeout,
        connect_timeout=timeout,
        input=input,
    )
