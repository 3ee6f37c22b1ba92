"""Huey on SQLite with fsync, one worker thread; more of them only wait for each other."""

from __future__ import annotations

import time

from huey import SqliteHuey
from work import Work

work = Work()
huey = SqliteHuey("bench", filename=work.where.removeprefix("sqlite://"), results=False, fsync=True)


@huey.task()
def run() -> None:
    work.noop()


def main() -> None:
    for _ in range(work.count):
        run()
    consumer = huey.create_consumer(workers=1, worker_type="thread", periodic=False)
    consumer.start()
    while work.executed < work.count or huey.pending_count():
        time.sleep(0.02)
    work.tell()
    consumer.stop()


if __name__ == "__main__":
    main()
