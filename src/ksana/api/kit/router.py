"""Finds the endpoint of a path: a dictionary for fixed paths, a tree of segments for the rest.

Segments are split before they are percent-decoded, so an id may contain `%2F`; colon verbs are looked for
after, so `:start` and `%3Astart` are one. The last colon of the last segment begins the verb, if that place
has it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import unquote

from ksana.api.kit.errors import ErrorStyle, InvalidId
from ksana.api.kit.routes import ParamKind, RouteError, parse_path
from ksana.domain.errors import KsanaError, NotFound

R = TypeVar("R")

_INT: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_WANTED: Final = {
    ParamKind.INT: "a whole number",
    ParamKind.UUID: "a UUID",
    ParamKind.TEXT: "text without U+0000",
}
_ORDER: Final = list(ParamKind)

Params = dict[str, str | int]


@dataclass(slots=True)
class Endpoint(Generic[R]):
    """The methods of one path."""

    style: ErrorStyle
    methods: dict[str, R] = field(default_factory=dict)

    @property
    def allow(self) -> str:
        """The value of the Allow header."""
        implied = {"OPTIONS"} | ({"HEAD"} if "GET" in self.methods else set())
        return ", ".join(sorted(self.methods.keys() | implied))


class Match(NamedTuple, Generic[R]):
    """A path that leads somewhere."""

    endpoint: Endpoint[R]
    params: Params


class RouteMiss(Exception):
    """A path that leads nowhere, and how to say so."""

    def __init__(self, error: KsanaError, style: ErrorStyle) -> None:
        super().__init__(error.message)
        self.error = error
        self.style = style


@dataclass(slots=True)
class _Branch(Generic[R]):
    name: str
    kind: ParamKind
    style: ErrorStyle
    node: _Node[R]
    verbs: dict[str, Endpoint[R]] = field(default_factory=dict)


@dataclass(slots=True)
class _Node(Generic[R]):
    fixed: dict[str, _Node[R]] = field(default_factory=dict)
    branches: list[_Branch[R]] = field(default_factory=list)
    endpoint: Endpoint[R] | None = None


class Router(Generic[R]):
    """A table of paths and methods."""

    def __init__(self) -> None:
        self._root: _Node[R] = _Node()
        self._fixed: dict[str, Match[R]] = {}

    def add(self, method: str, path: str, route: R, style: ErrorStyle) -> None:
        """Enter a route; RouteError if the place is taken."""
        endpoint = self._place(path, style)
        if method in endpoint.methods:
            raise RouteError(f"{method} {path} is declared twice")
        endpoint.methods[method] = route
        if "{" not in path:
            self._fixed[path] = Match(endpoint, {})

    def _place(self, path: str, style: ErrorStyle) -> Endpoint[R]:
        node = self._root
        for segment in parse_path(path):
            if segment.param is None:
                node = node.fixed.setdefault(segment.text, _Node())
                continue
            branch = _branch(node, segment.param.name, segment.param.kind, style)
            if segment.verb is not None:
                return branch.verbs.setdefault(segment.verb, Endpoint(style))
            node = branch.node
        if node.endpoint is None:
            node.endpoint = Endpoint(style)
        return node.endpoint

    def find(self, raw_path: str) -> Match[R]:
        """The endpoint of a path as it came over the wire; raises RouteMiss."""
        found = self._fixed.get(raw_path)
        if found is not None:
            return found
        wrong: list[_Branch[R]] = []
        params: Params = {}
        try:
            segments = [_decoded(part) for part in raw_path[1:].split("/")]
        except UnicodeDecodeError:
            raise RouteMiss(InvalidId("path", "is not percent-encoded UTF-8"), ErrorStyle.TEXT) from None
        # `OPTIONS *` and absolute forms do not start with a slash.
        endpoint = _descend(self._root, segments, 0, params, wrong) if raw_path.startswith("/") else None
        if endpoint is not None:
            return Match(endpoint, params)
        if wrong:
            wanted = " or ".join(_WANTED[branch.kind] for branch in wrong)
            raise RouteMiss(InvalidId(wrong[0].name, f"must be {wanted}"), wrong[0].style)
        raise RouteMiss(NotFound("there is nothing at this path; /docs lists what there is"), ErrorStyle.TEXT)


def _branch(node: _Node[Any], name: str, kind: ParamKind, style: ErrorStyle) -> _Branch[Any]:
    for branch in node.branches:
        # OpenAPI knows a place by its template, so it can have only one name, whatever the forms of its ids.
        if branch.name != name:
            raise RouteError(f"{{{name}}} and {{{branch.name}}} name the same place; choose one name")
        if branch.kind is kind:
            return branch
    branch = _Branch(name, kind, style, _Node())
    node.branches.append(branch)
    node.branches.sort(key=lambda each: _ORDER.index(each.kind))
    return branch


def _decoded(part: str) -> str:
    return unquote(part, errors="strict") if "%" in part else part


def _descend(
    node: _Node[R], segments: Sequence[str], at: int, params: Params, wrong: list[_Branch[R]]
) -> Endpoint[R] | None:
    if at == len(segments):
        return node.endpoint
    text = segments[at]
    fixed = node.fixed.get(text)
    if fixed is not None:
        found = _descend(fixed, segments, at + 1, params, wrong)
        if found is not None:
            return found
    stem, colon, verb = text.rpartition(":") if at == len(segments) - 1 else ("", "", "")
    for branch in node.branches:
        verbal = branch.verbs.get(verb) if colon else None
        if verbal is not None:
            if _fits(branch, stem, params, wrong):
                return verbal
        elif _fits(branch, text, params, wrong):
            found = _descend(branch.node, segments, at + 1, params, wrong)
            if found is not None:
                return found
            del params[branch.name]
    return None


def _fits(branch: _Branch[R], text: str, params: Params, wrong: list[_Branch[R]]) -> bool:
    """Take a segment as this branch's parameter, or note that it is none."""
    if not text:
        return False
    if branch.kind is ParamKind.TEXT and "\0" not in text:
        params[branch.name] = text
    elif branch.kind is ParamKind.INT and _INT.fullmatch(text) and int(text) < 2**63:
        params[branch.name] = int(text)
    elif branch.kind is ParamKind.UUID and _UUID.fullmatch(text):
        params[branch.name] = text.lower()
    else:
        wrong.append(branch)
        return False
    return True
