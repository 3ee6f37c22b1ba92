"""SAQ on Redis, 64 at a time."""

from __future__ import annotations

import asyncio
from typing import Any

import uvloop
from saq import Queue, Worker
from work import Work

work = Work()
_AT_ONCE = 16


async def run(_context: Any) -> None:
    await work.run()


async def main() -> None:
    url, _, name = work.where.partition("#")
    queue = Queue.from_url(url, name=name)
    await queue.connect()
    for start in range(0, work.count, _AT_ONCE):
        share = min(_AT_ONCE, work.count - start)
        await asyncio.gather(*(queue.enqueue("run", ttl=-1) for _ in range(share)))
    worker = Worker(queue, functions=[("run", run)], concurrency=64)
    working = asyncio.create_task(worker.start())
    await work.until_empty(lambda: queue.count("incomplete"))
    await worker.stop()
    await working


if __name__ == "__main__":
    uvloop.run(main())
