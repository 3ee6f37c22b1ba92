"""One piece of work per key at a time: whoever asks while it is under way shares its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Flights(Generic[K, V]):
    """A crowd that needs the same name or client at once must not do the work once each."""

    def __init__(self) -> None:
        self._under_way: dict[K, asyncio.Task[V]] = {}

    async def join(self, key: K, start: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """The result of this key's work, started unless it is under way. It goes on if a waiter leaves."""
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(start())
            task.add_done_callback(lambda done: self._land(key, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Stop what is under way."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _land(self, key: K, task: asyncio.Task[V]) -> None:
        del self._under_way[key]
        # Every waiter may have left; looking at the error keeps asyncio from reporting it as forgotten.
        if not task.cancelled():
            task.exception()
