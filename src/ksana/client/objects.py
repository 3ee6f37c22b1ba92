"""Objects that items of a queue are about, and the gates that hold them back: each call once, as data."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack
from urllib.parse import quote

import msgspec

from ksana.client.asking import Instant, refuse_unknown, written
from ksana.client.calls import Call, Pages, Repeat, numbered, query_of
from ksana.client.items import ObjectType
from ksana.client.results import Page
from ksana.client.rooms import Listing, Room, Verb
from ksana.client.wires import Wire

W = TypeVar("W", bound=Wire)

Gate = Literal["pass", "limit", "defer", "block"]
Risk = Literal["low", "medium", "high"]
Epistemic = Literal["unassessed", "uncertain", "supported", "refuted", "archived"]

_PATH: Final = "/scheduler/objects"


class GovernedObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object, as it stood when the server answered. `verify_count` is what was spent of its budget, `held_back`
    whether its gates keep its items queued."""

    object_type: str
    object_id: str
    version: int
    risk_tier: Risk
    epistemic_state: Epistemic
    unknown_type: Literal["epistemic", "ontic_unknowable"] | None
    auto_verify_budget: int
    verify_count: int
    unknowable_verify_cap: int
    unknowable_verify_count: int
    gates: dict[str, Gate]
    held_back: bool
    next_action_at: datetime | None
    audit_event_id: str | None
    attributes: dict[str, Any]
    created_at: datetime
    updated_at: datetime


class ObjectWords(TypedDict, total=False):
    """What may be said of an object; what is absent stays."""

    risk_tier: Risk
    epistemic_state: Epistemic
    unknown_type: Literal["epistemic", "ontic_unknowable"] | None
    auto_verify_budget: int
    verify_count: int
    unknowable_verify_cap: int
    gates: dict[str, Gate]
    next_action_at: Instant | None
    attributes: dict[str, Any]
    reason: str


_read: Final = msgspec.json.Decoder(GovernedObject).decode
_read_page: Final = msgspec.json.Decoder(Page[GovernedObject]).decode


def get(object_type: ObjectType, object_id: str) -> Call[GovernedObject]:
    """An object by its type and id."""
    return Call(method="GET", path=_one(object_type, object_id), decode=_read)


def put(
    object_type: ObjectType, object_id: str, *, version: int | None = None, **words: Unpack[ObjectWords]
) -> Call[GovernedObject]:
    """Say what an object is like: its risk, how sure one may be of it, its budget, its `gates`. With the `version` it
    was read in, Conflict if somebody changed it meanwhile."""
    refuse_unknown(words, ObjectWords.__optional_keys__)
    fields = written(words) | ({} if version is None else {"version": version})
    # The second time it would be the version that the first has made.
    repeat = Repeat.ALWAYS if version is None else Repeat.IF_NOT_DONE
    path = _one(object_type, object_id)
    return Call(method="PUT", path=path, decode=_read, body=msgspec.json.encode(fields), repeat=repeat)


def each(
    *,
    object_type: ObjectType | None = None,
    risk_tier: Risk | None = None,
    epistemic_state: Epistemic | None = None,
    due_before: Instant | None = None,
    page_size: int = 100,
) -> Pages[GovernedObject]:
    """Objects by type and id, page after page; `due_before` finds those that want to be seen to before an instant."""
    query = query_of(
        object_type=object_type,
        risk_tier=risk_tier,
        epistemic_state=epistemic_state,
        due_before=written(due_before),
    )
    return numbered(_PATH, _items, query, page_size)


class Objects(Room[W]):
    """The objects a server knows."""

    get = Verb(get)
    put = Verb(put)
    list = Listing(each)


def _one(object_type: str, object_id: str) -> str:
    return f"{_PATH}/{quote(object_type, safe='')}/{quote(object_id, safe='')}"


def _items(data: bytes) -> list[GovernedObject]:
    return _read_page(data).items
