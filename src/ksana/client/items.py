"""Items of the queue, as values that can be held while one works on them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal, Protocol

import msgspec

from ksana.domain.errors import InvalidState

ObjectType = Literal["memory", "experience", "cognition"]
Action = Literal["verify", "revalidate", "decay", "archive", "reinstate-check"]
ItemPriority = Literal["low", "medium", "high"]

_HOLD: Final = "_hold_of_a_worker"


class Hold(Protocol):
    """Who renews the lease, and the words by which a block takes it; `enter` and `leave` are awaited or not."""

    word: str

    def enter(self) -> Any: ...

    def leave(self, error: BaseException | None) -> Any: ...


class Item(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """An item, as it stood when the server answered. One that was pulled has a `lease_token`, which goes back with
    whatever is said of it, so that a worker who has lost it is told so.

    `with item:`, or `async with item:` if an AsyncClient pulled it, holds it for as long as the block takes. A block
    that ends well acknowledges it. One that raises fails it: the exception is told to the server and to the log, and
    goes no further. One that is interrupted gives it back.
    """

    job_id: str
    queue: str
    type: str | None
    object_type: str | None
    object_id: str | None
    action: str | None
    payload: Any
    run_at: datetime
    priority: ItemPriority
    attempt: int
    max_attempts: int
    idempotency_key: str | None
    group_key: str | None = None
    status: Literal["queued", "running", "succeeded", "failed", "dead_letter"]
    last_error: str | None
    worker_id: str | None = None
    lease_until: datetime | None = None
    lease_token: str | None = None
    progress: Any = None
    output: Any = None
    audit_event_id: str | None = None
    next_action_at: datetime | None = None
    deduplicated: bool = False
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None

    def __enter__(self) -> Item:
        self._hold("with").enter()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return bool(self._hold("with").leave(error))

    async def __aenter__(self) -> Item:
        await self._hold("async with").enter()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return bool(await self._hold("async with").leave(error))

    def _hold(self, word: str) -> Any:
        hold: Hold | None = self.__dict__.get(_HOLD)
        if hold is None:
            raise InvalidState(f"nobody has pulled {self.job_id} here; `{word}` is for the items of a pull")
        if hold.word != word:
            raise InvalidState(f"write `{hold.word} item:` for an item that this kind of client has pulled")
        return hold


def bind(item: Item, hold: Hold) -> Item:
    """The item, for somebody to hold."""
    item.__dict__[_HOLD] = hold
    return item
