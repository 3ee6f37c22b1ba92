"""A server of its own, on a store that is there already."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_ADDRESS = re.compile(r"http://[\d.]+:\d+")


async def _drain(log: asyncio.StreamReader) -> None:
    while await log.read(2**16):
        pass


@asynccontextmanager
async def serving(url: str) -> AsyncIterator[str]:
    """`ksana serve` on this store, by its address."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ksana", "serve", "--port", "0", "--store", url),
        stderr=asyncio.subprocess.PIPE,
    )
    assert child.stderr is not None
    try:
        while (found := _ADDRESS.search((await child.stderr.readline()).decode())) is None:
            assert child.returncode is None, "the server ended by itself"
        # A log that nobody reads would sooner or later stop the server.
        reading = asyncio.ensure_future(_drain(child.stderr))
        yield found[0]
    finally:
        child.terminate()
        await child.wait()
    await reading
