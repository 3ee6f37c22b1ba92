"""Measures Ksana against raw limits and against its peers, side by side, and prints one table.

python bench/run.py [PART ...] [--quick]

A ratio is what counts: absolute numbers belong to the machine and the hour. `--quick` takes one small round of each and
shows whether everything works, not how fast it is.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator

import beat
import burst
import chains
import cron
import drain
import http_runs
import json_file
import pages
import pull_queue
import redis_noop
import scale
import tasks
from figures import Row, table
from fresh import ROUNDS, say
from places import Places, open_places

import periodic

_PARTS: dict[str, Callable[[Places, int, bool], Iterator[Row]]] = {
    "cron": cron.rows,
    "drain": drain.rows,
    "http": http_runs.rows,
    "burst": burst.rows,
    "beat": beat.rows,
    "redis-noop": redis_noop.rows,
    "scale": scale.rows,
    "json": json_file.rows,
    "tasks": tasks.rows,
    "periodic": periodic.rows,
    "queue": pull_queue.rows,
    "chains": chains.rows,
    "pages": pages.rows,
}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("part", nargs="*", help=f"what to measure: {', '.join(_PARTS)}; all if none is named")
    arguments.add_argument("--quick", action="store_true", help="one small round")
    given = arguments.parse_args()
    if unknown := [part for part in given.part if part not in _PARTS]:
        arguments.error(f"no part is called {', '.join(unknown)}; choose from {', '.join(_PARTS)}")
    rows: list[Row] = []
    with open_places() as places:
        for part in given.part or _PARTS:
            say(part)
            rows += _PARTS[part](places, 1 if given.quick else ROUNDS, given.quick)
    print(table(rows))
    return 1 if any(row.is_met is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
