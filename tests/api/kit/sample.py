"""A small surface with something of everything, and fakes of what a store provides."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from starlette.types import ASGIApp

from ksana.api.kit import (
    PUBLIC,
    Call,
    ErrorStyle,
    Input,
    KeyRing,
    Page,
    PageQuery,
    Reply,
    Route,
    Scope,
    Surface,
    Timestamp,
    build_app,
    encode,
    etag,
    page_of,
    timestamp,
)
from ksana.domain.errors import AlreadyExists, ConcurrencyLimit, NotFound, VersionConflict
from ksana.domain.idempotency import IdempotencyRecord, IdempotencyReplay
from ksana.domain.keys import KEY_RANDOM_BYTES, NewKey, StoredKey, new_key

NOW = datetime(2026, 11, 15, 2, 35, 0, 123456, tzinfo=UTC)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Every(Input, frozen=True, tag_field="kind", tag="every"):
    seconds: Annotated[int, msgspec.Meta(ge=1, le=3600)]


class Once(Input, frozen=True, tag_field="kind", tag="once"):
    at: Annotated[datetime, msgspec.Meta(tz=True)]


class ThingBody(Input, frozen=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
    schedule: Every | Once | None = None
    colour: Colour = Colour.RED
    tags: Annotated[list[str], msgspec.Meta(max_length=10)] = msgspec.field(default_factory=list)
    payload: dict[str, Any] = msgspec.field(default_factory=dict)


class ThingView(msgspec.Struct, frozen=True):
    id: int
    name: str
    colour: Colour
    version: int
    created_at: Timestamp


class ThingQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    colour: Colour | None = None
    tag: list[str] = msgspec.field(default_factory=list)
    paused: bool | None = None


class StartBody(Input, frozen=True):
    reason: str = ""


class Started(msgspec.Struct, frozen=True):
    id: int | str
    reason: str


class FakeStore:
    """Things, keys and idempotency records in memory."""

    def __init__(self) -> None:
        self.things: dict[int, ThingView] = {}
        self.records: dict[tuple[str, str], IdempotencyRecord] = {}
        self.finds = 0

    def create(self, body: ThingBody) -> ThingView:
        view = ThingView(len(self.things) + 1, body.name, body.colour, 1, timestamp(NOW))
        self.things[view.id] = view
        return view

    def remember(self, record: IdempotencyRecord) -> None:
        existing = self.records.setdefault((record.scope, record.key), record)
        if existing is not record:
            raise IdempotencyReplay(existing)

    async def find(self, scope: str, key: str) -> IdempotencyRecord | None:
        self.finds += 1
        return self.records.get((scope, key))


class FakeKeys:
    """A key table in memory."""

    def __init__(self, *keys: StoredKey) -> None:
        self.keys = {key.id: key for key in keys}
        self.finds = 0

    async def find(self, key_id: str) -> StoredKey | None:
        self.finds += 1
        return self.keys.get(key_id)

    async def any(self) -> bool:
        return bool(self.keys)


class FakeClock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def make_key(seed: int, *scopes: Scope) -> NewKey:
    """A key whose randomness is the seed repeated."""
    return new_key(bytes([seed]) * KEY_RANDOM_BYTES, name=f"key {seed}", scopes=scopes, created_at=NOW)


async def create(call: Call[ThingBody, None]) -> Reply:
    store: FakeStore = call.services
    if any(thing.name == call.body.name for thing in store.things.values()):
        raise AlreadyExists(f"there is a thing named {call.body.name}")
    view = store.create(call.body)
    if call.idempotency is not None:
        store.remember(call.idempotency.answered(201, encode(view), NOW))
    return Reply(view, headers={"Location": f"/things/{view.id}", "ETag": etag(view.version)})


async def listing(call: Call[None, ThingQuery]) -> Page[ThingView]:
    things = list(call.services.things.values())
    first = call.query.offset
    return page_of(things[first : first + call.query.page_size], len(things), call.query)


async def show(call: Call[None, None]) -> Reply:
    view = _found(call)
    return Reply(view, headers={"ETag": etag(view.version)})


async def change(call: Call[ThingBody, None]) -> ThingView:
    view = _found(call)
    expected = call.expected_version()
    if expected is not None and expected != view.version:
        raise VersionConflict(f"version {view.version} is stored, not {expected}")
    changed = msgspec.structs.replace(view, name=call.body.name, version=view.version + 1)
    call.services.things[view.id] = changed
    return changed


async def remove(call: Call[None, None]) -> None:
    del call.services.things[_found(call).id]


async def start(call: Call[StartBody, None]) -> Started:
    return Started(_found(call).id, call.body.reason)


async def limited(call: Call[None, None]) -> None:
    raise ConcurrencyLimit("one run at a time")


async def by_number(call: Call[None, None]) -> Started:
    return Started(call.number("id"), "number")


async def by_uuid(call: Call[None, None]) -> Started:
    return Started(call.text("id"), "uuid")


async def stop_by_text(call: Call[None, None]) -> Started:
    return Started(call.text("id"), "stopped")


async def ping(call: Call[None, None]) -> dict[str, str]:
    return {"principal": call.principal.name}


def _found(call: Call[Any, Any]) -> ThingView:
    view = call.services.things.get(call.number("id"))
    if view is None:
        raise NotFound(f"there is no thing {call.number('id')}")
    found: ThingView = view
    return found


THINGS = Surface(
    "things",
    (
        Route(
            "POST",
            "/things",
            create,
            Scope.JOB_WRITE,
            ThingBody,
            ThingView,
            status=201,
            creates=True,
            errors=(AlreadyExists,),
            summary="Make a thing",
        ),
        Route("GET", "/things", listing, Scope.JOB_READ, response=Page[ThingView], query=ThingQuery),
        Route("GET", "/things/{id:int}", show, Scope.JOB_READ, response=ThingView, errors=(NotFound,)),
        Route(
            "PUT",
            "/things/{id:int}",
            change,
            Scope.JOB_WRITE,
            ThingBody,
            ThingView,
            versioned=True,
            errors=(NotFound, VersionConflict),
        ),
        Route("DELETE", "/things/{id:int}", remove, Scope.JOB_WRITE, status=204, errors=(NotFound,)),
        Route(
            "POST",
            "/things/{id:int}:start",
            start,
            Scope.RUN_CONTROL,
            StartBody,
            Started,
            optional_body=True,
            errors=(NotFound,),
        ),
    ),
    ErrorStyle.CODE,
    "Things of all kinds",
)
RUNS = Surface(
    "runs",
    (
        Route("GET", "/runs/{id:int}", by_number, Scope.RUN_READ, response=Started),
        Route("GET", "/runs/{id:uuid}", by_uuid, Scope.RUN_READ, response=Started),
        Route("POST", "/chains/{id}:stop", stop_by_text, Scope.RUN_CONTROL, response=Started),
        Route("GET", "/chains/{id}", stop_by_text, Scope.CHAIN_READ, response=Started, name="chain"),
        Route("POST", "/limited", limited, Scope.RUN_CONTROL, errors=(ConcurrencyLimit,)),
        Route("GET", "/ping", ping, PUBLIC, response=dict[str, str]),
    ),
)


def sample_app(
    store: FakeStore | None = None,
    keys: KeyRing | None = None,
    extra: tuple[Surface, ...] = (),
    **options: Any,
) -> ASGIApp:
    """The sample surfaces on a fake store."""
    store = store or FakeStore()
    surfaces = [THINGS, RUNS, *extra]
    return build_app(surfaces, store, keys=keys, idempotency=store, title="Sample", version="1", **options)
