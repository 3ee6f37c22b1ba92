"""APScheduler with its jobs in Redis, and a pool of threads: so many of them due at the same instant."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from urllib.parse import urlsplit

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.redis import RedisJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from lateness import tell

_LEAD = 3
_PATIENCE = 120
_THREADS = 20
late: list[float] = []


def tick(due_at: float) -> None:
    late.append(time.time() - due_at)


def main() -> None:
    url, _, prefix = sys.argv[1].partition("#")
    count = int(sys.argv[2])
    place = urlsplit(url)
    store = RedisJobStore(
        db=int(place.path.strip("/") or 0),
        jobs_key=f"{prefix}.jobs",
        run_times_key=f"{prefix}.times",
        host=place.hostname,
        port=place.port,
        username=place.username,
        password=place.password,
    )
    scheduler = BackgroundScheduler(
        jobstores={"default": store}, executors={"default": ThreadPoolExecutor(_THREADS)}, timezone=UTC
    )
    scheduler.start(paused=True)
    due_at = float(int(time.time()) + _LEAD + count // 500)
    first = datetime.fromtimestamp(due_at, UTC)
    for _ in range(count):
        scheduler.add_job(tick, "interval", [due_at], hours=1, start_date=first, misfire_grace_time=_PATIENCE)
    assert time.time() < due_at, "the burst came before everything was in place"
    scheduler.resume()
    while len(late) < count and time.time() < due_at + _PATIENCE:
        time.sleep(0.02)
    scheduler.shutdown(wait=False)
    store.remove_all_jobs()
    assert len(late) == count, f"{len(late)} of {count} were called"
    tell(late)


if __name__ == "__main__":
    main()
