"""The workers of a program's handlers: one for each, but for queues in which one of them takes what the others leave,
which are pulled as a whole."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from ksana.domain.errors import NotFound
from ksana.domain.policies import Retry
from ksana.domain.ports import Clock
from ksana.engine.contexts import Contexts
from ksana.engine.queue_worker import Memory, Queue, QueueWorker
from ksana.handling.shown import shown
from ksana.periodic.handlers import Handler
from ksana.targets.python import PythonTarget

MakeTarget = Callable[[Mapping[str, Callable[..., Any]], int], PythonTarget]
"""What calls these functions, in at most so many threads."""


def _target(functions: Mapping[str, Callable[..., Any]], threads: int) -> PythonTarget:
    return PythonTarget(functions, threads=threads)


class HandlerWorkers:
    """Workers for these handlers, on queues that are spoken to as `queue` has it."""

    def __init__(
        self,
        handlers: Iterable[Handler],
        queue: Queue,
        memory: Memory,
        clock: Clock,
        contexts: Contexts,
        *,
        holder: str,
        retry: Retry | None = None,
        make_target: MakeTarget | None = None,
    ) -> None:
        self._targets: list[PythonTarget] = []
        self.workers: list[QueueWorker] = []
        for together in _teams(handlers):
            functions = {handler.name: handler.function for handler in together}
            limits = {handler.name: handler.concurrency for handler in together}
            # Threads of their own: what waits for one is held already, and others might have done it.
            target = (make_target or _target)(functions, sum(limits.values()))
            worker = QueueWorker(
                queue,
                memory,
                clock,
                target,
                contexts,
                name=together[0].queue,
                holder=holder,
                functions=functions,
                capacity=sum(limits.values()),
                limits=limits,
                show=shown,
                retry=retry,
            )
            self._targets.append(target)
            self.workers.append(worker)

    @asynccontextmanager
    async def at_work(self, grace: timedelta) -> AsyncIterator[None]:
        """Pull and work; at the end finish what was begun, or give it back."""
        try:
            async with at_work(self.workers, grace):
                yield
        finally:
            for target in self._targets:
                await target.close()


@asynccontextmanager
async def at_work(workers: Sequence[QueueWorker], grace: timedelta) -> AsyncIterator[None]:
    """These workers pull; at the end they finish what they have begun, or give it back."""
    loops = [asyncio.create_task(worker.run()) for worker in workers]
    try:
        yield
    finally:
        await asyncio.gather(*(worker.stop(grace) for worker in workers))
        await asyncio.gather(*loops)


def of_queues(handlers: Sequence[Handler], queues: Collection[str]) -> list[Handler]:
    """The handlers of these queues; of all, if none is named. InvalidArgument if a function cannot be given an item."""
    found = [handler for handler in handlers if not queues or handler.queue in queues]
    for handler in found:
        PythonTarget({handler.name: handler.function}).check({"function": handler.name, "args": [None]})
    return found


def some_of_queues(handlers: Sequence[Handler], queues: Collection[str]) -> list[Handler]:
    """The same, or NotFound if there are none and nothing would be done."""
    found = of_queues(handlers, queues)
    if not found:
        where = f" for {', '.join(queues)}" if queues else ""
        raise NotFound(f'there is no handler{where}; write one down with @app.handler("queue")')
    return found


def _teams(handlers: Iterable[Handler]) -> list[list[Handler]]:
    by_queue: dict[str, list[Handler]] = defaultdict(list)
    for handler in handlers:
        by_queue[handler.queue].append(handler)
    teams: list[list[Handler]] = []
    for together in by_queue.values():
        is_whole = any(handler.type is None for handler in together)
        teams += [together] if is_whole else [[handler] for handler in together]
    return teams
