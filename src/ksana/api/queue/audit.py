"""The audit of objects and queues: what changed, by whom, and on what evidence."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ksana.api.kit import Call, Page, PageQuery, Route, Scope, page_of
from ksana.api.kit.paging import refuse_order
from ksana.api.queue.audit_shapes import ObjectAuditView, show_entry
from ksana.api.queue.item_shapes import Instant
from ksana.api.queue.words import ObjectType
from ksana.api.services import Services
from ksana.domain.audit import AuditQuery
from ksana.domain.errors import InvalidArgument
from ksana.domain.objects import subject_of
from ksana.domain.times import parse_instant
from ksana.engine.auditing import OBJECT


class ObjectAuditQuery(PageQuery, frozen=True, kw_only=True):
    """Which entries, newest first: those of one object, of one action (`object.write_back`, `object.put`,
    `decision_gate`, `decision_budget`), by one actor."""

    object_type: ObjectType | None = None
    object_id: Annotated[str, msgspec.Meta(min_length=1, max_length=150)] | None = None
    action: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    actor: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    since: Instant | None = None
    until: Instant | None = None


async def list_audit(call: Call[None, ObjectAuditQuery]) -> Page[ObjectAuditView]:
    """What changed about objects, newest first."""
    services: Services = call.services
    query = call.query
    refuse_order(query, "the newest come first")
    if (query.object_id is None) != (query.object_type is None):
        raise InvalidArgument.of("object_id", "goes with object_type; say both or neither")
    wanted = AuditQuery(
        subject=OBJECT,
        subject_id=subject_of(query.object_type, query.object_id) if query.object_type and query.object_id else None,
        action=query.action,
        actor=query.actor,
        since=None if query.since is None else parse_instant(query.since, "since"),
        until=None if query.until is None else parse_instant(query.until, "until"),
        offset=query.offset,
        limit=query.page_size,
    )
    found = await services.engine.store.find_audit(wanted)
    return page_of([show_entry(entry) for entry in found.items], found.total, query)


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "GET",
            "/scheduler/audit",
            list_audit,
            Scope.QUEUE_READ,
            query=ObjectAuditQuery,
            response=Page[ObjectAuditView],
            summary="What changed about objects",
            name="list_object_audit",
        )
    ]
