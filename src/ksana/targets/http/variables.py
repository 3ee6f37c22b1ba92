"""What every attempt tells its target about itself: as headers, and as the values of template markers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache

from ksana.domain.markers import Scope
from ksana.domain.outcomes import AttemptContext, traceparent

# The last three are the names the tasks surface documents.
ATTEMPT_HEADERS = (
    "X-Ksana-Run-Id",
    "X-Ksana-Job-Id",
    "X-Ksana-Scheduled-At",
    "X-Ksana-Attempt",
    "X-Ksana-Fence",
    "Idempotency-Key",
    "traceparent",
    "X-Run-Id",
    "X-Task-Id",
    "X-Trace-Id",
)
CALLBACK_HEADERS = ("X-Callback-Url", "X-Callback-Token")
# A target de-duplicates by run and refuses stale deliveries by fence; a job's own values would break both.
PROTECTED_HEADERS = frozenset({"x-ksana-run-id", "x-ksana-fence", "x-run-id"})


def attempt_headers(context: AttemptContext) -> dict[str, str]:
    """The headers named in `ATTEMPT_HEADERS`, in their order."""
    run_id, ref, trace_id, fence = str(context.run_id), context.job_ref, context.trace_id, context.fence
    # Written out: this is done for every attempt, and a dictionary made in one go costs least.
    return {
        "X-Ksana-Run-Id": run_id,
        "X-Ksana-Job-Id": ref,
        "X-Ksana-Scheduled-At": instant(context.planned_at),
        "X-Ksana-Attempt": str(context.attempt),
        "X-Ksana-Fence": str(fence),
        "Idempotency-Key": run_id,
        "traceparent": traceparent(trace_id, fence),
        "X-Run-Id": run_id,
        "X-Task-Id": ref,
        "X-Trace-Id": trace_id,
    }


class Variables:
    """The values of the template markers, each made when it is asked for."""

    __slots__ = ("_context",)

    def __init__(self, context: AttemptContext) -> None:
        self._context = context

    def __getitem__(self, name: str) -> str:
        return VARIABLES[name](self._context)

    @property
    def scope(self) -> Scope | None:
        """What the markers of a chain stand for; None if this is no step of one."""
        context = self._context
        if not context.step:
            return None
        return Scope(context.artifacts, context.params, True, context.item, context.index)


@lru_cache(maxsize=1024)
def instant(at: datetime) -> str:
    """RFC 3339 in UTC, with a fraction only where there is one."""
    return at.isoformat().replace("+00:00", "Z")


VARIABLES: dict[str, Callable[[AttemptContext], str]] = {
    "run_id": lambda context: str(context.run_id),
    "job_id": lambda context: context.job_ref,
    "job_name": lambda context: context.job_name,
    "task_id": lambda context: context.job_ref,
    "scheduled_at": lambda context: instant(context.planned_at),
    "scheduled_time": lambda context: instant(context.planned_at),
    "triggered_at": lambda context: instant(context.triggered_at),
    "attempt": lambda context: str(context.attempt),
    "fence": lambda context: str(context.fence),
    "trace_id": lambda context: context.trace_id,
    "callback_url": lambda context: context.callback_url,
    "callback_token": lambda context: context.callback_token,
    "idempotency_key": lambda context: str(context.run_id),
}
