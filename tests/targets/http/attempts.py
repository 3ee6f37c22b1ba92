"""Attempts and targets for the tests of the HTTP target."""

from datetime import UTC, datetime, timedelta
from typing import Any

from ksana.domain.outcomes import AttemptContext, Exchange, Outcome
from ksana.targets.http import HttpTarget, Limits, TargetPolicy

PLANNED_AT = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
NOW = datetime(2026, 3, 1, 8, 0, 2, 500_000, tzinfo=UTC)
TRACE = "0af7651916cd43dd8448eb211c80319c"
OPEN = TargetPolicy.of(allow_loopback=True, allow_private=True)
CLOSED = TargetPolicy.of(allow_loopback=False, allow_private=False)


def attempt(**changed: Any) -> AttemptContext:
    values: dict[str, Any] = {
        "run_id": 42,
        "job_id": 7,
        "job_ref": "job-7",
        "job_name": 'notify "order"',
        "planned_at": PLANNED_AT,
        "triggered_at": NOW,
        "attempt": 2,
        "fence": 3,
        "trace_id": TRACE,
        "timeout": timedelta(seconds=20),
        "connect_timeout": timedelta(seconds=10),
        "callback_url": "http://ksana.test/api/v1/callbacks/tok",
        "callback_token": "tok",
    }
    return AttemptContext(**(values | changed))


def http_target(**changed: Any) -> HttpTarget:
    values: dict[str, Any] = {"policy": OPEN, "now": lambda: NOW, "limits": Limits()}
    return HttpTarget(**(values | changed))


def exchange_of(outcome: Outcome) -> Exchange:
    assert outcome.exchange is not None, outcome
    return outcome.exchange
