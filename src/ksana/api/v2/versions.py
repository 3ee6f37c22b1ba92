"""The versions of a job, as the audit has them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ksana.api.kit import Call, Page, PageQuery, Route, Scope, Timestamp, encode, page_of, timestamp
from ksana.api.kit.paging import refuse_order
from ksana.api.services import Services
from ksana.api.v2.audit import NEWEST_FIRST, job_in
from ksana.api.v2.job_shapes import JobView
from ksana.domain.audit import AuditEntry, AuditQuery
from ksana.domain.differences import differences
from ksana.domain.errors import NotFound
from ksana.engine.recording import JOB

# What follows from a change, or moves by itself, is not what somebody changed.
_MOVES_BY_ITSELF: Final = (
    *("version", "updated_at", "paused_at", "pause_reason", "schedule_words"),
    *("next_slot_at", "next_fire_at", "last_run"),
)


class VersionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A place of the definition that was changed, such as `retry.max_attempts`; null is what is not there."""

    path: str
    before: Any
    after: Any


class VersionView(msgspec.Struct, frozen=True, kw_only=True):
    """A job as a change left it, or as it was when it was deleted; who changed it and why."""

    version: int
    at: Timestamp
    actor: str
    action: str
    reason: str
    changes: list[VersionChange]
    definition: JobView | None


async def list_versions(call: Call[None, PageQuery]) -> Page[VersionView]:
    """The versions of a job, the newest first, as far back as the audit goes; those of a deleted job too."""
    services: Services = call.services
    store, job_id = services.engine.store, call.number("id")
    refuse_order(call.query, *NEWEST_FIRST)
    if not await store.get_jobs([job_id]):
        raise NotFound(f"there is no job {job_id}")
    query = AuditQuery(subject=JOB, subject_id=str(job_id), offset=call.query.offset, limit=call.query.page_size)
    found = await store.find_audit(query)
    return page_of([_show(entry) for entry in found.items], found.total, call.query)


def _show(entry: AuditEntry) -> VersionView:
    before, after = job_in(entry.before), job_in(entry.after)
    shown = after or before
    return VersionView(
        version=0 if shown is None else shown.version,
        at=timestamp(entry.at),
        actor=entry.actor,
        action=entry.action,
        reason=entry.reason,
        changes=[] if before is None or after is None else _changes(before, after),
        definition=shown,
    )


def _changes(before: JobView, after: JobView) -> list[VersionChange]:
    return [
        VersionChange(path=path, before=left, after=right)
        for path, left, right in differences(_plain(before), _plain(after))
    ]


def _plain(view: JobView) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.json.decode(encode(view))
    return {name: value for name, value in fields.items() if name not in _MOVES_BY_ITSELF}


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "GET",
            "/api/v2/jobs/{id:int}/versions",
            list_versions,
            Scope.JOB_READ,
            query=PageQuery,
            response=Page[VersionView],
            summary="The versions of a job",
            errors=(NotFound,),
        )
    ]
