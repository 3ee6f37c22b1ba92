"""What is on stage in a rehearsal: a real engine on a store in a temporary directory, moved from one instant at which
something happens to the next. Everything here runs in the virtual loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from ksana.domain.errors import InvalidArgument
from ksana.domain.outcomes import AttemptContext, Outcome
from ksana.domain.ports import Store, Target
from ksana.engine.engine import Engine, EngineOptions
from ksana.engine.reaper import Upkeep
from ksana.targets.celery import CeleryTarget
from ksana.targets.http import HttpTarget, TargetPolicy
from ksana.targets.http.courier import Courier
from ksana.targets.python import PythonTarget
from ksana.targets.registry import load_targets
from ksana.targets.services import TargetServices
from ksana.testing.memory_store import MemoryStore
from ksana.testing.scripted_http import Script, ScriptedCourier
from ksana.testing.virtual_loop import VirtualLoop

_CALLBACKS: Final = "http://ksana.test/api/v1/callbacks"
_END_OF_TIME: Final = datetime(9999, 12, 31, tzinfo=UTC)
# There is one node and it does not die: it never has to say that it lives, nor to look whether something is due.
_NEVER: Final = timedelta(days=36_500)
_MANY: Final = 1000
_ROUNDS: Final = 20


class VirtualClock:
    """Where the loop stands, as wall-clock time."""

    def __init__(self, loop: VirtualLoop, start: datetime) -> None:
        self._loop = loop
        self.start = start

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self._loop.time())

    async def sleep(self, span: timedelta) -> None:
        await asyncio.sleep(max(0.0, span.total_seconds()))


class _WatchedPython(PythonTarget):
    """Tells the loop of functions in threads, for which time does not pass."""

    def __init__(self, loop: VirtualLoop, functions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(functions, threads=_MANY)
        self._loop = loop

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        if self._is_async(config["function"]):
            return await super().execute(context, config)
        self._loop.outside += 1
        try:
            return await super().execute(context, config)
        finally:
            self._loop.outside -= 1

    def _is_async(self, name: str) -> bool:
        try:
            return self._functions.find(name).is_async
        except InvalidArgument:
            # There is no such function, which ends the attempt at once.
            return True


class Stage:
    """One node, one clock."""

    def __init__(self, loop: VirtualLoop, directory: Path, start: datetime, script: Script) -> None:
        self._loop = loop
        self.clock = VirtualClock(loop, start)
        self.functions: dict[str, Callable[..., Any]] = {}
        self.store: Store = MemoryStore(directory, self.clock.now)
        self.targets = self._load_targets(script)
        options = EngineOptions(
            name="rehearsal",
            workers=_MANY,
            poll=_NEVER,
            lease=_NEVER,
            upkeep=Upkeep(retention=None),
            callback_base=_CALLBACKS,
        )
        self.engine = Engine(self.store, self.targets, options, clock=self.clock, ticks=loop.time)
        self._duties: list[asyncio.Task[None]] = []

    def _load_targets(self, script: Script) -> dict[str, Target]:
        clock = self.clock
        targets = load_targets(TargetServices(sleep=clock.sleep, now=clock.now))
        policy = TargetPolicy.of(allow_loopback=True, allow_private=True)
        targets["http"] = HttpTarget(policy=policy, now=clock.now, courier=partial(_scripted, script))
        # Without an environment it knows no broker, and a test must not reach a real one.
        targets["celery"] = CeleryTarget(environ={}, sleep=clock.sleep)
        targets["python"] = _WatchedPython(self._loop, self.functions)
        return targets

    async def open(self) -> None:
        await self.store.open()
        engine = self.engine
        await engine.join()
        self._duties = [asyncio.create_task(engine.planner.run()), asyncio.create_task(engine.runner.run())]
        self._loop.is_talking = lambda: engine.executing > 0
        await self.settle()

    async def close(self) -> None:
        """Cancel whatever is under way and put everything away."""
        self._loop.flow()
        own = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not own]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for target in self.targets.values():
            await target.close()
        await self.store.close()

    async def settle(self) -> None:
        """Let everything happen that is due at this instant."""
        await self._loop.at_rest()
        for _ in range(_ROUNDS):
            if not await self.store.lapsed(self.clock.now(), 1):
                return
            await self.engine.reaper.attend()
            await self._loop.at_rest()

    async def advance_to(self, until: datetime) -> None:
        """Let time pass, stopping wherever something happens."""
        end = (until - self.clock.start).total_seconds()
        await self.settle()
        while self._loop.time() < end:
            self._loop.move_to(min(end, *await self._next_moments()))
            await self.settle()

    async def _next_moments(self) -> list[float]:
        """Timers, and the deadlines of callbacks, which the engine looks for rather than waits for."""
        held = await self.store.lapsed(_END_OF_TIME, _MANY)
        instants = [one.run.deadline_at for one in held if one.run.deadline_at is not None]
        seconds = [(at - self.clock.start).total_seconds() for at in instants]
        timer = self._loop.next_timer
        moments = seconds if timer is None else [*seconds, timer]
        return [moment for moment in moments if moment > self._loop.time()]


def _scripted(script: Script, *made_of: Any) -> Courier:
    courier = ScriptedCourier(*made_of)
    courier.script = script
    return courier
