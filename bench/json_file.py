"""Ten thousand timers in one `jobs.json`: how long a change takes to be durable, against a bare write, fsync and rename
of the same bytes in the same moments, and how long a timer takes to read meanwhile. A real server, over HTTP.

python bench/json_file.py DIRECTORY JOBS        one measurement
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
from figures import MILLIS, Figure, Row, at_most
from fresh import say, script

from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.schedules import Every
from ksana.stores.open import open_store

# What is measured must not carry what only the one who measures needs.
if TYPE_CHECKING:
    from places import Places

_JOBS = 10_000
_QUICK = 10
_CHANGES = 100
_WARM_UP = 10
_READERS = 2
_CONFIG = {
    "method": "POST",
    "url": "https://api.example.com/orders/notify",
    "headers": {"Content-Type": "application/json"},
    "body": '{"event": "order.received", "payload": {"order_id": 12345}}',
    "mode": "sync",
}


def rows(places: Places, rounds: int, quick: bool) -> Iterator[Row]:
    count = _JOBS // _QUICK if quick else _JOBS
    told: list[dict[str, float]] = []
    for _ in range(rounds):
        with places.directory() as directory:
            told.append(script("json_file.py", directory, count))
        say(f"  json: {told[-1]}")
    changes, raw, reads = (Figure(tuple(one[key] for one in told), MILLIS) for key in ("change", "raw", "read_p99"))
    yield Row(f"a change is durable, {count:,} timers, JSON", changes, wanted=at_most(50))
    yield Row(f"the same, {count:,} timers, JSON", changes, "write, fsync, rename", raw, at_most(4))
    yield Row(f"p99 of GET /jobs/{{id}} during changes, {count:,} timers, JSON", reads, wanted=at_most(50))


def _timer(number: int, now: datetime) -> Job:
    far = now + timedelta(days=1)
    return Job(
        id=number,
        surface="jobs",
        ref=f"timer-{number}",
        name=f"notify-order-{number}",
        target=TargetSpec("http", _CONFIG),
        schedule=Every(timedelta(minutes=5), origin_at=now),
        created_at=now,
        updated_at=now,
        next_slot_at=far,
        next_fire_at=far,
    )


async def _seed(directory: Path, count: int) -> None:
    store = open_store(f"json:{directory}")
    await store.open()
    ids = await store.reserve_ids("job", count)
    now = datetime.now(UTC)
    await store.add_jobs([_timer(number, now) for number in ids])
    await store.close()


@asynccontextmanager
async def _server(directory: Path) -> AsyncIterator[str]:
    arguments = ("-m", "ksana", "serve", "--port", "0", "--store", f"json:{directory}", "--log-level", "info")
    child = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    assert child.stdout is not None
    try:
        while (found := re.search(r"http://[\w.]+:\d+", (await child.stdout.readline()).decode())) is None:
            pass
        yield found.group()
    finally:
        child.kill()
        await child.communicate()


async def _measure(directory: Path, count: int) -> dict[str, float]:
    await _seed(directory, count)
    changes: list[float] = []
    raw: list[float] = []
    reads: list[float] = []
    async with _server(directory) as url, aiohttp.ClientSession(url) as session:
        readers = [asyncio.ensure_future(_read(session, count, reads)) for _ in range(_READERS)]
        for number in range(_WARM_UP + _CHANGES):
            began = time.perf_counter()
            async with session.patch(f"/jobs/timer-{number + 1}", json={"name": f"new name {number}"}) as answer:
                assert answer.status == 200, await answer.text()
                await answer.read()
            changes.append(time.perf_counter() - began)
            raw.append(await asyncio.to_thread(_raw, directory))
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    reads.sort()
    return {
        "change": statistics.median(changes[_WARM_UP:]) * 1000,
        "raw": statistics.median(raw[_WARM_UP:]) * 1000,
        "read_p99": reads[int(len(reads) * 0.99)] * 1000,
    }


async def _read(session: aiohttp.ClientSession, count: int, reads: list[float]) -> None:
    number = 0
    while True:
        number = number % count + 1
        began = time.perf_counter()
        async with session.get(f"/jobs/timer-{number}") as answer:
            assert answer.status == 200
            await answer.read()
        reads.append(time.perf_counter() - began)
        await asyncio.sleep(0.002)


def _raw(directory: Path) -> float:
    """What the disk alone takes for the same bytes."""
    text = (directory / "jobs.json").read_bytes()
    aside = directory / "raw"
    began = time.perf_counter()
    handle = os.open(f"{aside}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(handle, text)
    os.fsync(handle)
    os.close(handle)
    Path(f"{aside}.tmp").replace(aside)
    handle = os.open(directory, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
    return time.perf_counter() - began


def main() -> None:
    match sys.argv[1:]:
        case [directory, count]:
            print(json.dumps(asyncio.run(_measure(Path(directory), int(count)))))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
