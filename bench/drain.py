"""No-op runs drained by one process, history kept, against a bare claim-and-finish loop and against other schedulers.

python bench/drain.py URL COUNT         one measurement of ours
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import uvloop
from figures import RATE, Row, at_least
from fresh import Measurement, in_rounds, measure
from ours import Bench
from peers.catalog import PEERS, Peer
from places import Places

_WORKERS = 2000
_COUNTS = {"postgres": 50_000, "sqlite": 50_000, "mysql": 40_000}
_NAMES = {"postgres": "PostgreSQL", "sqlite": "SQLite", "mysql": "MariaDB"}
_SHARE_OF_LIMIT = at_least(0.25)
# A drain that is over in a blink measures the start of the process and little else.
_QUICK = 5


def rows(places: Places, rounds: int, quick: bool) -> Iterator[Row]:
    for store, count in _COUNTS.items():
        yield from _of_store(places, store, count // _QUICK if quick else count, rounds, quick)


def _of_store(places: Places, store: str, count: int, rounds: int, quick: bool) -> Iterator[Row]:
    def ours() -> float:
        with places.fresh(store) as url:
            return measure("drain.py", url, count)

    def limit() -> float:
        with places.fresh(store) as url:
            return measure("limits.py", store, url, count)

    peers = {peer.name: peer for peer in PEERS if peer.store == store and peer.mode == "noop"}
    measurements: dict[str, Measurement] = {"ours": ours, "bare loop": limit}
    for name, peer in peers.items():
        measurements[name] = _peer(peer, places, quick)
    found = in_rounds(rounds, RATE, measurements)
    part = f"no-op runs, {_NAMES[store]}"
    yield Row(part, found["ours"], "bare loop, 500 at a time", found["bare loop"], _SHARE_OF_LIMIT)
    for name, peer in peers.items():
        yield Row(part, found["ours"], name, found[name], peer.wanted)


def _peer(peer: Peer, places: Places, quick: bool) -> Measurement:
    return lambda: peer.measure(places, quick=quick)


async def _drain(url: str, count: int) -> dict[str, float]:
    bench = Bench(url, _WORKERS)
    await bench.store.open()
    await bench.seed("noop", {}, count)
    began, cpu = time.perf_counter(), time.process_time()
    await bench.engine.start()
    await bench.drained()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    await bench.expect_history(count)
    await bench.close()
    return {"rate": count / seconds, "cpu_micros": cpu / count * 1e6}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_drain(sys.argv[1], int(sys.argv[2])))))
