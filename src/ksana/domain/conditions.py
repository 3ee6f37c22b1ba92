"""Conditions of steps: comparisons of artifacts, parameters and plain values, joined by and, or, not.

    fetch.artifact.count > 0 and params.mode in ["full", 'fast']

They have a grammar of their own: no names but markers, no calls. What a marker without a value stands for is null here,
so a condition can ask whether something is there.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import ge, gt, le, lt
from typing import Any

from ksana.domain.condition_grammar import Compared, Joined, Listed, Node, Not, Operand, parse_condition
from ksana.domain.markers import Marker, Scope, Unresolved

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def check_condition(condition: str) -> None:
    """InvalidArgument if this is no condition; the message says where it stops making sense."""
    parse_condition(condition)


def holds(condition: str, scope: Scope) -> bool:
    """Whether the condition is met. Unresolved if it compares what has no order."""
    return bool(_value(parse_condition(condition), scope))


def markers_of_condition(condition: str) -> list[Marker]:
    """The markers a condition names."""
    found: list[Marker] = []
    todo = [parse_condition(condition)]
    while todo:
        match todo.pop():
            case Operand(value=Marker() as marker):
                found.append(marker)
            case Operand():
                pass
            case Not(of=inner):
                todo.append(inner)
            case Joined(parts=parts) | Listed(items=parts):
                todo += parts
            case Compared(left=left, right=right):
                todo += [left, right]
    return found


def _value(node: Node, scope: Scope) -> Any:
    match node:
        case Operand(value=Marker() as marker):
            return _found(marker, scope)
        case Operand(value=value):
            return value
        case Not(of=inner):
            return not _value(inner, scope)
        case Joined(word="and", parts=parts):
            return all(_value(part, scope) for part in parts)
        case Joined(parts=parts):
            return any(_value(part, scope) for part in parts)
        case Listed(items=items):
            return [_value(item, scope) for item in items]
        case Compared(operator=operator, left=left, right=right):
            return _compare(operator, _value(left, scope), _value(right, scope))


def _found(marker: Marker, scope: Scope) -> Any:
    try:
        return marker.value(scope)
    except Unresolved:
        return None


def _compare(operator: str, left: Any, right: Any) -> bool:
    match operator:
        case "==":
            return _is_same(left, right)
        case "!=":
            return not _is_same(left, right)
        case "in":
            return _is_in(left, right)
        case "not in":
            return not _is_in(left, right)
        case _:
            if not (_is_number(left) and _is_number(right)) and not (isinstance(left, str) and isinstance(right, str)):
                raise Unresolved(
                    f"{_kind(left)} {operator} {_kind(right)}: only two numbers or two texts have an order"
                )
            return _ORDERS[operator](left, right)


def _is_in(left: Any, right: Any) -> bool:
    match right:
        case list():
            return any(_is_same(left, one) for one in right)
        case str() if isinstance(left, str):
            return left in right
        case dict() if isinstance(left, str):
            return left in right
        case _:
            raise Unresolved(f"{_kind(left)} in {_kind(right)}: look for a value in a list, or for a text in another")


def _is_same(left: Any, right: Any) -> bool:
    # To Python, true is 1; in JSON it is not.
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"
