"""How entries of the audit look on the wire, and who is named in them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ksana.api.kit import Call, Timestamp, timestamp
from ksana.domain.audit import AuditEntry
from ksana.engine.auditing import Actor

ReasonText = Annotated[str, msgspec.Meta(max_length=1000, description="why, for the audit")]


class ObjectAuditView(msgspec.Struct, frozen=True, kw_only=True):
    """One change: what there was before and after; `audit_event_id` is the evidence a worker named."""

    id: int
    at: Timestamp
    actor: str
    action: str
    subject: str
    subject_id: str
    reason: str
    before: Any
    after: Any
    audit_event_id: str | None
    request_id: str | None


def show_entry(entry: AuditEntry) -> ObjectAuditView:
    return ObjectAuditView(
        id=entry.id,
        at=timestamp(entry.at),
        actor=entry.actor,
        action=entry.action,
        subject=entry.subject,
        subject_id=entry.subject_id,
        reason=entry.reason,
        before=None if entry.before is None else msgspec.Raw(entry.before),
        after=None if entry.after is None else msgspec.Raw(entry.after),
        audit_event_id=entry.evidence,
        request_id=entry.request_id,
    )


def actor_of(call: Call[Any, Any], reason: str = "") -> Actor:
    """Who is calling, as the audit names them."""
    return Actor(call.principal.name, reason, call.request_id)
