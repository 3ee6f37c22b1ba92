"""Time that passes when a test says so. It knows who sleeps until when, so a test of hours steps from wake to wake."""

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta

START = datetime(2030, 1, 1, 12, tzinfo=UTC)


class VirtualClock:
    """The one time line all nodes of a world live on."""

    def __init__(self, start: datetime = START) -> None:
        self.time = start
        self._start = start
        self._sleepers: list[tuple[datetime, int, NodeClock, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    def ticks(self) -> float:
        """Seconds since the beginning: what nobody can set."""
        return (self.time - self._start).total_seconds()

    def add_sleeper(self, clock: "NodeClock", until: datetime) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (until, next(self._numbers), clock, future))
        return future

    def sleepers_of(self, clock: "NodeClock") -> list[asyncio.Future[None]]:
        return [future for _, _, owner, future in self._sleepers if owner is clock and not future.done()]

    @property
    def next_wake_at(self) -> datetime | None:
        """When the first sleeper of a node that is not frozen wakes."""
        wakes = (until for until, _, owner, future in self._sleepers if not (future.done() or owner.is_frozen))
        return min(wakes, default=None)

    def move_to(self, instant: datetime) -> None:
        """Let time come to this instant and wake whoever slept until then."""
        self.time = max(self.time, instant)
        self.wake()

    def wake(self) -> None:
        left = []
        for sleeper in sorted(self._sleepers, key=lambda sleeper: sleeper[:2]):
            until, _, owner, future = sleeper
            if future.done():
                continue
            if until <= self.time and not owner.is_frozen:
                future.set_result(None)
            else:
                left.append(sleeper)
        self._sleepers = left


class NodeClock:
    """The clock of one node, which can be set wrong and stands still for a node that is frozen."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.is_frozen = False
        self._set_off = timedelta(0)

    def now(self) -> datetime:
        return self._clock.time + self._set_off

    def ticks(self) -> float:
        return self._clock.ticks()

    async def sleep(self, span: timedelta) -> None:
        if span > timedelta(0):
            await self.sleeper(span)

    def sleeper(self, span: timedelta) -> asyncio.Future[None]:
        """What is done once that much time has passed."""
        return self._clock.add_sleeper(self, self._clock.time + span)

    def set_off(self, by: timedelta) -> None:
        """Somebody sets the wall clock."""
        self._set_off += by

    def stop_for_good(self) -> None:
        """The node is gone: whoever slept on it does not wake."""
        for future in self._clock.sleepers_of(self):
            future.cancel()
