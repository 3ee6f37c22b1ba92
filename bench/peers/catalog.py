"""Which peers there are, where each keeps its work, and by how much we mean to be quicker."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from figures import Bound, at_least
from fresh import HERE, measure, told
from places import Places

from peers import install

_QUICK = 5


class Peer(NamedTuple):
    """A peer in its own script.

    `store` is where it keeps its work, `runs` how many runs it is given and `mode` what they do (`noop` or `http`);
    `wanted` is our rate as a multiple of its own, if there is a goal.
    """

    name: str
    script: str
    store: str
    runs: int
    mode: str
    wanted: Bound | None = None

    def measure(self, places: Places, sink: str = "", *, quick: bool) -> float:
        """Runs per second from the first execution until its store holds nothing unfinished."""
        count = self.runs // _QUICK if quick else self.runs
        with self._place(places) as where:
            if self.script.endswith(".py"):
                return measure(f"peers/{self.script}", where, count, self.mode, sink, python=install.python())
            modules = str(install.node_modules())
            command = [
                shutil.which("node") or "node",
                str(HERE / "peers" / self.script),
                where,
                str(count),
                self.mode,
                sink,
            ]
            return told(command, {"NODE_PATH": modules})["rate"]

    @contextmanager
    def _place(self, places: Places) -> Iterator[str]:
        if self.store == "redis":
            # The name of its queue follows the address.
            yield f"{places.server('redis')}#{places.prefix}"
        else:
            with places.fresh(self.store) as url:
                yield url


PEERS = (
    Peer("Procrastinate", "with_procrastinate.py", "postgres", 3_000, "noop", at_least(30)),
    Peer("graphile-worker", "with_graphile.cjs", "postgres", 50_000, "noop"),
    Peer("Huey", "with_huey.py", "sqlite", 10_000, "noop", at_least(5)),
    Peer("Dramatiq", "with_dramatiq.py", "redis", 10_000, "noop", at_least(5)),
    Peer("taskiq on Redis", "with_taskiq.py", "redis", 10_000, "http", at_least(5)),
    Peer("SAQ on Redis", "with_saq.py", "redis", 5_000, "http", at_least(5)),
    Peer("pg-boss", "with_pgboss.cjs", "postgres", 50_000, "http", at_least(1)),
)
