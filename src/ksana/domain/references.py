"""What a step's config says of other steps: which it names, and the config with every marker filled in.

What is filled in is a value and never looked at again, so an artifact that holds markers is text like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ksana.domain.conditions import check_condition, holds
from ksana.domain.markers import Marker, Root, Scope, Unresolved, markers_in

__all__ = [
    "Scope",
    "Unresolved",
    "check_condition",
    "has_markers",
    "holds",
    "is_one_marker",
    "markers_of",
    "references",
    "render",
]

DEPTH = 200
TEXT_LENGTH = 16 * 1024 * 1024


def markers_of(value: Any) -> Iterator[Marker]:
    """All markers in a value, however deep; names of fields are not looked at."""
    todo = [value]
    while todo:
        match todo.pop():
            case str() as text:
                for _, _, marker in markers_in(text):
                    yield marker
            case dict() as fields:
                todo += fields.values()
            case list() as items:
                todo += items


def references(value: Any) -> frozenset[str]:
    """The ids of the steps whose artifacts the value names."""
    return frozenset(marker.step for marker in markers_of(value) if marker.root is Root.ARTIFACT)


def has_markers(value: Any) -> bool:
    """Whether there is anything to fill in."""
    return next(markers_of(value), None) is not None


def is_one_marker(text: str) -> bool:
    """Whether the text is nothing but one marker, and so becomes a value of any type."""
    return any(start == 0 and end == len(text) for start, end, _ in markers_in(text))


def render(value: Any, scope: Scope) -> Any:
    """The value with its markers filled in; the very same object if it has none. Unresolved if one stands for nothing.

    A text that is nothing but one marker becomes what it stands for, of whatever type; in any other text a string is
    inserted as it is and everything else as JSON.
    """
    return _rendered(value, scope, 0) if has_markers(value) else value


def _rendered(value: Any, scope: Scope, depth: int) -> Any:
    if depth > DEPTH:
        raise Unresolved(f"the config is nested more than {DEPTH} deep")
    match value:
        case str():
            return _rendered_text(value, scope)
        case dict():
            return {name: _rendered(inner, scope, depth + 1) for name, inner in value.items()}
        case list():
            return [_rendered(inner, scope, depth + 1) for inner in value]
        case _:
            return value


def _rendered_text(text: str, scope: Scope) -> Any:
    parts: list[str] = []
    done = length = 0
    for start, end, marker in markers_in(text):
        value = marker.value(scope)
        if start == 0 and end == len(text):
            return value
        parts += [text[done:start], value if isinstance(value, str) else msgspec.json.encode(value).decode()]
        done = end
        length += len(parts[-1])
        if length > TEXT_LENGTH:
            raise Unresolved(f"{{{{{marker.text}}}}} makes a text of more than {TEXT_LENGTH} characters")
    return "".join([*parts, text[done:]]) if parts else text
