"""What is asked of objects and of the audit, by stores that look at what they hold one by one."""

from __future__ import annotations

from ksana.domain.audit import AuditEntry, AuditQuery
from ksana.domain.objects import GovernedObject, ObjectQuery


def object_fits(governed: GovernedObject, query: ObjectQuery) -> bool:
    due_at = governed.next_action_at
    return (
        query.type in (None, governed.type)
        and query.risk in (None, governed.risk)
        and query.epistemic in (None, governed.epistemic)
        and (query.due_before is None or (due_at is not None and due_at < query.due_before))
    )


def entry_fits(entry: AuditEntry, query: AuditQuery) -> bool:
    """Whether it is one of those, wherever the page begins."""
    return (
        query.subject in (None, entry.subject)
        and query.subject_id in (None, entry.subject_id)
        and query.actor in (None, entry.actor)
        and query.action in (None, entry.action)
        and (query.since is None or entry.at >= query.since)
        and (query.until is None or entry.at < query.until)
    )


def asks_for_more(query: AuditQuery) -> bool:
    """Whether there is more to ask than what an entry is about, as a whole."""
    is_half = (query.subject is None) is not (query.subject_id is None)
    return is_half or any(asked is not None for asked in (query.actor, query.action, query.since, query.until))
