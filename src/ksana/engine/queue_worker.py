"""The worker that is built in: pulls items of a queue, has a function do what each asks for, and says what came of it.
It holds an item for as long as its function runs, and no longer than a minute after it was last heard of itself."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

import msgspec

from ksana.domain.errors import InvalidArgument, KsanaError, StoreUnavailable
from ksana.domain.items import Item, Report, item_of, lease_token, report_of, shown_queue
from ksana.domain.moves import Kept
from ksana.domain.outcomes import AttemptContext, Outcome, Verdict
from ksana.domain.policies import Retry
from ksana.domain.ports import Clock, Target
from ksana.domain.runs import Run
from ksana.domain.signals import is_ack
from ksana.domain.times import format_instant, parse_instant
from ksana.engine.contexts import Contexts
from ksana.engine.loops import Backoff, ended, rest
from ksana.engine.queue_verbs import HungUp

log = logging.getLogger(__name__)

LEASE = timedelta(minutes=1)
LONGEST = timedelta(hours=1)
"""How long a function may take over one item."""

_RENEWALS = 3
_WAIT = timedelta(seconds=5)
_AT_ONCE = 100


class Queue(Protocol):
    """What a worker says to its queue, as `QueueVerbs` has it. StoreUnavailable means that it may be tried again."""

    async def pull(
        self,
        queue: str,
        holder: str,
        *,
        limit: int,
        lease: timedelta,
        wait: timedelta,
        types: tuple[str, ...],
        hung_up: HungUp,
    ) -> list[Run]: ...

    async def ack(self, run_id: int, token: str, artifact: bytes | None, report: Report | None) -> object: ...

    async def fail(
        self,
        run_id: int,
        error: str,
        *,
        token: str,
        delay: timedelta = timedelta(0),
        is_final: bool = False,
        report: Report | None = None,
    ) -> object: ...

    async def extend(self, run_id: int, lease: timedelta, token: str, report: Report | None) -> object: ...

    async def release(self, run_id: int, token: str) -> object: ...


class Memory(Protocol):
    """Where what was told of items is kept, as a store has it."""

    async def kept(self, run_ids: Iterable[int]) -> dict[int, Kept]: ...


Show = Callable[[Run, Item, Any], Any]
"""How a function is given an item, together with the progress that an earlier attempt left."""


class _Notes:
    """What a function wants remembered of how far it has come; it may say so from any thread."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self._last: bytes | None = None
        self._told: bytes | None = None
        self._loop = asyncio.get_running_loop()

    def keep(self, said: bytes) -> None:
        self._last = said
        self._loop.call_soon_threadsafe(self.news.set)

    def untold(self) -> Report | None:
        """What nobody knows yet, if there is something."""
        return None if self._last is self._told or self._last is None else Report(msgspec.json.decode(self._last))

    async def tell(self, say: Callable[[Report | None], Awaitable[object]]) -> None:
        """Say it; it counts as told once that has worked."""
        self.news.clear()
        last = self._last
        await say(self.untold())
        self._told = last


