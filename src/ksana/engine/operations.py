"""Acts on many things in the background, with progress and a way to call them off. They live and end with the process
that began them: what was done stays done, and the rest can be asked for again."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from ksana.domain.errors import InvalidState, KsanaError, NotFound, StoreUnavailable
from ksana.domain.ports import Clock
from ksana.engine.loops import Backoff, rest

log = logging.getLogger(__name__)

MOST_ERRORS: Final = 20
MOST_AT_ONCE: Final = 8
"""How many operations may run at once."""
MOST_KEPT: Final = 100
_LANES: Final = 8
_TRIES: Final = 12
_FAULT: Final = "something went wrong on our side; the log has it"

Act = Callable[[int], Awaitable[object]]
"""Does it to the thing with this id; a KsanaError says why not."""


class OperationState(StrEnum):
    """How far an operation is."""

    RUNNING = "running"
    DONE = "done"
    CANCELED = "canceled"


@dataclass(slots=True)
class Operation:
    """One act on many things. `done` counts those it was done to, `failed` the others; the first of these are in
    `errors`."""

    id: str
    action: str
    actor: str
    reason: str
    total: int
    started_at: datetime
    state: OperationState = OperationState.RUNNING
    done: int = 0
    failed: int = 0
    errors: list[tuple[int, str]] = field(default_factory=list)
    ended_at: datetime | None = None


class Operations:
    """The operations of this process: those that run, and the last that did."""

    def __init__(self, clock: Clock, tell: Callable[[Operation], None]) -> None:
        self._clock = clock
        self._tell = tell
        self._known: dict[str, Operation] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._called_off: dict[str, asyncio.Event] = {}

    def begin(
        self,
        action: str,
        ids: Sequence[int],
        act: Act,
        *,
        actor: str = "",
        reason: str = "",
        per_second: float | None = None,
    ) -> Operation:
        """Do it to each of these, several at a time or one after the other at this rate."""
        if len(self._tasks) >= MOST_AT_ONCE:
            raise InvalidState(f"{MOST_AT_ONCE} operations are under way; wait for one to end, or cancel one")
        operation = Operation(
            id=secrets.token_hex(8),
            action=action,
            actor=actor,
            reason=reason,
            total=len(ids),
            started_at=self._clock.now(),
        )
        self._forget_old()
        self._known[operation.id] = operation
        stop = self._called_off[operation.id] = asyncio.Event()
        pause = None if per_second is None else timedelta(seconds=1 / per_second)
        task = asyncio.create_task(self._run(operation, deque(ids), act, pause, stop))
        self._tasks[operation.id] = task
        return operation

    def get(self, operation_id: str) -> Operation:
        found = self._known.get(operation_id)
        if found is None:
            raise NotFound(f"this process knows of no operation {operation_id!r}; it may have ended long ago")
        return found

    def all(self) -> list[Operation]:
        """Those that are known, the newest first."""
        return list(reversed(self._known.values()))

    async def cancel(self, operation_id: str) -> Operation:
        """Begin with no more of it, and wait for what is under way. One that is over stays as it is."""
        operation = self.get(operation_id)
        task = self._tasks.get(operation_id)
        if task is not None:
            self._called_off[operation_id].set()
            await asyncio.wait({task})
        return operation

    async def stop(self) -> None:
        """Call all of them off."""
        for operation_id in list(self._tasks):
            await self.cancel(operation_id)

    async def _run(
        self, operation: Operation, left: deque[int], act: Act, pause: timedelta | None, stop: asyncio.Event
    ) -> None:
        self._tell(operation)
        lanes = _LANES if pause is None else 1
        try:
            await asyncio.gather(*(self._lane(operation, left, act, pause, stop) for _ in range(lanes)))
        finally:
            is_whole = operation.done + operation.failed == operation.total
            operation.state = OperationState.DONE if is_whole else OperationState.CANCELED
            operation.ended_at = self._clock.now()
            del self._tasks[operation.id], self._called_off[operation.id]
            self._tell(operation)

    async def _lane(
        self, operation: Operation, left: deque[int], act: Act, pause: timedelta | None, stop: asyncio.Event
    ) -> None:
        while left and not stop.is_set():
            subject = left.popleft()
            error = await self._attempt(act, subject, stop)
            if error is None:
                operation.done += 1
            else:
                operation.failed += 1
                if len(operation.errors) < MOST_ERRORS:
                    operation.errors.append((subject, error))
            self._tell(operation)
            if pause is not None and left:
                await self._rest(stop, pause)

    async def _attempt(self, act: Act, subject: int, stop: asyncio.Event) -> str | None:
        """Do it, and give the reason if it cannot be done. A store that is away is waited for, but not for ever."""
        backoff = Backoff()
        for tries_left in reversed(range(_TRIES)):
            try:
                await act(subject)
            except StoreUnavailable as error:
                if not tries_left or stop.is_set():
                    return error.message
                await self._rest(stop, backoff.next())
            except KsanaError as error:
                return error.message
            except Exception:
                log.exception("an operation failed at %d and goes on", subject)
                return _FAULT
            else:
                return None
        raise AssertionError("the last try answers")

    async def _rest(self, stop: asyncio.Event, span: timedelta) -> None:
        """Wait that long, or until it is called off."""
        wake = asyncio.Event()
        watching = asyncio.ensure_future(stop.wait())
        watching.add_done_callback(lambda _: wake.set())
        try:
            await rest(self._clock, wake, span)
        finally:
            watching.cancel()

    def _forget_old(self) -> None:
        over = [id for id in self._known if id not in self._tasks]
        for id in over[: max(0, len(self._known) - MOST_KEPT + 1)]:
            del self._known[id]
