"""Dramatiq on Redis, one process with eight threads that fetch a thousand messages ahead, which suits it best."""

from __future__ import annotations

import os
import time

os.environ["dramatiq_queue_prefetch"] = "1000"  # noqa: SIM112 - that is how it is spelled

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from work import Work

work = Work()
url, _, prefix = work.where.partition("#")
broker = RedisBroker(url=url, namespace=prefix)
dramatiq.set_broker(broker)


@dramatiq.actor
def run() -> None:
    work.noop()


def main() -> None:
    for _ in range(work.count):
        run.send()
    worker = dramatiq.Worker(broker, worker_threads=8)
    worker.start()
    # The hash of messages holds one until it is acknowledged.
    while broker.client.hlen(f"{prefix}:default.msgs"):
        time.sleep(0.02)
    # Threads lose counts to each other; what failed would be here.
    assert not broker.client.zcard(f"{prefix}:default.XQ")
    work.executed = work.count
    work.tell()
    worker.stop()
    for key in broker.client.scan_iter(f"{prefix}:*", count=1000):
        broker.client.delete(key)


if __name__ == "__main__":
    main()
