"""What differs between two JSON values, place by place. Walks and never recurses: what people send may be deep."""

from __future__ import annotations

from typing import Any, NamedTuple

MOST = 500
"""How many differences are told of two values."""


class Difference(NamedTuple):
    """A place at which two values differ, and what stands there; what is not there is None."""

    path: str
    left: Any
    right: Any


def differences(left: Any, right: Any, most: int = MOST) -> list[Difference]:
    """The places at which two values differ, in their order, at most so many. Objects are compared by their names and
    lists by their positions, as deep as both sides have them."""
    found: list[Difference] = []
    todo: list[Difference] = [Difference("", left, right)]
    while todo and len(found) < most:
        path, one, other = place = todo.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            names = [*one, *(name for name in other if name not in one)]
            inner = [Difference(f"{path}.{name}" if path else name, one.get(name), other.get(name)) for name in names]
            todo += reversed(inner)
        elif isinstance(one, list) and isinstance(other, list):
            size = max(len(one), len(other))
            todo += [Difference(f"{path}[{i}]", _at(one, i), _at(other, i)) for i in reversed(range(size))]
        elif type(one) is not type(other) or one != other:
            found.append(place)
    return found


def _at(values: list[Any], place: int) -> Any:
    return values[place] if place < len(values) else None
