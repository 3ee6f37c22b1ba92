"""DBOS on PostgreSQL: a workflow of one step after the other, or of many workflows side by side."""

from __future__ import annotations

import json
import os
import sys
import time

from dbos import DBOS

where, count, shape = sys.argv[1], int(sys.argv[2]), sys.argv[3]
DBOS(config={"name": "bench", "system_database_url": where, "log_level": "CRITICAL", "run_admin_server": False})


@DBOS.step()
def step() -> int:
    return 1


@DBOS.workflow()
def child() -> int:
    return 1


@DBOS.workflow()
def deep() -> None:
    for _ in range(count):
        step()


@DBOS.workflow()
def wide() -> None:
    for handle in [DBOS.start_workflow(child) for _ in range(count)]:
        handle.get_result()


def main() -> None:
    DBOS.launch()
    began = time.perf_counter()
    (deep if shape == "deep" else wide)()
    print(json.dumps({"rate": count / (time.perf_counter() - began)}), flush=True)
    # Its threads would go on polling.
    os._exit(0)


if __name__ == "__main__":
    main()