class QueueWorker:
    """Works for one queue, on at most `capacity` items at once.

    An item is done by the function that is called like its type, else by the one that is called like the queue; items
    for which there is neither are left to others. `limits` say how many items a function may have at once, where that
    is fewer; a queue that is pulled whole waits until each of its functions could take the next.
    """

    def __init__(
        self,
        queue: Queue,
        memory: Memory,
        clock: Clock,
        target: Target,
        contexts: Contexts,
        *,
        name: str,
        holder: str,
        functions: Collection[str],
        capacity: int,
        limits: Mapping[str, int] | None = None,
        show: Show | None = None,
        retry: Retry | None = None,
    ) -> None:
        self._queue = queue
        self._memory = memory
        self._clock = clock
        self._target = target
        self._contexts = contexts
        self.name = name
        self._holder = holder
        self._functions = frozenset(functions)
        self._types = () if name in self._functions else tuple(sorted(self._functions))
        self._capacity = capacity
        self._limits = limits or {}
        self._show = show or shown_item
        self._retry = retry or Retry()
        self._under_way: dict[asyncio.Task[None], Run] = {}
        self._freed = asyncio.Event()
        self._stopped = asyncio.Event()
        self._quiet = asyncio.Event()

    @property
    def busy(self) -> int:
        """On how many items it works."""
        return len(self._under_way)

    async def run_once(self) -> int:
        """Begin with what is due, without waiting for more; answers how many items that were."""
        free = self._free()
        runs = [] if free <= 0 else await self._pull(free, timedelta(0))
        self._begin(runs)
        return len(runs)

    async def run(self) -> None:
        """Pull and work until stopped."""
        backoff = Backoff()
        while not self._stopped.is_set():
            self._freed.clear()
            free = 0 if self._quiet.is_set() else self._free()
            if free <= 0:
                await self._freed.wait()
                continue
            try:
                runs = await self._pull(free, _WAIT)
            except KsanaError as error:
                log.warning("cannot pull from %s: %s", self.name, error)
                await rest(self._clock, self._freed, backoff.next())
                continue
            except Exception:
                log.exception("pulling from %s failed and goes on", self.name)
                await rest(self._clock, self._freed, backoff.next())
                continue
            backoff.reset()
            if self._stopped.is_set():
                # They were on their way, so nobody waits for them to be done.
                for run in runs:
                    await self._give_back(run)
            else:
                self._begin(runs)

    async def stop(self, grace: timedelta) -> None:
        """Pull no more, wait for what is under way up to the grace period, and give the rest back."""
        self._stopped.set()
        self._quiet.set()
        self._freed.set()
        await ended(self._clock, list(self._under_way), grace)
        for task, run in list(self._under_way.items()):
            task.cancel()
            await self._give_back(run)

    async def _give_back(self, run: Run) -> None:
        await self._said(run, partial(self._queue.release, run.id, lease_token(run)), tries=1)

    def drain(self, is_draining: bool) -> None:
        """Pull no more and end what there is, or pull again."""
        if is_draining:
            self._quiet.set()
        elif not self._stopped.is_set() and self._quiet.is_set():
            self._quiet.clear()
            self._freed.set()

    def _free(self) -> int:
        """How many items may be pulled, whichever of the functions they turn out to be for."""
        busy = Counter(map(self._function_of, self._under_way.values()))
        spare = [limit - busy[name] for name, limit in self._limits.items()]
        return min(self._capacity - len(self._under_way), *spare, _AT_ONCE)

    def _function_of(self, run: Run) -> str:
        return run.step if run.step in self._functions else self.name

    def _begin(self, runs: Iterable[Run]) -> None:
        for run in runs:
            task = asyncio.create_task(self._work(run))
            self._under_way[task] = run
            task.add_done_callback(self._done)

    async def _pull(self, limit: int, wait: timedelta) -> list[Run]:
        return await self._queue.pull(
            self.name,
            self._holder,
            limit=limit,
            lease=LEASE,
            wait=wait,
            types=self._types,
            hung_up=self._quiet.wait,
        )

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        self._freed.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("an item of %s was dropped, its lease will lapse", self.name, exc_info=error)

    async def _work(self, run: Run) -> None:
        item, notes = item_of(run), _Notes()
        doing = asyncio.ensure_future(self._do(run, item, notes))
        holding = asyncio.ensure_future(self._hold(run, notes))
        try:
            await asyncio.wait({doing, holding}, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                await self._settle(run, item, doing.result(), notes.untold())
        finally:
            doing.cancel()
            holding.cancel()

    async def _do(self, run: Run, item: Item, notes: _Notes) -> Outcome:
        context = await self._context(run, item, notes)
        shown = self._show(run, item, context.checkpoint)
        return await self._target.execute(context, {"function": self._function_of(run), "args": [shown], "kwargs": {}})

    async def _kept(self, run: Run) -> Kept | None:
        """What an earlier attempt left. A store that is away is waited for while the item is held: it would count as
        failed without having been tried."""
        backoff = Backoff()
        while True:
            try:
                return (await self._memory.kept([run.id])).get(run.id)
            except StoreUnavailable:
                await self._clock.sleep(backoff.next())

    async def _context(self, run: Run, item: Item, notes: _Notes) -> AttemptContext:
        kept = await self._kept(run) if run.attempt > 1 else None
        return AttemptContext(
            run_id=run.id,
            job_id=None,
            job_ref=f"job_{run.id}",
            job_name=run.step or self.name,
            planned_at=run.due_at,
            triggered_at=run.created_at,
            attempt=run.attempt,
            fence=run.epoch,
            trace_id=self._contexts.trace_id(run.id),
            timeout=LONGEST,
            connect_timeout=LONGEST,
            input=item.payload,
            checkpoint=report_of(kept).progress,
            keep=notes.keep,
        )

    async def _hold(self, run: Run, notes: _Notes) -> None:
        """Renew the lease in time, and pass on what the function says. Returns if the item is somebody else's."""
        backoff, pause = Backoff(), LEASE / _RENEWALS
        while True:
            await rest(self._clock, notes.news, pause)
            try:
                await notes.tell(partial(self._queue.extend, run.id, LEASE, lease_token(run)))
            except StoreUnavailable:
                pause = backoff.next()
            except KsanaError as error:
                log.warning("job_%d is no longer ours: %s", run.id, error)
                return
            else:
                backoff.reset()
                pause = LEASE / _RENEWALS

    async def _settle(self, run: Run, item: Item, outcome: Outcome, untold: Report | None) -> None:
        fail = partial(self._queue.fail, run.id, token=lease_token(run), report=untold)
        match outcome.verdict:
            case Verdict.SUCCESS:
                await self._acknowledge(run, item, outcome.result)
            case Verdict.RETRY:
                delay = outcome.retry_after or self._retry.delay_after(run.failures + 1)
                await self._said(run, partial(fail, outcome.error, delay=delay))
            case _:
                await self._said(run, partial(fail, outcome.error, is_final=True))

    async def _acknowledge(self, run: Run, item: Item, result: bytes | None) -> None:
        token = lease_token(run)
        try:
            await self._said(run, partial(self._queue.ack, run.id, token, *_settled(item, result)))
        except InvalidArgument as error:
            # It is done, and would be done again.
            await self._said(run, partial(self._queue.fail, run.id, error.message, token=token, is_final=True))

    async def _said(self, run: Run, say: Callable[[], Awaitable[object]], tries: int = 20) -> None:
        """Say what became of an item, again and again while the store is away. InvalidArgument if it cannot be said
        like this."""
        backoff = Backoff()
        for _ in range(tries):
            try:
                await say()
                return
            except StoreUnavailable:
                await self._clock.sleep(backoff.next())
            except InvalidArgument:
                raise
            except KsanaError as error:
                log.warning("what became of job_%d came too late: %s", run.id, error)
                return
        log.warning("the store is away; the lease of job_%d will lapse", run.id)


def shown_item(run: Run, item: Item, progress: Any) -> dict[str, Any]:
    """An item as functions are given it."""
    return {
        "job_id": f"job_{run.id}",
        "queue": shown_queue(run.queue),
        "type": run.step,
        "payload": item.payload,
        "run_at": format_instant(run.due_at, "micros"),
        "attempt": run.failures,
        "max_attempts": item.max_attempts,
        "progress": progress,
        **item.extras,
    }


def _settled(item: Item, result: bytes | None) -> tuple[bytes | None, Report | None]:
    """What a function that is done hands on, and what it says of the object it has seen to."""
    said = None if result is None else msgspec.json.decode(result)
    if is_ack(said):
        output = said.get("output")
        return None if output is None else msgspec.json.encode(output), _report(said)
    # Anybody may return fields called like these; only of an object do they mean this.
    if isinstance(said, dict) and "object_type" in item.extras:
        return result, _report(said)
    return result, None


def _report(said: Mapping[str, Any]) -> Report | None:
    audit_event_id, next_at = said.get("audit_event_id"), said.get("next_action_at")
    if audit_event_id is None and next_at is None:
        return None
    if audit_event_id is not None and not isinstance(audit_event_id, str):
        raise InvalidArgument.of("audit_event_id", "must be text")
    return Report(None, audit_event_id, None if next_at is None else parse_instant(next_at, "next_action_at"))
