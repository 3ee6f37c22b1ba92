"""A call described as data: what is asked, how the answer is read, and whether asking twice does harm."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from enum import Enum
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import urlencode

import msgspec

T = TypeVar("T")


class Repeat(Enum):
    """When a call may be made again."""

    ALWAYS = "always"
    """Doing it twice is doing it once."""
    IF_NOT_DONE = "if not done"
    """Only if it is certain that nothing was done the first time."""


class Call(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One request and how its answer is read."""

    method: str
    path: str
    decode: Callable[[bytes], T]
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    headers: Mapping[str, str] = {}
    repeat: Repeat = Repeat.ALWAYS
    held_back: float = 0
    """For how many seconds the server may hold the answer back on purpose."""
    is_done_when_gone: bool = False
    """Told to do it again, the server may answer that it is no longer there: then it was done."""

    @property
    def target(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


class Pause(msgspec.Struct, frozen=True):
    """Let so many seconds pass. What comes back is a clock that never goes back, in seconds."""

    seconds: float


Conversation: TypeAlias = Generator[Call[Any] | Pause, Any, T]
"""Several calls with pauses in between, each sent back what the server answered."""


class Pages(msgspec.Struct, Generic[T], frozen=True):
    """A list in parts: the first, and the call for the next (None after the last) given the items of the last one."""

    first: Call[list[T]]
    next: Callable[[Call[list[T]], list[T]], Call[list[T]] | None]


def numbered(
    path: str, decode: Callable[[bytes], list[T]], query: tuple[tuple[str, str], ...], page_size: int
) -> Pages[T]:
    """A list whose parts are asked for by their numbers."""

    def part(number: int) -> Call[list[T]]:
        paged = (*query, ("page_size", str(page_size)), ("page", str(number)))
        return Call(method="GET", path=path, decode=decode, query=paged)

    def following(last: Call[list[T]], items: list[T]) -> Call[list[T]] | None:
        return part(int(dict(last.query)["page"]) + 1) if len(items) == page_size else None

    return Pages(part(1), following)


def json_body(fields: Mapping[str, Any]) -> bytes:
    """Fields as a body; what is None was not said."""
    return msgspec.json.encode({name: value for name, value in fields.items() if value is not None})


def query_of(**fields: str | int | bool | None) -> tuple[tuple[str, str], ...]:
    """Fields as a query; what is None or empty was not said."""
    return tuple((name, _text(value)) for name, value in fields.items() if value is not None and value != "")


def nothing(_: bytes) -> None:
    """For answers without a body."""


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
