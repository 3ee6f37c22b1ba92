"""The demo at work: a server on a store of its own, the target, the samples, and a line for each thing that happens."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from ksana.app import serve
from ksana.client import AsyncClient
from ksana.config import Settings
from ksana.demo.samples import AT_ONCE, in_code, letters, samples
from ksana.demo.target import serving
from ksana.demo.telling import tell
from ksana.engine.engine import Engine
from ksana.periodic.syncing import sync

DEFAULT_PORT: Final = 7100


def free_port(wanted: int = DEFAULT_PORT) -> int:
    """The port that is wanted if it is free, else any that is."""
    for port in (wanted, 0):
        try:
            with socket.create_server(("127.0.0.1", port)) as taken:
                found: int = taken.getsockname()[1]
                return found
        except OSError:
            continue
    raise OSError("no port is free on 127.0.0.1")


async def demo(
    settings: Settings, stop: asyncio.Event, write: Callable[[str], None], ready: Callable[[str], None]
) -> None:
    """Serve until `stop` is set. `ready` is told the address once the samples are there."""
    url = f"http://127.0.0.1:{settings.server.port}"
    app = in_code()
    engines: list[Engine] = []

    async def begin(engine: Engine) -> None:
        await sync(engine, app.definitions, app.name)
        engines.append(engine)

    async with serving() as target:
        node = asyncio.create_task(serve(settings, stop, app.functions, begin, app.handlers))
        telling: asyncio.Task[None] | None = None
        try:
            if await _make(node, url, target):
                telling = asyncio.create_task(tell(engines[0], write))
                ready(url)
            await node
        finally:
            stop.set()
            if telling is not None:
                telling.cancel()
            await asyncio.gather(node, return_exceptions=True)


async def _make(node: asyncio.Task[None], url: str, target: str) -> bool:
    """Make what is not there yet, as any client would; False if the server ended before."""

    async def make() -> None:
        async with AsyncClient(url, retries=8) as client:
            known = {job["name"] for job in (await client.ask("GET", "/api/v2/jobs?page_size=200"))["items"]}
            for sample in samples(target):
                if sample.body["name"] not in known:
                    await client.ask("POST", sample.path, sample.body)
            await client.ask("POST", "/scheduler/jobs/batch", {"jobs": letters()})
            # These are seldom due; whoever has just come should not have to wait for them.
            for job in (await client.ask("GET", "/api/v2/jobs?page_size=200"))["items"]:
                if job["name"] in AT_ONCE:
                    await client.ask("POST", f"/api/v2/jobs/{job['id']}/runs")

    making = asyncio.create_task(make())
    await asyncio.wait({node, making}, return_when=asyncio.FIRST_COMPLETED)
    if not making.done():
        making.cancel()
        return False
    await making
    return True
