"""Holds an item while a block of code works on it: renews its lease, and tells the server how the block ended."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ksana.client.blocking import BlockingWire
from ksana.client.calls import Call
from ksana.client.errors import ApiError, ClientError, Unavailable
from ksana.client.items import Item, bind
from ksana.client.looping import LoopingWire
from ksana.domain.policies import DEFAULT_RETRY_DELAY
from ksana.domain.signals import Fail, Retry

_RENEWALS: Final = 3
_LONGEST_ERROR: Final = 10_000

_log = logging.getLogger("ksana.client")


class Ways(NamedTuple):
    """How to speak of an item, as calls."""

    ack: Callable[..., Call[Item]]
    fail: Callable[..., Call[Item]]
    heartbeat: Callable[..., Call[Item]]
    release: Callable[..., Call[Item]]


def held_by(wire: Any, item: Item, lease: float, ways: Ways) -> Item:
    """The item, for a block to hold over this wire. Its lease, in seconds, begins now."""
    kind = BlockingHold if isinstance(wire, BlockingWire) else LoopingHold
    return bind(item, kind(wire, item, lease, ways))


class _Hold:
    """What both kinds have in common."""

    def __init__(self, item: Item, lease: float, ways: Ways) -> None:
        self._item = item
        self._lease = lease
        self._ways = ways
        self._pulled_at = time.monotonic()

    @property
    def _pause(self) -> float:
        return self._lease / _RENEWALS

    @property
    def _is_old(self) -> bool:
        """Whether it has waited for its turn among others, and may be somebody else's by now."""
        return time.monotonic() - self._pulled_at > self._pause

    def _renewal(self) -> Call[Item]:
        return self._ways.heartbeat(self._item, lease=self._lease)

    def _ending(self, error: BaseException | None) -> Call[Item]:
        item, ways = self._item, self._ways
        match error:
            case None:
                return ways.ack(item)
            case Retry():
                delay = DEFAULT_RETRY_DELAY if error.delay is None else error.delay
                return ways.fail(item, _text(error), retry_after=delay)
            case Fail():
                return ways.fail(item, _text(error), retryable=False)
            case Exception():
                _log.warning("%s failed and comes back later", item.job_id, exc_info=error)
                name, said = type(error).__name__, str(error)
                text = f"{name}: {said}" if said else name
                return ways.fail(item, text[:_LONGEST_ERROR], retry_after=DEFAULT_RETRY_DELAY)
            case _:
                # Somebody stops the program, which is no fault of the item.
                return ways.release(item)


class BlockingHold(_Hold):
    """For programs that block: a thread renews the lease."""

    word = "with"

    def __init__(self, wire: BlockingWire, item: Item, lease: float, ways: Ways) -> None:
        super().__init__(item, lease, ways)
        self._wire = wire
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def enter(self) -> None:
        if self._is_old:
            self._wire.make(self._renewal())
        self._is_over.clear()
        self._thread = threading.Thread(target=self._renew, name=f"ksana-{self._item.job_id}", daemon=True)
        self._thread.start()

    def leave(self, error: BaseException | None) -> bool:
        assert self._thread is not None
        self._is_over.set()
        self._thread.join()
        self._wire.make(self._ending(error))
        return isinstance(error, Exception)

    def _renew(self) -> None:
        while not self._is_over.wait(self._pause):
            try:
                self._wire.make(self._renewal())
            except ClientError as error:
                if _is_final(self._item, error):
                    return


class LoopingHold(_Hold):
    """For programs that await: a task renews the lease."""

    word = "async with"

    def __init__(self, wire: LoopingWire, item: Item, lease: float, ways: Ways) -> None:
        super().__init__(item, lease, ways)
        self._wire = wire
        self._task: asyncio.Task[None] | None = None

    async def enter(self) -> None:
        if self._is_old:
            await self._wire.make(self._renewal())
        self._task = asyncio.create_task(self._renew())

    async def leave(self, error: BaseException | None) -> bool:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})
        await self._wire.make(self._ending(error))
        return isinstance(error, Exception)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._pause)
            try:
                await self._wire.make(self._renewal())
            except ClientError as error:
                if _is_final(self._item, error):
                    return


def _is_final(item: Item, error: ClientError) -> bool:
    """Whether the item is lost. Whoever works on it hears so at the end; a server that cannot now is asked again."""
    _log.warning("the lease of %s was not renewed: %s", item.job_id, error)
    return isinstance(error, ApiError) and not isinstance(error, Unavailable)


def _text(error: BaseException) -> str:
    return str(error)[:_LONGEST_ERROR] or type(error).__name__
