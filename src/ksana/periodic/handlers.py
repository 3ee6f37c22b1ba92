"""Handlers written down in code: functions that see to the items of a queue which somebody else fills."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, get_args

import msgspec

from ksana.client.items import Action, ObjectType
from ksana.client.queue import GOVERNANCE
from ksana.domain.errors import AlreadyExists, InvalidArgument, Problem

DEFAULT_CONCURRENCY: Final = 4

_MOST: Final = 1000
_QUEUE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,63}")
_TYPE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]{0,127}")
_ABOUT_OBJECTS: Final = frozenset(f"{kind}.{action}" for kind in get_args(ObjectType) for action in get_args(Action))
_TAKES_AN_ITEM: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


class Handler(msgspec.Struct, frozen=True):
    """A function for the items of one type in a queue, or for all that have no handler of their own there."""

    queue: str
    type: str | None
    concurrency: int
    function: Callable[..., Any]

    @property
    def name(self) -> str:
        """What the worker of the queue calls it."""
        return self.type or self.queue


def handler_of(name: str, queue: str | None, concurrency: int, function: Callable[..., Any]) -> Handler:
    """What `@app.handler` means. Without a queue, `memory.verify` and its like are types of items about objects, and
    any other name is that of a queue."""
    problems: list[Problem] = []
    if queue is None and name in _ABOUT_OBJECTS:
        queue = GOVERNANCE
    type = None if queue in (None, name) else name
    if type is not None and not _TYPE.fullmatch(type):
        problems.append(Problem("name", f"{type!r} can be no type; write letters, digits and . _ / : - only"))
    if not _QUEUE.fullmatch(queue or name):
        problems.append(Problem("queue", f"{queue or name!r} can be no queue; write letters, digits and . _ / - only"))
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or not 1 <= concurrency <= _MOST:
        problems.append(Problem("concurrency", f"must be a whole number from 1 to {_MOST}"))
    if not _takes_an_item(function):
        problems.append(Problem("function", "must take the item as its first parameter: def handle(item): …"))
    if problems:
        raise InvalidArgument(problems)
    return Handler(queue or name, type, concurrency, function)


def refuse_doubles(handlers: Iterable[Handler]) -> None:
    """AlreadyExists if two handlers want the same items."""
    seen: set[tuple[str, str | None]] = set()
    for handler in handlers:
        if (handler.queue, handler.type) in seen:
            what = f"items of the type {handler.type!r}" if handler.type else "the items"
            raise AlreadyExists(f"two handlers see to {what} in the queue {handler.queue!r}; leave one of them out")
        seen.add((handler.queue, handler.type))


def _takes_an_item(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        # Some functions written in C tell nothing about their parameters.
        return callable(function)
    return any(parameter.kind in _TAKES_AN_ITEM for parameter in parameters)
