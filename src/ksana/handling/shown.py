"""An item as handlers are given it: the same value that a client pulls."""

from __future__ import annotations

from typing import Any, Final, Literal

from ksana.client.items import Item
from ksana.domain import items
from ksana.domain.policies import Priority
from ksana.domain.runs import Run

_WORDS: Final[dict[Priority, Literal["low", "medium", "high"]]] = {
    Priority.LOW: "low",
    Priority.NORMAL: "medium",
    Priority.HIGH: "high",
}


def shown(run: Run, item: items.Item, progress: Any) -> Item:
    """A run of the queue that a worker holds, for the function that sees to it."""
    extras = item.extras
    return Item(
        job_id=f"job_{run.id}",
        queue=items.shown_queue(run.queue),
        type=run.step,
        object_type=extras.get("object_type"),
        object_id=extras.get("object_id"),
        action=extras.get("action"),
        payload=item.payload,
        run_at=run.due_at,
        priority=_WORDS[run.priority],
        attempt=run.failures,
        max_attempts=item.max_attempts,
        idempotency_key=extras.get("idempotency_key"),
        group_key=items.key_of_subject(run.subject),
        status="running",
        last_error=run.error or None,
        worker_id=run.holder,
        lease_until=run.deadline_at,
        lease_token=items.lease_token(run),
        progress=progress,
        created_at=run.created_at,
        started_at=run.started_at,
    )
