"""Celery's canvas on Redis: a group, or a chain, of tasks that do nothing, seen through by one process of workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import redis
from celery import Celery, chain, group

_WHERE = "KSANA_BENCH_CELERY"
_PATIENCE = 120

where = os.environ.get(_WHERE) or sys.argv[1]
url, _, prefix = where.partition("#")
app = Celery("with_celery", broker=url, backend=url)
app.conf.broker_transport_options = {"global_keyprefix": prefix}
app.conf.result_backend_transport_options = {"global_keyprefix": prefix}
app.conf.broker_connection_retry_on_startup = True


@app.task(name="run")
def run() -> int:
    return 1


def main() -> None:
    count, shape = int(sys.argv[2]), sys.argv[3]
    # One process: a second one on the same machine only takes its share from the first.
    worker = subprocess.Popen(
        [
            *(sys.executable, "-m", "celery", "-A", "with_celery", "worker", "-P", "prefork", "-c", "1", "-l", "ERROR"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ],
        cwd=Path(__file__).resolve().parent,
        env={**os.environ, _WHERE: where},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        run.delay().get(timeout=_PATIENCE)
        began = time.perf_counter()
        tasks = [run.si() for _ in range(count)]
        canvas = group(tasks) if shape == "wide" else chain(*tasks)
        canvas.apply_async().get(timeout=_PATIENCE)
        seconds = time.perf_counter() - began
    finally:
        os.killpg(worker.pid, signal.SIGTERM)
        worker.wait()
        _forget(redis.Redis.from_url(url))
    print(json.dumps({"rate": count / seconds}), flush=True)
    # What is left of the results' threads has nothing more to say.
    os._exit(0)


def _forget(server: redis.Redis) -> None:
    """Leave nothing behind on a server that others use."""
    for key in server.scan_iter(f"{prefix}*", count=1000):
        server.delete(key)


if __name__ == "__main__":
    main()
