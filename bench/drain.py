"""No-op runs drained by one process, history kept, against a bare claim-and-finish loop and against other schedulers.

What `noop` answers is known before it is asked, so runs of a function that does nothing are measured besides.

python bench/drain.py URL COUNT noop|function       one measurement of ours
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import uvloop
from figures import RATE, Row, at_least
from fresh import Measurement, in_rounds, measure
from ours import Bench
from peers.catalog import PEERS, Peer
from places import Places

from ksana.domain.ports import Target
from ksana.targets.builtin import NoopTarget
from ksana.targets.python import PythonTarget

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
    def ours(kind: str) -> Measurement:
        def take() -> float:
            with places.fresh(store) as url:
                return measure("drain.py", url, count, kind)

        return take

    def limit() -> float:
        with places.fresh(store) as url:
            return measure("limits.py", store, url, count)

    peers = {peer.name: peer for peer in PEERS if peer.store == store and peer.mode == "noop"}
    measurements: dict[str, Measurement] = {"noop": ours("noop"), "function": ours("function"), "bare loop": limit}
    for name, peer in peers.items():
        measurements[name] = _peer(peer, places, quick)
    found = in_rounds(rounds, RATE, measurements)
    for kind, part in (("noop", "no-op runs"), ("function", "functions")):
        wanted = _SHARE_OF_LIMIT if kind == "noop" else None
        yield Row(f"{part}, {_NAMES[store]}", found[kind], "bare loop, 500 at a time", found["bare loop"], wanted)
        for name, peer in peers.items():
            yield Row(f"{part}, {_NAMES[store]}", found[kind], name, found[name], peer.wanted)


def _peer(peer: Peer, places: Places, quick: bool) -> Measurement:
    return lambda: peer.measure(places, quick=quick)


async def _nothing() -> None:
    return None


def _target(kind: str) -> tuple[Target, dict[str, Any]]:
    if kind == "noop":
        return NoopTarget(), {}
    target = PythonTarget({"nothing": _nothing})
    return target, target.check({"function": "nothing"})


async def _drain(url: str, count: int, kind: str) -> dict[str, float]:
    target, config = _target(kind)
    bench = Bench(url, _WORKERS, target)
    await bench.store.open()
    await bench.seed(target.kind, config, count)
    began, cpu = time.perf_counter(), time.process_time()
    await bench.engine.start()
    await bench.drained()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    await bench.expect_history(count)
    await bench.close()
    await target.close()
    return {"rate": count / seconds, "cpu_micros": cpu / count * 1e6}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_drain(sys.argv[1], int(sys.argv[2]), sys.argv[3]))))
