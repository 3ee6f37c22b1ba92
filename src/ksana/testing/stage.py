"""What is on stage in a rehearsal: a real engine on a store in a temporary directory, moved from one instant at which
something happens to the next. Everything here runs in the virtual loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from ksana.domain.errors import InvalidArgument
from ksana.domain.items import stored_queue
from ksana.domain.outcomes import AttemptContext, Outcome
from ksana.domain.ports import Begun, Store, Target
from ksana.engine.contexts import Contexts
from ksana.engine.engine import Engine, EngineOptions
from ksana.engine.keeper import Upkeep
from ksana.engine.queue_worker import QueueWorker
from ksana.handling.workers import HandlerWorkers
from ksana.periodic.handlers import Handler
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


class _Watched:
    """A function in its thread, for as long as somebody wants to know what comes of it."""

    def __init__(self, loop: VirtualLoop, tell: Callable[[Outcome], None]) -> None:
        self._loop = loop
        self._tell = tell
        self._begun: Begun | None = None
        self._is_over = False
        loop.outside += 1

    def over(self, begun: Begun | Outcome) -> Begun | Outcome:
        """The same, watched, unless it is over already."""
        if isinstance(begun, Outcome):
            self._end()
            return begun
        self._begun = begun
        return self

    def tell(self, outcome: Outcome) -> None:
        self._end()
        self._tell(outcome)

    def give_up(self) -> None:
        self._end()
        if self._begun is not None:
            self._begun.give_up()

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._loop.outside -= 1


class WatchedPython(PythonTarget):
    """Tells the loop of functions in threads, for which time does not pass."""

    def __init__(self, loop: VirtualLoop, functions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(functions, threads=_MANY)
        self._loop = loop

    def begin(
        self, context: AttemptContext, config: dict[str, Any], tell: Callable[[Outcome], None]
    ) -> Begun | Outcome:
        if self._is_async(config["function"]):
            return super().begin(context, config, tell)
        watched = _Watched(self._loop, tell)
        return watched.over(super().begin(context, config, watched.tell))

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
        self._handlers: list[QueueWorker] = []

    def handle(self, handlers: Sequence[Handler]) -> None:
        """Have these handlers see to what is enqueued from here on."""
        workers = HandlerWorkers(
            handlers,
            self.engine.queue,
            self.store,
            self.clock,
            Contexts(0, ""),
            holder="rehearsal",
            make_target=lambda functions, _: WatchedPython(self._loop, functions),
        )
        self._handlers += workers.workers

    def _load_targets(self, script: Script) -> dict[str, Target]:
        clock = self.clock
        targets = load_targets(TargetServices(sleep=clock.sleep, now=clock.now))
        policy = TargetPolicy.of(allow_loopback=True, allow_private=True)
        targets["http"] = HttpTarget(policy=policy, now=clock.now, courier=partial(_scripted, script))
        # Without an environment it knows no broker, and a test must not reach a real one.
        targets["celery"] = CeleryTarget(environ={}, sleep=clock.sleep)
        targets["python"] = WatchedPython(self._loop, self.functions)
        return targets

    async def open(self) -> None:
        await self.store.open()
        engine = self.engine
        await engine.join()
        self._duties = [asyncio.create_task(engine.planner.run()), asyncio.create_task(engine.runner.run())]
        self._loop.is_talking = lambda: engine.executing > 0 or any(worker.busy for worker in self._handlers)
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
            has_begun = await self._hand_out()
            if await self.store.lapsed(self.clock.now(), 1):
                await self.engine.reaper.attend()
            elif not has_begun:
                return
            await self._loop.at_rest()

    async def _hand_out(self) -> bool:
        """Give handlers what is due; answers whether there was something."""
        due_at = await self._next_item_at()
        if due_at is None or due_at > self.clock.now():
            return False
        return any([await worker.run_once() for worker in self._handlers])

    async def _next_item_at(self) -> datetime | None:
        queues = [stored_queue(worker.name) for worker in self._handlers]
        return await self.store.next_due_at(queues) if queues else None

    async def advance_to(self, until: datetime) -> None:
        """Let time pass, stopping wherever something happens."""
        end = (until - self.clock.start).total_seconds()
        await self.settle()
        while self._loop.time() < end:
            self._loop.move_to(min(end, *await self._next_moments()))
            await self.settle()

    async def _next_moments(self) -> list[float]:
        """Timers, and what is looked for rather than waited for: deadlines of callbacks, items for handlers."""
        held = await self.store.lapsed(_END_OF_TIME, _MANY)
        instants = [one.run.deadline_at for one in held if one.run.deadline_at is not None]
        if (due_at := await self._next_item_at()) is not None:
            instants.append(due_at)
        seconds = [(at - self.clock.start).total_seconds() for at in instants]
        timer = self._loop.next_timer
        moments = seconds if timer is None else [*seconds, timer]
        return [moment for moment in moments if moment > self._loop.time()]


def _scripted(script: Script, *made_of: Any) -> Courier:
    courier = ScriptedCourier(*made_of)
    courier.script = script
    return courier
