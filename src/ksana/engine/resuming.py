"""Coroutines that were begun by hand, without a task of their own, and then have to wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Resumed(Awaitable[_T], Generic[_T]):
    """The rest of a coroutine whose first step asked for `awaited`; `run` is that of the context it began in."""

    __slots__ = ("_awaited", "_coroutine", "_run")

    def __init__(self, coroutine: Coroutine[Any, Any, _T], run: Callable[..., Any], awaited: Any) -> None:
        self._coroutine = coroutine
        self._run = run
        self._awaited = awaited

    def __await__(self) -> Generator[Any, None, _T]:
        run, coroutine, awaited = self._run, self._coroutine, self._awaited
        try:
            while True:
                try:
                    answer = yield awaited
                except BaseException as error:
                    awaited = run(coroutine.throw, error)
                else:
                    awaited = run(coroutine.send, answer)
        except StopIteration as stop:
            value: _T = stop.value
            return value
