"""A program that joins a server by its address: its handlers pull over HTTP, and it needs no store."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from ksana.client import AsyncClient
from ksana.engine.clock import SystemClock
from ksana.engine.contexts import Contexts
from ksana.handling.remote_queue import RemoteQueue
from ksana.handling.workers import HandlerWorkers
from ksana.periodic.handlers import Handler

_log = logging.getLogger("ksana")


@asynccontextmanager
async def joined(url: str, key: str | None, grace: timedelta, handlers: Sequence[Handler]) -> AsyncIterator[None]:
    """These handlers pull from the server; at the end they finish what they have begun."""
    async with AsyncClient(url, key) as client:
        queue = RemoteQueue(client)
        holder = f"{socket.gethostname()}:{os.getpid()}"
        workers = HandlerWorkers(handlers, queue, queue, SystemClock(), Contexts(0, ""), holder=holder)
        async with workers.at_work(grace):
            yield


async def work_for(
    url: str, key: str | None, grace: timedelta, handlers: Sequence[Handler], stop: asyncio.Event
) -> None:
    """The same until `stop` is set."""
    async with joined(url, key, grace, handlers):
        _log.info("working for %s", url)
        await stop.wait()
        _log.info("stopping: no new work, waiting for what is under way")
    _log.info("stopped")
