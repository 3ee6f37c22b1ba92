"""What an HTTP attempt costs, with all it carries and keeps, against the bare call of a fast client.

python bench/http_client.py [calls] [concurrency] [url]
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import uvloop
from pyreqwest.client import Client, ClientBuilder
from sink import running_sink

from ksana.domain.outcomes import AttemptContext, Verdict
from ksana.targets.http import HttpTarget, TargetPolicy

_ROUNDS = 5
_BODY = '{"event":"order.received","payload":{"order_id":12345}}'
_MARKED = '{"run":"{{run_id}}","at":"{{scheduled_at}}","who":"{{input.who}}","order":"{{input.order}}"}'


def _context(number: int) -> AttemptContext:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return AttemptContext(
        run_id=number,
        job_id=1,
        job_ref="job-1",
        job_name="bench",
        planned_at=now,
        triggered_at=now,
        attempt=1,
        fence=1,
        trace_id="0af7651916cd43dd8448eb211c80319c",
        timeout=timedelta(seconds=10),
        connect_timeout=timedelta(seconds=5),
        input={"who": "somebody", "order": {"id": 1}},
    )


async def _bare(client: Client, url: str) -> None:
    response = await client.post(url).body_text(_BODY).build().send()
    assert response.status == 200


async def _attempt(target: HttpTarget, number: int, url: str, body: str) -> None:
    # A config read from a store is a new object for every run.
    config = {"method": "POST", "url": url, "headers": {"X-Tenant": "a"}, "body": body, "mode": "sync"}
    outcome = await target.execute(_context(number), config)
    assert outcome.verdict is Verdict.SUCCESS, outcome


async def _rate(call: Callable[[int], Awaitable[None]], calls: int, concurrency: int) -> tuple[float, float]:
    async def caller(first: int) -> None:
        for number in range(first, calls, concurrency):
            await call(number)

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(caller(first) for first in range(concurrency)))
    return calls / (time.perf_counter() - began), (time.process_time() - cpu) / calls * 1e6


async def _measure(url: str, calls: int, concurrency: int) -> None:
    client = ClientBuilder().no_proxy().build()
    policy = TargetPolicy.of(allow_loopback=True, allow_private=True)
    target = HttpTarget(policy=policy, now=lambda: datetime.now(UTC))
    cases: dict[str, Callable[[int], Awaitable[None]]] = {
        "bare client": lambda _: _bare(client, url),
        "HttpTarget": lambda number: _attempt(target, number, url, _BODY),
        "HttpTarget, body with markers": lambda number: _attempt(target, number, url, _MARKED),
    }
    for call in cases.values():
        await _rate(call, concurrency * 10, concurrency)
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    # Rounds take turns, so that a machine that is busy for a while is unfair to all alike.
    for _ in range(_ROUNDS):
        for name, call in cases.items():
            results[name].append(await _rate(call, calls, concurrency))
    base = max(rate for rate, _ in results["bare client"])
    for name, rounds in results.items():
        rate, cpu = max(rounds)
        above = (1 / rate - 1 / base) * 1e6
        print(f"{name:32} {rate:8,.0f} calls/s  {rate / base:5.0%} of bare  +{above:5.1f} us  cpu {cpu:5.1f} us")
    await target.close()
    await client.close()


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    concurrency = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    if len(sys.argv) > 3:
        uvloop.run(_measure(sys.argv[3], calls, concurrency))
        return
    with running_sink() as url:
        uvloop.run(_measure(url, calls, concurrency))


if __name__ == "__main__":
    main()
