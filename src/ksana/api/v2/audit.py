"""The audit: who changed what, when and why."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from ksana.api.kit import Call, Page, PageQuery, Route, Scope, Timestamp, page_of, timestamp
from ksana.api.kit.call import Principal
from ksana.api.kit.paging import refuse_order
from ksana.api.services import Services
from ksana.api.v2.job_shapes import JobView, show_job
from ksana.api.v2.schedule_shapes import Instant, Problems
from ksana.domain.audit import AuditEntry, AuditQuery
from ksana.domain.jobs import Job
from ksana.engine.auditing import OBJECT, QUEUE
from ksana.engine.recording import BACKFILL, JOB, RUN

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]

# What somebody must be allowed to read to see what an entry shows of it; keys are nobody else's business.
_SCOPES: Final = {
    JOB: Scope.JOB_READ,
    BACKFILL: Scope.JOB_READ,
    RUN: Scope.RUN_READ,
    OBJECT: Scope.QUEUE_READ,
    QUEUE: Scope.QUEUE_READ,
}

NEWEST_FIRST: Final = ("the newest come first", ("-id", "-at"))
"""The order of these lists, and what it may be called."""

_decode_job = msgspec.json.Decoder(Job).decode


class AuditPageQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which entries, the newest first. `subject` is `job`, `run`, `backfill`, `queue`, `object` or `key`; `since` is
    included, `until` is not. `before_id` continues a list."""

    subject: Word | None = None
    subject_id: Word | None = None
    actor: Word | None = None
    action: Word | None = None
    since: Instant | None = None
    until: Instant | None = None
    before_id: int | None = None


class AuditView(msgspec.Struct, frozen=True, kw_only=True):
    """One change: by whom and why, and what there was before and after it: a job as it is shown elsewhere, and null
    what the key may not read. `evidence` names an event in an audit kept elsewhere, as a worker said it."""

    id: int
    at: Timestamp
    actor: str
    action: str
    subject: str
    subject_id: str
    reason: str
    before: Any
    after: Any
    evidence: str | None
    request_id: str | None


async def list_audit(call: Call[None, AuditPageQuery]) -> Page[AuditView]:
    """Every change that somebody asked for, the newest first."""
    services: Services = call.services
    query = call.query
    refuse_order(query, *NEWEST_FIRST)
    problems = Problems()
    wanted = AuditQuery(
        subject=query.subject,
        subject_id=query.subject_id,
        actor=query.actor,
        action=query.action,
        since=problems.instant(query.since, "since"),
        until=problems.instant(query.until, "until"),
        before_id=query.before_id,
        offset=query.offset,
        limit=query.page_size,
    )
    problems.raise_any()
    found = await services.engine.store.find_audit(wanted)
    return page_of([_show(entry, call.principal) for entry in found.items], found.total, query)


def _show(entry: AuditEntry, reader: Principal) -> AuditView:
    is_open = reader.may(_SCOPES.get(entry.subject, Scope.ADMIN))
    return AuditView(
        id=entry.id,
        at=timestamp(entry.at),
        actor=entry.actor,
        action=entry.action,
        subject=entry.subject,
        subject_id=entry.subject_id,
        reason=entry.reason,
        before=_value(entry, entry.before) if is_open else None,
        after=_value(entry, entry.after) if is_open else None,
        evidence=entry.evidence,
        request_id=entry.request_id,
    )


def _value(entry: AuditEntry, value: bytes | None) -> Any:
    job = job_in(value) if entry.subject == JOB else None
    return job if job is not None else None if value is None else msgspec.Raw(value)


def job_in(value: bytes | None) -> JobView | None:
    """The job an entry holds, as it is shown; None for what another version of this program wrote down otherwise."""
    try:
        return None if value is None else show_job(_decode_job(value))
    except msgspec.ValidationError:
        return None


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "GET",
            "/api/v2/audit",
            list_audit,
            Scope.JOB_READ,
            query=AuditPageQuery,
            response=Page[AuditView],
            summary="Who changed what",
        )
    ]
