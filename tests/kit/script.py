"""A target that does as it is told: it answers with the outcomes given, takes the time given, hangs, or raises."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ksana.domain.errors import InvalidArgument
from ksana.domain.outcomes import SUCCESS, AttemptContext, Outcome, Verdict
from tests.kit.clock import NodeClock

FAIL = Outcome(Verdict.FAIL, error="said no")
RETRY = Outcome(Verdict.RETRY, error="said not now")
WAIT = Outcome(Verdict.WAIT)
TIMED_OUT = Outcome(Verdict.RETRY, error="took too long", timed_out=True)


class Reply(msgspec.Struct, frozen=True):
    """How one attempt goes: after how long, and with what answer or exception; `hangs` means until told or cut off."""

    outcome: Outcome | BaseException | None = SUCCESS
    after: timedelta = timedelta(0)
    hangs: bool = False
    is_deaf: bool = False
    """It goes on when it is canceled."""


class Delivery(msgspec.Struct, frozen=True):
    """An attempt as the target saw it."""

    context: AttemptContext
    at: datetime
    node: str

    @property
    def run_id(self) -> int:
        return self.context.run_id

    @property
    def planned_at(self) -> datetime:
        return self.context.planned_at


class Script:
    """What the targets of all nodes do and have seen."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.canceled: list[Delivery] = []
        self.running: dict[tuple[int, int, str], Delivery] = {}
        self.most_at_once: dict[int | None, int] = defaultdict(int)
        self.always = Reply()
        self.has_made_wait = False
        self.improvise: Callable[[AttemptContext], Reply] | None = None
        self.witness: Callable[[Delivery], Awaitable[None]] | None = None
        """Sees every delivery before it is answered."""
        self._next: deque[Reply] = deque()
        self._of_job: dict[int | None, deque[Reply]] = defaultdict(deque)
        self._hanging: dict[int, asyncio.Future[Outcome]] = {}
        self._ever_hung: list[asyncio.Future[Outcome]] = []

    @property
    def count(self) -> int:
        return len(self.deliveries)

    @property
    def slots(self) -> list[datetime]:
        """The planned instant of each delivery, in order."""
        return [delivery.planned_at for delivery in self.deliveries]

    @property
    def times(self) -> list[datetime]:
        """When each delivery came."""
        return [delivery.at for delivery in self.deliveries]

    def of(self, run_id: int) -> list[Delivery]:
        return [delivery for delivery in self.deliveries if delivery.run_id == run_id]

    def replies(self, *replies: Reply | Outcome | BaseException, job_id: int | None = None) -> None:
        """Say how the next attempts go (of one job, or of whichever comes)."""
        queue = self._next if job_id is None else self._of_job[job_id]
        queue.extend(reply if isinstance(reply, Reply) else Reply(reply) for reply in replies)

    def answer(self, run_id: int, outcome: Outcome = SUCCESS) -> None:
        """End an attempt that hangs."""
        self._hanging.pop(run_id).set_result(outcome)

    def close(self) -> None:
        """Cancel whatever hangs, even if it is deaf. A run that was delivered again may hang more than once."""
        for future in self._ever_hung:
            future.cancel()

    def choose(self, context: AttemptContext) -> Reply:
        if self.improvise is not None:
            return self.improvise(context)
        own = self._of_job[context.job_id]
        if own:
            return own.popleft()
        return self._next.popleft() if self._next else self.always

    def hang(self, run_id: int) -> asyncio.Future[Outcome]:
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._hanging[run_id] = future
        self._ever_hung.append(future)
        return future


class ScriptedTarget:
    """One node's face of the script."""

    kind = "script"

    def __init__(self, script: Script, clock: NodeClock, node: str) -> None:
        self._script = script
        self._clock = clock
        self._node = node
        self._blocked: set[asyncio.Future[Any]] = set()

    @property
    def blocked(self) -> int:
        """How many attempts stand still until time passes or they are told."""
        return sum(not future.done() for future in self._blocked)

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        if unknown := config.keys() - {"awaits_callback"}:
            raise InvalidArgument.of(f"target.config.{min(unknown)}", "is unknown")
        return {"awaits_callback": False, **config}

    def awaits_callback(self, config: dict[str, Any], input: Any = None) -> bool:
        return bool(config["awaits_callback"]) or (isinstance(input, dict) and "call back" in input)

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        script = self._script
        delivery = Delivery(context, self._clock.now(), self._node)
        script.deliveries.append(delivery)
        key = (context.run_id, context.fence, self._node)
        script.running[key] = delivery
        at_once = sum(other.context.job_id == context.job_id for other in script.running.values())
        script.most_at_once[context.job_id] = max(script.most_at_once[context.job_id], at_once)
        try:
            if script.witness is not None:
                await script.witness(delivery)
            return await self._play(script.choose(context), context)
        except asyncio.CancelledError:
            script.canceled.append(delivery)
            raise
        finally:
            script.running.pop(key, None)

    async def _play(self, reply: Reply, context: AttemptContext) -> Outcome:
        if reply.after:
            await self._block(self._clock.sleeper(reply.after), reply)
        if reply.hangs:
            outcome: Outcome = await self._block(self._script.hang(context.run_id), reply)
            return outcome
        self._script.has_made_wait |= reply.outcome is WAIT
        if isinstance(reply.outcome, BaseException):
            raise reply.outcome
        return reply.outcome  # type: ignore[return-value]  # None is what a broken target answers

    async def _block(self, future: asyncio.Future[Any], reply: Reply) -> Any:
        self._blocked.add(future)
        try:
            while True:
                try:
                    return await (asyncio.shield(future) if reply.is_deaf else future)
                except asyncio.CancelledError:
                    if not reply.is_deaf or future.cancelled():
                        raise
                    self._blocked.discard(future)
        finally:
            self._blocked.discard(future)

    async def close(self) -> None: ...
