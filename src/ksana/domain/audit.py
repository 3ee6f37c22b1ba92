"""The audit: one entry for every change somebody asked for, with what was there before and after, by whom and why."""

from __future__ import annotations

from datetime import datetime

import msgspec


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One change. `before` and `after` are JSON; what there was not is None. `evidence` names an event in an audit that
    is kept elsewhere, as a worker said it."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    subject_id: str
    reason: str = ""
    before: bytes | None = None
    after: bytes | None = None
    evidence: str | None = None
    request_id: str | None = None


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries, the newest first. `since` is included, `until` is not. `before_id` continues a list without
    counting from the start."""

    subject: str | None = None
    subject_id: str | None = None
    actor: str | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    before_id: int | None = None
    offset: int = 0
    limit: int = 50
