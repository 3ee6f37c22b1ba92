"""Chains, wide and deep, against bare loops on the same store and against other engines of workflows.

Nodes that do nothing are done without being executed, so what they cost says nothing about others: beside them stand
nodes that are executed, one by one, without a result and with one as the peers have.

python bench/chains.py URL wide|deep|mixed COUNT [noop|echo|result]    one measurement of ours; else echo
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import uvloop
from figures import RATE, SECONDS, Row, at_least
from fresh import Measurement, in_rounds, measure
from ours import BATCH, observers
from peers.catalog import Peer
from places import Places

from ksana.domain.jobs import Job, JobSpec, TargetSpec
from ksana.domain.moves import Move
from ksana.domain.ports import Target
from ksana.engine.clock import SystemClock
from ksana.engine.engine import Engine, EngineOptions
from ksana.stores.open import open_store
from ksana.targets.builtin import EchoTarget, NoopTarget
from ksana.targets.chains import ChainTarget

_WORKERS = 200
_NODES = 1_000
_MANY = 10_000
_QUICK = 5
_NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "mysql": "MariaDB"}
_LIMITS = {"wide": ("limits.py", "bare loop, 500 at a time"), "deep": ("chain_limits.py", "bare loop, a commit a node")}
# A wide chain has a row made for each of its nodes first, which the bare loop finds there: that share is only told.
_SHARES = {"wide": None, "deep": at_least(0.5)}
_TIMES_A_PEER = at_least(10)
_NODES_OF: dict[str, dict[str, Any]] = {
    "noop": {"type": "noop"},
    "echo": {"type": "echo"},
    "result": {"type": "echo", "cfg": {"message": 1}},
}
_KINDS = {
    "noop": "noop nodes, not executed",
    "echo": "nodes executed, without a result",
    "result": "nodes executed, each with a result",
}
_DEEP_LINES = 10
"""How many lines stand side by side in the chain that is wide and deep."""


def rows(places: Places, rounds: int, quick: bool) -> Iterator[Row]:
    count = _NODES // _QUICK if quick else _NODES
    for store in _NAMES:
        for shape in _LIMITS:
            yield from _of_shape(places, store, shape, count, rounds, quick)
    yield from _many(places, _MANY // _QUICK if quick else _MANY)


def _of_shape(places: Places, store: str, shape: str, count: int, rounds: int, quick: bool) -> Iterator[Row]:
    script, limit_name = _LIMITS[shape]

    def ours(kind: str) -> Measurement:
        def take() -> float:
            with places.fresh(store) as url:
                return measure("chains.py", url, shape, count, kind)

        return take

    def limit() -> float:
        with places.fresh(store) as url:
            return measure(script, store, url, count)

    measurements: dict[str, Measurement] = {kind: ours(kind) for kind in _KINDS}
    measurements["bare loop"] = limit
    peers = [
        Peer("DBOS on PostgreSQL", "with_dbos.py", "postgres", _NODES, shape, _TIMES_A_PEER),
        Peer("Celery canvas on Redis", "with_celery.py", "redis", _NODES, shape, _TIMES_A_PEER),
    ]
    if store == "mysql":
        peers = []
    for peer in peers:
        measurements[peer.name] = _peer(peer, places, quick)
    found = in_rounds(rounds, RATE, measurements)
    for kind, what in _KINDS.items():
        part = f"{shape} chain, {what}, {_NAMES[store]}"
        # Goals are for what is executed; the rest is told beside it.
        is_executed = kind != "noop"
        yield Row(part, found[kind], limit_name, found["bare loop"], _SHARES[shape] if is_executed else None)
        for peer in peers:
            yield Row(part, found[kind], peer.name, found[peer.name], peer.wanted if is_executed else None)


def _peer(peer: Peer, places: Places, quick: bool) -> Measurement:
    return lambda: peer.measure(places, quick=quick)


def _many(places: Places, count: int) -> Iterator[Row]:
    def ours(store: str) -> Measurement:
        def take() -> float:
            with places.fresh(store) as url:
                return measure("chains.py", url, "mixed", count, key="seconds")

        return take

    found = in_rounds(1, SECONDS, {store: ours(store) for store in _NAMES})
    for store, name in _NAMES.items():
        yield Row(f"{count} nodes executed, wide and deep, {name}", found[store])


def dag_of(shape: str, count: int, kind: str) -> dict[str, Any]:
    return {"nodes": [node | _NODES_OF[kind] for node in _nodes(shape, count)]}


def _nodes(shape: str, count: int) -> list[dict[str, Any]]:
    if shape == "wide":
        return [{"id": f"n{i}"} for i in range(count)]
    if shape == "deep":
        return [_after(f"n{i}", f"n{i - 1}" if i else None) for i in range(count)]
    # Half of it side by side, half of it in lines, and one node that waits for all of them.
    wide = [f"w{i}" for i in range(count // 2)]
    length = (count - len(wide) - 1) // _DEEP_LINES
    lines = [_after(f"d{k}.{i}", f"d{k}.{i - 1}" if i else None) for k in range(_DEEP_LINES) for i in range(length)]
    rest = [f"r{i}" for i in range(count - 1 - len(wide) - len(lines))]
    last = [*wide, *rest, *(f"d{k}.{length - 1}" for k in range(_DEEP_LINES))]
    return [*({"id": id} for id in (*wide, *rest)), *lines, {"id": "end", "dependsOn": last}]


def _after(id: str, need: str | None) -> dict[str, Any]:
    return {"id": id, "dependsOn": [] if need is None else [need]}


class _Ends:
    """Hears of the end of a chain, once it is stored."""

    def __init__(self) -> None:
        self.come = asyncio.Event()

    def on_moved(self, moves: Sequence[tuple[Move, Job | None]], now: datetime) -> None:
        if any(move.run.parent_id is None and move.run.ended_at is not None for move, _ in moves):
            self.come.set()

    def on_fired(self, runs: Any, gaps: Any, now: datetime) -> None: ...

    def on_started(self, claimed: Any, now: datetime) -> None: ...

    def on_lost(self, run_ids: Any, now: datetime) -> None: ...

    def on_changed(self, jobs: Any, runs: Any, now: datetime) -> None: ...

    def on_store(self, available: bool, error: str) -> None: ...

    def on_clock_jump(self, jump: timedelta) -> None: ...


async def _run(url: str, shape: str, count: int, kind: str = "echo") -> dict[str, float]:
    store, clock = open_store(url), SystemClock()
    await store.open()
    targets: dict[str, Target] = {"noop": NoopTarget(), "echo": EchoTarget(), "chain": ChainTarget()}
    options = EngineOptions(workers=_WORKERS, batch=BATCH)
    over = _Ends()
    engine = Engine(store, targets, options, clock=clock, observers=(*observers(clock), over))
    job = await engine.jobs.create("v2", JobSpec(name="bench", target=TargetSpec("chain", dag_of(shape, count, kind))))
    await engine.start()
    began, cpu = time.perf_counter(), time.process_time()
    run = await engine.chains.start(job.id)
    await over.come.wait()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    ends = {(child.state.value, child.attempt) for child in await store.children(run.id)}
    assert ends == {("SUCCESS", 0 if kind == "noop" else 1)}, ends
    await engine.stop()
    await store.close()
    return {"rate": count / seconds, "seconds": seconds, "cpu_micros": cpu / count * 1e6}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_run(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:]))))
