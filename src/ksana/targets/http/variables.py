"""What every attempt tells its target about itself: as headers, and as the values of template markers."""

from __future__ import annotations

from datetime import datetime

from ksana.domain.outcomes import AttemptContext

# In the order of `attempt_values`. The last three are the names the tasks surface documents.
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


def attempt_values(context: AttemptContext) -> tuple[str, ...]:
    """The values of `ATTEMPT_HEADERS`."""
    run_id = str(context.run_id)
    return (
        run_id,
        context.job_ref,
        instant(context.planned_at),
        str(context.attempt),
        str(context.fence),
        run_id,
        context.traceparent,
        run_id,
        context.job_ref,
        context.trace_id,
    )


def variables(context: AttemptContext) -> dict[str, str]:
    """The values of the template markers."""
    run_id, planned_at = str(context.run_id), instant(context.planned_at)
    return {
        "run_id": run_id,
        "job_id": context.job_ref,
        "job_name": context.job_name,
        "task_id": context.job_ref,
        "scheduled_at": planned_at,
        "scheduled_time": planned_at,
        "triggered_at": instant(context.triggered_at),
        "attempt": str(context.attempt),
        "fence": str(context.fence),
        "trace_id": context.trace_id,
        "callback_url": context.callback_url,
        "callback_token": context.callback_token,
        "idempotency_key": run_id,
    }


def instant(at: datetime) -> str:
    """RFC 3339 in UTC, with a fraction only where there is one."""
    return at.isoformat().replace("+00:00", "Z")
