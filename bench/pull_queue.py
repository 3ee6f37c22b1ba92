"""Items enqueued, pulled and acknowledged over HTTP, one by one and by the hundred, with one client and with four,
against the same steps of the bare store in one process.

python bench/pull_queue.py http URL CLIENTS BATCH ITEMS         over HTTP, from a server of its own
python bench/pull_queue.py store URL CLIENTS BATCH ITEMS        by the verbs of the store
python bench/pull_queue.py waiting URL WAITING ITEMS            pulls alone, while so many items are not yet due
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import uvloop
from figures import RATE, Row
from fresh import in_rounds, measure
from pyreqwest.client import Client, ClientBuilder
from served import serving

from ksana.domain.items import Enqueued, Item, Pull, acked, new_item, stored_queue
from ksana.domain.runs import Run
from ksana.stores.open import open_store

# What is measured must not carry what only the one who measures needs.
if TYPE_CHECKING:
    from places import Places

_STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "mysql": "MariaDB", "redis": "Redis"}
_CASES = ((1, 1), (4, 1), (1, 100), (4, 100))
_SINGLE, _IN_BATCHES = 1_000, 10_000
_WAITING, _PULLED = 1_000_000, 2_000
_QUICK = 10
_QUEUE = "bench"
_PAYLOAD = {"to": "somebody@example.com", "n": 1}

Round = Callable[[int], Awaitable[int]]
"""Enqueues so many items, pulls as many if nobody else is just looking at them, acknowledges them and counts them."""


def rows(places: Places, rounds: int, quick: bool) -> Iterator[Row]:
    for store, shown in _STORES.items():
        for clients, batch in _CASES:
            items = (_SINGLE if batch == 1 else _IN_BATCHES) // (_QUICK if quick else 1)

            def take(mode: str, store: str = store, case: tuple[int, int, int] = (clients, batch, items)) -> float:
                with places.fresh(store) as url:
                    return measure("pull_queue.py", mode, url, *case)

            found = in_rounds(rounds, RATE, {"http": lambda: take("http"), "store": lambda: take("store")})
            part = f"items over HTTP, {clients} clients, {'one by one' if batch == 1 else f'by {batch}'}, {shown}"
            yield Row(part, found["http"], "bare store", found["store"])
        yield _waiting(places, rounds, quick, store, shown)


def _waiting(places: Places, rounds: int, quick: bool, store: str, shown: str) -> Row:
    """What items that are not yet due cost those who pull what is."""
    many = _WAITING // (_QUICK * _QUICK if quick else 1)

    def take(waiting: int) -> float:
        with places.fresh(store) as url:
            return measure("pull_queue.py", "waiting", url, waiting, _PULLED // (_QUICK if quick else 1))

    found = in_rounds(min(rounds, 2), RATE, {"many": lambda: take(many), "none": lambda: take(0)})
    return Row(f"pulls while {many:,} items are not due, {shown}", found["many"], "none waiting", found["none"])


async def _rate(work: Round, clients: int, batch: int, items: int) -> dict[str, float]:
    async def client() -> int:
        return sum([await work(batch) for _ in range(items // clients // batch)])

    await work(batch)
    began = time.perf_counter()
    done = await asyncio.gather(*(client() for _ in range(clients)))
    return {"rate": sum(done) / (time.perf_counter() - began)}


class _Held(msgspec.Struct):
    """What a worker needs to know of an item to say that it is done."""

    job_id: str
    lease_token: str


class _Pulled(msgspec.Struct):
    jobs: list[_Held]


class _Result(msgspec.Struct):
    status: int


class _Results(msgspec.Struct):
    results: list[_Result]


class _Ack(msgspec.Struct):
    jobs: list[_Held]


_encode = msgspec.json.Encoder().encode
_pulled = msgspec.json.Decoder(_Pulled).decode
_results = msgspec.json.Decoder(_Results).decode


async def _post(client: Client, url: str, body: bytes) -> bytes:
    request = client.post(url).header("content-type", "application/json").body_bytes(body)
    response = await request.build().send()
    answer = bytes(await response.bytes())
    assert response.status in (200, 201), answer
    return answer


async def _post_many(client: Client, url: str, body: bytes) -> None:
    answer = _results(await _post(client, url, body))
    assert all(one.status in (200, 201) for one in answer.results)


async def _over_http(url: str, clients: int, batch: int, items: int) -> dict[str, float]:
    async with serving(url) as address:
        jobs, client = f"{address}/scheduler/jobs", ClientBuilder().no_proxy().build()
        # What is always the same is written once: the server is measured, not the one who asks.
        new = {"queue": _QUEUE, "payload": _PAYLOAD}
        one, many = _encode(new), _encode({"jobs": [new] * batch})
        wanted = _encode({"queue": _QUEUE, "worker_id": "w", "limit": batch, "wait_sec": 10})

        async def work(count: int) -> int:
            if count == 1:
                await _post(client, jobs, one)
            else:
                await _post_many(client, f"{jobs}/batch", many)
            held = _pulled(await _post(client, f"{jobs}/pull", wanted)).jobs
            assert held
            if count == 1:
                [job] = held
                await _post(client, f"{jobs}/{job.job_id}/ack", _encode({"lease_token": job.lease_token}))
            else:
                await _post_many(client, f"{jobs}/ack", _encode(_Ack(held)))
            return len(held)

        told = await _rate(work, clients, batch, items)
        await client.close()
        return told


async def _by_store(url: str, clients: int, batch: int, items: int) -> dict[str, float]:
    store = open_store(url)
    await store.open()
    ids = iter(await store.reserve_ids("run", 2 * items + clients * batch))

    async def work(count: int) -> int:
        now = datetime.now(UTC)
        runs = [new_item(next(ids), _QUEUE, Item(_PAYLOAD), now, due_at=now) for _ in range(count)]
        await store.enqueue([Enqueued(run) for run in runs])
        held: list[Run] = []
        # What somebody else is just looking at is passed over, and what was enqueued here may be theirs by now.
        while not held:
            now = datetime.now(UTC)
            until = now + timedelta(minutes=15)
            wish = Pull(queue=stored_queue(_QUEUE), now=now, limit=count, holder="w", until=until)
            held = list((await store.pull(wish)).runs)
        # One instant for all that is said at once, as the engine has it: what differs is written apart.
        done_at = datetime.now(UTC)
        await store.turn([acked(run, done_at) for run in held])
        return len(held)

    told = await _rate(work, clients, batch, items)
    await store.close()
    return told


async def _while_waiting(url: str, waiting: int, items: int) -> dict[str, float]:
    """Pulls of one item each, from a queue in which others wait for tomorrow."""
    store = open_store(url)
    await store.open()
    ids = iter(await store.reserve_ids("run", waiting + items))
    now = datetime.now(UTC)
    tomorrow = now + timedelta(days=1)
    due = [tomorrow + timedelta(seconds=n) for n in range(waiting)] + [now] * items
    for first in range(0, len(due), 5_000):
        runs = [new_item(next(ids), _QUEUE, Item(_PAYLOAD), now, due_at=at) for at in due[first : first + 5_000]]
        await store.enqueue([Enqueued(run) for run in runs])
    wish = Pull(queue=stored_queue(_QUEUE), now=now, limit=1, holder="w", until=now + timedelta(minutes=15))
    began = time.perf_counter()
    for _ in range(items):
        assert (await store.pull(wish)).runs
    told = {"rate": items / (time.perf_counter() - began)}
    await store.close()
    return told


def main() -> None:
    match sys.argv[1:]:
        case ["waiting", url, waiting, items]:
            told = uvloop.run(_while_waiting(url, int(waiting), int(items)))
        case ["http", url, clients, batch, items]:
            told = uvloop.run(_over_http(url, int(clients), int(batch), int(items)))
        case ["store", url, clients, batch, items]:
            told = uvloop.run(_by_store(url, int(clients), int(batch), int(items)))
        case _:
            sys.exit(__doc__)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
