"""Somebody who listens to a stream of events without a network, piece by piece."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Message, Scope

from tests.api.v2.world import DEADLINE


class Event(NamedTuple):
    """One event as it came."""

    name: str
    number: int
    data: Any


def read_event(block: str) -> Event | None:
    """The event of a block, if it is one that has data."""
    fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
    if "data" not in fields:
        return None
    return Event(fields["event"], int(fields["id"]), json.loads(fields["data"]))


class Ear:
    """What was heard so far."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.blocks: list[str] = []
        self.flushes = 0
        self.is_over = False
        self.hang_up = asyncio.Event()
        self._came = asyncio.Event()
        self._read = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        elif message["body"]:
            self.flushes += 1
            self.blocks += [block for block in message["body"].decode().split("\n\n") if block]
        self.is_over = not message.get("more_body", True)
        self._came.set()

    async def receive(self) -> Message:
        await self.hang_up.wait()
        return {"type": "http.disconnect"}

    @property
    def has_more(self) -> bool:
        """Whether something came that was not looked at."""
        return len(self.blocks) > self._read

    async def block(self) -> str:
        """The next block, whatever it is."""
        async with asyncio.timeout(DEADLINE):
            while len(self.blocks) <= self._read:
                self._came.clear()
                await self._came.wait()
        self._read += 1
        return self.blocks[self._read - 1]

    async def event(self) -> Event:
        """The next event."""
        while (event := read_event(await self.block())) is None:
            pass
        return event

    async def over(self) -> None:
        async with asyncio.timeout(DEADLINE):
            while not self.is_over:
                self._came.clear()
                await self._came.wait()


@asynccontextmanager
async def listening(app: ASGIApp, query: str = "", headers: Mapping[str, str] | None = None) -> AsyncIterator[Ear]:
    """Listen until the end of the block."""
    ear = Ear()
    sent = {"host": "127.0.0.1:7100", **(headers or {})}
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/api/v2/events",
        "raw_path": b"/api/v2/events",
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 7100),
    }

    async def call() -> None:
        await app(scope, ear.receive, ear.send)

    running = asyncio.create_task(call())
    try:
        await ear.block()
        yield ear
    finally:
        ear.hang_up.set()
        await asyncio.wait_for(running, DEADLINE)
