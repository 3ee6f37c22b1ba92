"""HTTP runs to a sink on loopback by one process, history kept, against the client alone and against other schedulers.

python bench/http_runs.py URL SINK COUNT        one measurement of ours
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import uvloop
from figures import RATE, Measured, Row, at_least
from fresh import Measurement, in_rounds, measure
from limits import BODY, CONCURRENCY
from ours import Bench
from peers.catalog import PEERS, Peer
from places import Places
from sink import running_sink

from ksana.targets.http import HttpTarget, TargetPolicy

_COUNT = 20_000
_QUICK = 5
_STORES = {"postgres": "PostgreSQL", "sqlite": "SQLite"}
_SHARE_OF_CLIENT = at_least(0.4)


def rows(places: Places, rounds: int, quick: bool) -> Iterator[Row]:
    count = _COUNT // _QUICK if quick else _COUNT
    peers = {peer.name: peer for peer in PEERS if peer.mode == "http"}
    with running_sink() as sink:
        measurements: dict[str, Measurement] = {store: _ours(places, store, sink, count) for store in _STORES}
        measurements["client alone"] = lambda: measure("limits.py", "client", sink, count)
        for name, peer in peers.items():
            measurements[name] = _peer(peer, places, sink, quick)
        found = in_rounds(rounds, RATE, measurements)
    for store, shown in _STORES.items():
        yield from _held_against(f"HTTP runs, {shown}", found[store], found, peers)


def _held_against(part: str, ours: Measured, found: dict[str, Measured], peers: dict[str, Peer]) -> Iterator[Row]:
    yield Row(part, ours, f"client alone, {CONCURRENCY} at a time", found["client alone"], _SHARE_OF_CLIENT)
    for name, peer in peers.items():
        yield Row(part, ours, name, found[name], peer.wanted)


def _ours(places: Places, store: str, sink: str, count: int) -> Measurement:
    def take() -> float:
        with places.fresh(store) as url:
            return measure("http_runs.py", url, sink, count)

    return take


def _peer(peer: Peer, places: Places, sink: str, quick: bool) -> Measurement:
    return lambda: peer.measure(places, sink, quick=quick)


async def _drain(url: str, sink: str, count: int) -> dict[str, float]:
    policy = TargetPolicy.of(allow_loopback=True, allow_private=True)
    target = HttpTarget(policy=policy, now=lambda: datetime.now(UTC))
    bench = Bench(url, CONCURRENCY, target)
    await bench.store.open()
    await bench.seed(target.kind, {"method": "POST", "url": sink, "body": BODY}, count)
    began, cpu = time.perf_counter(), time.process_time()
    await bench.engine.start()
    await bench.drained()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    await bench.expect_history(count)
    await bench.close()
    await target.close()
    return {"rate": count / seconds, "cpu_micros": cpu / count * 1e6}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_drain(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
