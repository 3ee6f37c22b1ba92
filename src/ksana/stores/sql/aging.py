"""What is forgotten by its age alone: the oldest first and so many at a time, so that nobody waits for it."""

from __future__ import annotations

_OLD = {
    "old_alerts": ("ksana_alerts", "ended_at", ""),
    "old_gaps": ("ksana_gaps", "recorded_at", ""),
    # What keeps an item from being enqueued twice is never forgotten.
    "old_answers": ("ksana_idempotency", "created_at", "scope <> 'queue' AND "),
    "old_entries": ("ksana_audit", "at", ""),
    "old_buckets": ("ksana_buckets", "busy_until", ""),
}


def old_rows(picked: str) -> dict[str, str]:
    """The words by which a DELETE picks rows, each table by an index that leads by age. `picked` is how a database puts
    it: not every one can bound a DELETE, but those that cannot know where a row lies."""
    return {
        word: picked.format(table=table, oldest=f"{only}{age} < :before ORDER BY {age} LIMIT :limit")
        for word, (table, age, only) in _OLD.items()
    }
