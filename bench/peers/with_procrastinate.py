"""Procrastinate on PostgreSQL, 100 at a time."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import procrastinate
import psycopg
import uvloop
from work import Work

work = Work()
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=work.where, min_size=4, max_size=16))
_LEFT = "SELECT COUNT(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
_AT_ONCE = 1000


@app.task(name="work", queue="bench")
async def run() -> None:
    await work.run()


async def main() -> None:
    async with app.open_async(), await psycopg.AsyncConnection.connect(work.where, autocommit=True) as watcher:
        await app.schema_manager.apply_schema_async()
        for start in range(0, work.count, _AT_ONCE):
            await run.batch_defer_async(*({} for _ in range(min(_AT_ONCE, work.count - start))))

        async def left() -> int:
            row = await (await watcher.execute(_LEFT)).fetchone()
            return row[0]

        worker = asyncio.create_task(
            app.run_worker_async(queues=["bench"], concurrency=100, install_signal_handlers=False)
        )
        await work.until_empty(left)
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker


if __name__ == "__main__":
    uvloop.run(main())
