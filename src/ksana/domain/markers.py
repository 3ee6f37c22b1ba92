"""Markers: `{{fetch.artifact.rows.0}}`, `{{params.mode}}`, `{{item.id}}` and `{{index}}` stand for what a step of a
chain is given. Here is what they look like and what they stand for; everything else in braces is somebody else's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec


class Unresolved(Exception):
    """A marker stands for nothing, or a condition compares what cannot be compared. The message is a sentence."""


class Root(StrEnum):
    """Where a marker begins."""

    ARTIFACT = "artifact"
    PARAMS = "params"
    ITEM = "item"
    INDEX = "index"


class Scope(msgspec.Struct, frozen=True):
    """What markers stand for at one step: the artifacts of other steps by their ids, the parameters of the start, and
    for a step done for each item of a list, which item."""

    artifacts: Mapping[str, Any]
    params: Mapping[str, Any]
    has_item: bool = False
    item: Any = None
    index: int = 0


class Marker(msgspec.Struct, frozen=True):
    """What a marker names: a root, the step if it is an artifact's, and the way from there."""

    text: str
    root: Root
    step: str = ""
    path: tuple[str, ...] = ()

    def value(self, scope: Scope) -> Any:
        """What it stands for, or Unresolved."""
        value = self._root(scope)
        for name in self.path:
            if isinstance(value, Mapping) and name in value:
                value = value[name]
            elif isinstance(value, list) and _is_place(name) and int(name) < len(value):
                value = value[int(name)]
            else:
                raise Unresolved(f"{{{{{self.text}}}}} stands for nothing: {self._owner()} has no {name!r} there")
        return value

    def _root(self, scope: Scope) -> Any:
        match self.root:
            case Root.PARAMS:
                return scope.params
            case Root.ARTIFACT if self.step in scope.artifacts:
                return scope.artifacts[self.step]
            case Root.ARTIFACT:
                raise Unresolved(f"{{{{{self.text}}}}} stands for nothing: node {self.step!r} has left no artifact")
            case Root.ITEM | Root.INDEX if not scope.has_item:
                raise Unresolved(f"{{{{{self.text}}}}} stands for nothing: the node has no map")
            case Root.ITEM:
                return scope.item
            case Root.INDEX:
                return scope.index

    def _owner(self) -> str:
        match self.root:
            case Root.ARTIFACT:
                return f"the artifact of node {self.step!r}"
            case Root.PARAMS:
                return "what the chain was started with"
            case _:
                return "the item"


# A third brace belongs to the text around: {"order":{{a.artifact}}} and even {{{a.artifact}}} are meant so.
MARKER = re.compile(r"\{\{(?!\{)((?:(?!\{\{|\}\}).)+)\}\}", re.DOTALL)
_ARTIFACT = re.compile(r"(?P<step>.+?)\.artifact(?:\.(?P<path>.*))?", re.DOTALL)


def marker_of(inside: str) -> Marker | None:
    """The marker that reads so between its braces; None if it is none of ours. The words for parameters and items win
    over a step of that name."""
    text = inside.strip()
    first, *path = text.split(".")
    if first == Root.PARAMS and path:
        return Marker(text, Root.PARAMS, "", tuple(path))
    if first == Root.ITEM:
        return Marker(text, Root.ITEM, "", tuple(path))
    if text == Root.INDEX:
        return Marker(text, Root.INDEX)
    if found := _ARTIFACT.fullmatch(text):
        return Marker(text, Root.ARTIFACT, found["step"], () if found["path"] is None else _parts(found["path"]))
    return None


def markers_in(text: str) -> Iterator[tuple[int, int, Marker]]:
    """The markers of a text and where they stand."""
    if "{{" not in text:
        return
    for found in MARKER.finditer(text):
        if (marker := marker_of(found[1])) is not None:
            yield found.start(), found.end(), marker


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def _is_place(name: str) -> bool:
    # No list is so long, and Python refuses to read numbers of thousands of digits.
    return name.isascii() and name.isdecimal() and len(name) < 16
