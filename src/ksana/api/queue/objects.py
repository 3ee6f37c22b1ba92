"""Objects that items are about: what is known of them, and who may say so. The audit tells what became of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from ksana.api.kit import Call, Input, Page, PageQuery, Reply, Route, Scope, Timestamp, page_of, timestamp
from ksana.api.kit.paging import refuse_order
from ksana.api.queue.audit_shapes import ReasonText, actor_of
from ksana.api.queue.item_shapes import Instant
from ksana.api.queue.words import OBJECT_TYPES, ObjectType, instant
from ksana.api.services import Services
from ksana.domain.errors import InvalidArgument, NotFound, VersionConflict
from ksana.domain.objects import Epistemic, Gate, GovernedObject, ObjectQuery, Risk, UnknownType
from ksana.domain.times import parse_instant

Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class GatesInput(Input, frozen=True):
    """What the gates say; `limit` lets one item of the object through at a time."""

    persona: Gate | msgspec.UnsetType = msgspec.UNSET
    cognition: Gate | msgspec.UnsetType = msgspec.UNSET


class ObjectInput(Input, frozen=True):
    """What an object is like. What is left out stays as it is, or as it is by default."""

    risk_tier: Risk | msgspec.UnsetType = msgspec.UNSET
    epistemic_state: Epistemic | msgspec.UnsetType = msgspec.UNSET
    unknown_type: UnknownType | msgspec.UnsetType | None = msgspec.UNSET
    auto_verify_budget: Count | msgspec.UnsetType = msgspec.UNSET
    verify_count: Count | msgspec.UnsetType = msgspec.UNSET
    unknowable_verify_cap: Count | msgspec.UnsetType = msgspec.UNSET
    gates: GatesInput | msgspec.UnsetType = msgspec.UNSET
    next_action_at: Instant | msgspec.UnsetType | None = msgspec.UNSET
    attributes: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    reason: ReasonText = ""
    version: Annotated[int, msgspec.Meta(ge=0)] | None = None


class ObjectView(msgspec.Struct, frozen=True, kw_only=True):
    """An object. `verify_count` is what was spent of the budget, `held_back` whether gates keep its items queued."""

    object_type: str
    object_id: str
    version: int
    risk_tier: Risk
    epistemic_state: Epistemic
    unknown_type: UnknownType | None
    auto_verify_budget: int
    verify_count: int
    unknowable_verify_cap: int
    unknowable_verify_count: int
    gates: dict[str, Gate]
    held_back: bool
    next_action_at: str | None
    audit_event_id: str | None
    attributes: dict[str, Any]
    created_at: Timestamp
    updated_at: Timestamp


class ObjectsQuery(PageQuery, frozen=True, kw_only=True):
    """Which objects; `due_before` finds those that want to be seen to before an instant."""

    object_type: ObjectType | None = None
    risk_tier: Risk | None = None
    epistemic_state: Epistemic | None = None
    due_before: Instant | None = None


_FIELDS = {
    "risk_tier": "risk",
    "epistemic_state": "epistemic",
    "unknown_type": "unknown",
    "auto_verify_budget": "budget",
    "verify_count": "verified",
    "unknowable_verify_cap": "cap",
    "attributes": "attributes",
}


async def put_object(call: Call[ObjectInput, None]) -> Reply:
    """Say what an object is like: 201 if nothing was known of it, else 200."""
    services: Services = call.services
    body = call.body
    type, id = _named(call)
    said = {ours: getattr(body, name) for name, ours in _FIELDS.items() if getattr(body, name) is not msgspec.UNSET}
    if body.next_action_at is not msgspec.UNSET:
        said["next_action_at"] = None if body.next_action_at is None else _instant(body.next_action_at)
    if body.gates is not msgspec.UNSET:
        gates = {
            gate: value for gate, value in msgspec.structs.asdict(body.gates).items() if value is not msgspec.UNSET
        }
        said["gates"] = gates
    actor = actor_of(call, body.reason)
    governed, is_new = await services.engine.governor.put(type, id, said, actor, call.expected_version(body.version))
    return Reply(show_object(governed), 201 if is_new else 200, {"ETag": f'"{governed.version}"'})


async def get_object(call: Call[None, None]) -> ObjectView:
    services: Services = call.services
    return show_object(await services.engine.governor.get(*_named(call)))


async def list_objects(call: Call[None, ObjectsQuery]) -> Page[ObjectView]:
    """Objects, by type and id."""
    services: Services = call.services
    query = call.query
    refuse_order(query, "objects come by type and id")
    wanted = ObjectQuery(
        type=query.object_type,
        risk=query.risk_tier,
        epistemic=query.epistemic_state,
        due_before=None if query.due_before is None else parse_instant(query.due_before, "due_before"),
        offset=query.offset,
        limit=query.page_size,
    )
    found = await services.engine.store.find_objects(wanted)
    return page_of([show_object(one) for one in found.items], found.total, query)


def show_object(governed: GovernedObject) -> ObjectView:
    next_at = governed.next_action_at
    return ObjectView(
        object_type=governed.type,
        object_id=governed.id,
        version=governed.version,
        risk_tier=governed.risk,
        epistemic_state=governed.epistemic,
        unknown_type=governed.unknown,
        auto_verify_budget=governed.budget,
        verify_count=governed.verified,
        unknowable_verify_cap=governed.cap,
        unknowable_verify_count=governed.tried,
        gates=governed.gates,
        held_back=governed.is_held_back,
        next_action_at=None if next_at is None else instant(next_at),
        audit_event_id=governed.evidence,
        attributes=governed.attributes,
        created_at=timestamp(governed.created_at),
        updated_at=timestamp(governed.updated_at),
    )


def _instant(text: str) -> datetime:
    return parse_instant(text, "next_action_at")


def _named(call: Call[Any, Any]) -> tuple[str, str]:
    type, id = call.text("type"), call.text("id")
    if type not in OBJECT_TYPES:
        raise NotFound(f'there are no objects of the type "{type[:60]}"; say one of {", ".join(OBJECT_TYPES)}')
    if not 1 <= len(id) <= 150 or not id.isprintable():
        raise InvalidArgument.of("id", "must be 1 to 150 printable signs long")
    return type, id


def routes() -> list[Route[Any, Any]]:
    one = "/scheduler/objects/{type}/{id}"
    return [
        Route(
            "PUT",
            one,
            put_object,
            Scope.QUEUE_WRITE,
            request=ObjectInput,
            response=ObjectView,
            other_status=201,
            versioned=True,
            optional_body=True,
            summary="Say what an object is like",
            errors=(NotFound, VersionConflict),
        ),
        Route(
            "GET",
            one,
            get_object,
            Scope.QUEUE_READ,
            response=ObjectView,
            summary="Get an object",
            errors=(NotFound,),
        ),
        Route(
            "GET",
            "/scheduler/objects",
            list_objects,
            Scope.QUEUE_READ,
            query=ObjectsQuery,
            response=Page[ObjectView],
            summary="List objects",
        ),
    ]
