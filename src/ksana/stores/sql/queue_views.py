"""The read-only view `jobs`: items of the queue, under the name and columns their document gives."""

from __future__ import annotations

from ksana.stores.sql.views import Spelling, select


def queue_views(spelling: Spelling) -> dict[str, str]:
    """The words of the migration that creates the view."""
    return {"view_jobs": _jobs(spelling)}


def _jobs(spelling: Spelling) -> str:
    document = spelling.document.format("r.input")

    def value(path: str) -> str:
        return spelling.value.format(document, f"$.{path}")

    columns = {
        "job_id": spelling.joined.format("'job_'", "r.id"),
        "object_type": value("extras.object_type"),
        "object_id": value("extras.object_id"),
        "action": value("extras.action"),
        "run_at": spelling.instant.format("r.due_at"),
        "priority": "CASE r.priority WHEN 3 THEN 'high' WHEN 1 THEN 'low' ELSE 'medium' END",
        "attempt": "r.failures",
        # What an item does not say is the default.
        "max_attempts": f"COALESCE({spelling.number.format(value('max_attempts'))}, 3)",
        "idempotency_key": value("extras.idempotency_key"),
        "status": (
            "CASE WHEN r.state IN ('WAITING', 'SCHEDULED', 'RETRYING') THEN 'queued'"
            " WHEN r.state IN ('RUNNING', 'CALLBACK_PENDING', 'STOPPING') THEN 'running'"
            " WHEN r.state = 'SUCCESS' THEN 'succeeded' WHEN r.state = 'DEAD_LETTER' THEN 'dead_letter'"
            " ELSE 'failed' END"
        ),
        "last_error": "NULLIF(r.error, '')",
        # A queue is stored with a mark in front of its name.
        "queue": "substr(r.queue, 2)",
        "worker_id": "r.holder",
        "created_at": spelling.instant.format("r.created_at"),
    }
    return select(columns, "ksana_runs r WHERE r.kind = 'item'")
