"""A step that somebody waits for while others are carried out with it, for stores that have one writer."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, TypeVar

StepT = TypeVar("StepT")


class Asked(Generic[StepT]):
    """A step on its way: what came of it is told to the one who asked, on the loop on which it was asked."""

    __slots__ = ("error", "future", "loop", "result", "step")

    def __init__(self, step: StepT, loop: asyncio.AbstractEventLoop) -> None:
        self.step = step
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        """Tell the one who asked, unless they have gone."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)
