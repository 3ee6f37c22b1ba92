"""The horizon of a node: when there will be something to claim, as far as it knows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime

from ksana.domain.errors import StoreUnavailable
from ksana.domain.ports import Store
from ksana.domain.states import State
from ksana.engine.loops import StoreHealth
from ksana.engine.results import Result


class Horizon:
    """The next due instant of these queues. `is_known` is whether the store need not be asked for it."""

    def __init__(self, store: Store, health: StoreHealth, queues: Sequence[str], wake: asyncio.Event) -> None:
        self.next_due_at: datetime | None = None
        self.is_known = True
        self._store = store
        self._health = health
        self._queues = queues
        self._wake = wake

    def look_forward(self, results: Iterable[Result]) -> None:
        """Be there when a run that is tried again comes due."""
        again = [move.run.due_at for move, _ in results if move.run.state is State.RETRYING]
        soonest = min(again, default=None)
        if soonest is not None and (self.next_due_at is None or soonest < self.next_due_at):
            self.next_due_at = soonest
            self._wake.set()

    async def learn(self) -> None:
        """Ask when there will be something to claim; most often more work comes before."""
        self.is_known = True
        try:
            due_at = await self._store.next_due_at(self._queues)
        except StoreUnavailable as error:
            self._health.failed(error)
            return
        if due_at is not None and (self.next_due_at is None or due_at < self.next_due_at):
            self.next_due_at = due_at
            self._wake.set()
