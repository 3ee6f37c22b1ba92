"""The route table: every route says in one place what it takes, what it gives and who may call it.

A route without a scope, two routes with one meaning, or a reply type that would write instants in its own
form stop the app from being built.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Any, Final, Generic, NamedTuple, TypeVar

from msgspec import inspect as types_of

from ksana.api.kit.call import Call
from ksana.api.kit.errors import ErrorStyle
from ksana.api.kit.strict_json import Adapt
from ksana.domain.errors import KsanaError
from ksana.domain.keys import Scope

B = TypeVar("B")
Q = TypeVar("Q")

Handler = Callable[[Call[B, Q]], Awaitable[object]]


class Public(Enum):
    """The type of `PUBLIC`, so that a type checker tells it from a scope."""

    PUBLIC = "public"


PUBLIC: Final = Public.PUBLIC
"""The scope of a route that anyone may call, key or not."""


class RouteError(Exception):
    """The route table is wrong; a fault of the programmer, found when the app is built."""


class ParamKind(Enum):
    """The form of a path parameter, tried in this order: `/runs/{id:int}` wins over `/runs/{id}`."""

    INT = "int"
    UUID = "uuid"
    TEXT = "str"


class Param(NamedTuple):
    """A path parameter: `{id}`, `{id:int}` or `{id:uuid}`."""

    name: str
    kind: ParamKind


class Segment(NamedTuple):
    """One part of a path between slashes: fixed text, or a parameter and perhaps a colon verb."""

    text: str
    param: Param | None
    verb: str | None


@dataclass(frozen=True, slots=True)
class Route(Generic[B, Q]):
    """One method on one path."""

    method: str
    path: str
    handler: Handler[B, Q]
    scope: Scope | Public | None = None
    request: type[B] | UnionType | None = None
    response: Any = None
    query: type[Q] | None = None
    status: int = 200
    other_status: int | None = None
    """Another status of success, with the same kind of body."""
    or_scopes: tuple[Scope, ...] = ()
    """Scopes that open the door as well, where the handler asks for the one that the request itself calls for."""
    summary: str = ""
    creates: bool = False
    """A creating POST: honours Idempotency-Key."""
    versioned: bool = False
    """Honours If-Match; a VersionConflict is then answered with 412."""
    optional_body: bool = False
    """An empty body counts as `{}`."""
    raw: bool = False
    """The handler gets the body as bytes, whatever its media type; `request` is then only what is said of it."""
    adapt: Adapt | None = None
    """Rewrites the decoded body before it is converted to `request`."""
    errors: tuple[type[KsanaError], ...] = ()
    """Errors the handler may raise besides those the kit raises itself."""
    media_type: str = "application/json"
    name: str = ""
    hidden: bool = False
    """Left out of the API description: pages and files."""

    @property
    def operation(self) -> str:
        """The route's name: its own, or its handler's."""
        return self.name or getattr(self.handler, "__name__", "call").strip("_")


@dataclass(frozen=True, slots=True)
class Surface:
    """A group of routes that share their words and their style of errors."""

    name: str
    routes: Sequence[Route[Any, Any]]
    error_style: ErrorStyle = ErrorStyle.TEXT
    summary: str = ""
    strict_query: bool = True
    """Refuse query parameters on routes that take none."""


_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
_PARAM: Final = re.compile(r"\{(?P<name>\w+)(?::(?P<kind>int|uuid|str))?\}(?::(?P<verb>[\w-]+))?")


def parse_path(path: str) -> list[Segment]:
    """The segments of a route's path; raises RouteError where it is not one."""
    if not path.startswith("/"):
        raise RouteError(f"the path {path!r} must start with /")
    parts = path[1:].split("/")
    segments = []
    for index, part in enumerate(parts):
        match = _PARAM.fullmatch(part)
        if match is None:
            if "{" in part or "}" in part or (not part and path != "/"):
                raise RouteError(f"cannot read {part!r} in the path {path!r}")
            segments.append(Segment(part, None, None))
            continue
        if match["verb"] and index != len(parts) - 1:
            raise RouteError(f"in {path!r} only the last segment can have a verb")
        segments.append(Segment("", Param(match["name"], ParamKind(match["kind"] or "str")), match["verb"]))
    return segments


def params_of(path: str) -> list[Param]:
    """The parameters of a route's path, in order."""
    return [segment.param for segment in parse_path(path) if segment.param]


def check(surfaces: Sequence[Surface]) -> None:
    """Raise RouteError unless every route is complete and no two have one name."""
    names: set[str] = set()
    for surface, route in each(surfaces):
        label = f"{route.method} {route.path}"
        if not isinstance(route.scope, Scope | Public):
            raise RouteError(f"{label} declares no scope; give it a Scope, or PUBLIC if anyone may call it")
        if route.method not in _METHODS:
            raise RouteError(f"{label}: the method must be one of {', '.join(sorted(_METHODS))}")
        if route.method == "GET" and route.request is not None:
            raise RouteError(f"{label}: a GET takes no body")
        if route.creates and route.method != "POST":
            raise RouteError(f"{label}: only a POST creates")
        names_in_path = [param.name for param in params_of(route.path)]
        if len(set(names_in_path)) != len(names_in_path):
            raise RouteError(f"{label}: a parameter is named twice")
        name = f"{surface.name}_{route.operation}"
        if name in names:
            raise RouteError(f"{label}: {name} is the name of another route; set `name`")
        names.add(name)
        if route.response is not None and _holds_instant(types_of.type_info(route.response), set()):
            raise RouteError(f"{label}: the reply holds a datetime; use Timestamp and timestamp()")


def each(surfaces: Sequence[Surface]) -> Iterator[tuple[Surface, Route[Any, Any]]]:
    """Every route with its surface."""
    for surface in surfaces:
        for route in surface.routes:
            yield surface, route


def _holds_instant(info: types_of.Type, seen: set[Any]) -> bool:
    match info:
        case types_of.DateTimeType():
            return True
        case types_of.Metadata():
            return _holds_instant(info.type, seen)
        case types_of.UnionType():
            return any(_holds_instant(option, seen) for option in info.types)
        case types_of.CollectionType():
            return _holds_instant(info.item_type, seen)
        case types_of.TupleType():
            return any(_holds_instant(item, seen) for item in info.item_types)
        case types_of.DictType():
            return _holds_instant(info.value_type, seen)
        case types_of.StructType() | types_of.TypedDictType() if info.cls not in seen:
            seen.add(info.cls)
            return any(_holds_instant(member.type, seen) for member in info.fields)
        case _:
            return False
