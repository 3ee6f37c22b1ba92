"""taskiq on Redis streams, 100 at a time."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import redis.asyncio
import uvloop
from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker
from work import Work

work = Work()
_url, _, _name = work.where.partition("#")
broker = RedisStreamBroker(_url, queue_name=_name, xread_count=100)
_AT_ONCE = 100


@broker.task(task_name="run")
async def run() -> None:
    await work.run()


async def main() -> None:
    await broker.startup()
    for start in range(0, work.count, _AT_ONCE):
        await asyncio.gather(*(run.kiq() for _ in range(min(_AT_ONCE, work.count - start))))
    watcher = redis.asyncio.from_url(_url)

    async def left() -> int:
        return sum(group["pending"] + (group["lag"] or 0) for group in await watcher.xinfo_groups(_name))

    receiving = asyncio.create_task(run_receiver_task(broker, max_async_tasks=100))
    await work.until_empty(left)
    receiving.cancel()
    with suppress(asyncio.CancelledError):
        await receiving
    await watcher.aclose()
    await broker.shutdown()


if __name__ == "__main__":
    uvloop.run(main())
