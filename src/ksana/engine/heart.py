"""The heart: one small write keeps the lease on all runs of this node, and brings word of those taken from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from ksana.domain.errors import StoreUnavailable
from ksana.domain.nodes import NodeInfo
from ksana.domain.ports import Clock, Observer, Store
from ksana.engine.clock import ClockWatch
from ksana.engine.loops import Loop, StoreHealth
from ksana.engine.runner import Runner

_BEATS_PER_LEASE = 3
# Word that a run was canceled elsewhere comes with the beat, so a beat is never far away.
_LONGEST_INTERVAL = timedelta(seconds=1)


class Heart(Loop):
    """Beat, notice clock steps, cut off what overran."""

    name = "heart"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        runner: Runner,
        health: StoreHealth,
        observers: Sequence[Observer],
        *,
        node: NodeInfo,
        lease: timedelta,
        poll: timedelta,
        watch: ClockWatch,
        on_clock_jump: Callable[[], None],
        on_drain: Callable[[bool], None],
    ) -> None:
        super().__init__(clock, health, poll)
        self._store = store
        self._runner = runner
        self._observers = observers
        self._node = node
        self._lease = lease
        self._interval = min(lease / _BEATS_PER_LEASE, _LONGEST_INTERVAL)
        self._beat_at = node.started_at + self._interval
        self._watch = watch
        self._on_clock_jump = on_clock_jump
        self._on_drain = on_drain

    async def run_once(self) -> datetime | None:
        now = self._clock.now()
        self._look_at_clock(now)
        self._runner.cut_overruns()
        if now >= self._beat_at or self._beat_at - now > self._lease:
            await self._beat(now)
            self._beat_at = now + self._interval
        return self._beat_at

    def _look_at_clock(self, now: datetime) -> None:
        jump = self._watch.jump(now)
        if jump is not None:
            for observer in self._observers:
                observer.on_clock_jump(jump)
            self._on_clock_jump()

    async def _beat(self, now: datetime) -> None:
        try:
            heard = await self._store.beat(self._node.id, now, self._lease)
        except StoreUnavailable:
            # The store may have told of runs taken away, and forgotten them, in the answer that got lost.
            self._runner.doubt()
            raise
        for run_id, epoch in heard.taken:
            self._runner.let_go(run_id, epoch)
        self._on_drain(heard.draining)
        if not heard.alive:
            # The node was silent so long that it was forgotten. What it held has been taken back run by run.
            self._node = await self._store.join(self._node.name, now, self._lease)
            self._runner.node_id = self._node.id
