"""Turns descriptions into methods: the same description is called by a Client and awaited by an AsyncClient."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from typing import Any, Generic, ParamSpec, TypeVar, overload

from ksana.client.blocking import BlockingWire
from ksana.client.calls import Call, Pages
from ksana.client.looping import LoopingWire
from ksana.client.wires import Wire

P = ParamSpec("P")
T = TypeVar("T")
W_co = TypeVar("W_co", bound=Wire, covariant=True)


class Room(Generic[W_co]):
    """Calls that belong together, and the wire that carries them."""

    def __init__(self, wire: W_co) -> None:
        self._wire: Any = wire


class Verb(Generic[P, T]):
    """A method made of the description of a call."""

    def __init__(self, describe: Callable[P, Call[T] | Generator[Any, Any, T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, room: Room[BlockingWire], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, room: Room[LoopingWire], owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, room: None, owner: type) -> Verb[P, T]: ...
    def __get__(self, room: Room[Any] | None, owner: type) -> Any:
        if room is None:
            return self
        wire = room._wire

        @functools.wraps(self._describe)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return self.made_by(wire, *args, **kwargs)

        return method

    def made_by(self, wire: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
        """What the wire makes of it."""
        return wire.make(self._describe(*args, **kwargs))


class Listing(Generic[P, T]):
    """A method made of the description of a list in pages."""

    def __init__(self, describe: Callable[P, Pages[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, room: Room[BlockingWire], owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, room: Room[LoopingWire], owner: type) -> Callable[P, AsyncIterator[T]]: ...
    @overload
    def __get__(self, room: None, owner: type) -> Listing[P, T]: ...
    def __get__(self, room: Room[Any] | None, owner: type) -> Any:
        if room is None:
            return self
        wire = room._wire

        @functools.wraps(self._describe)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return wire.each(self._describe(*args, **kwargs))

        return method
