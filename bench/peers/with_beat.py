"""Celery Beat, its broker on Redis and one worker with eight threads: so many schedules due at the same instant."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis
from celery import Celery
from celery.schedules import schedstate, schedule
from lateness import tell

_WHERE, _COUNT, _DUE, _NOTES = (f"KSANA_BENCH_BEAT_{name}" for name in ("WHERE", "COUNT", "DUE", "NOTES"))
_LEAD = 8
_PATIENCE = 120

where = os.environ.get(_WHERE) or sys.argv[1]
count = int(os.environ.get(_COUNT) or sys.argv[2])
due_at = float(os.environ.get(_DUE, "0"))
url, _, prefix = where.partition("#")
app = Celery("with_beat", broker=url)
app.conf.broker_transport_options = {"global_keyprefix": prefix}
app.conf.broker_connection_retry_on_startup = True
app.conf.task_ignore_result = True


class Hourly(schedule):
    """Due at one instant, and an hour later again."""

    def __init__(self) -> None:
        super().__init__(run_every=3600)

    def is_due(self, last_run_at: object) -> schedstate:
        wait = due_at - time.time()
        is_first = last_run_at.timestamp() < due_at  # type: ignore[attr-defined]
        return schedstate(wait <= 0 and is_first, wait if wait > 0 else 3600)

    def __reduce__(self) -> tuple[type[Hourly], tuple[()]]:
        return type(self), ()


@app.task(name="tick")
def tick() -> None:
    now = time.time()
    notes = os.open(os.environ[_NOTES], os.O_WRONLY | os.O_APPEND)
    os.write(notes, b"%.6f\n" % now)
    os.close(notes)


if _DUE in os.environ:
    app.conf.beat_schedule = {f"s{number}": {"task": "tick", "schedule": Hourly()} for number in range(count)}


def _start(*words: str, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "with_beat", *words, "-l", "ERROR"],
        cwd=Path(__file__).resolve().parent,
        env={**os.environ, _WHERE: where, _COUNT: str(count), **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        notes = Path(directory) / "notes"
        notes.touch()
        os.environ[_NOTES] = str(notes)
        alone = ("--without-gossip", "--without-mingle", "--without-heartbeat")
        running = [_start("worker", "-P", "threads", "-c", "8", *alone)]
        try:
            tick.delay()
            _until(lambda: len(notes.read_bytes().splitlines()) >= 1, time.time() + _PATIENCE)
            due = float(int(time.time()) + _LEAD)
            running.append(_start("beat", "-s", f"{directory}/beat", **{_DUE: str(due)}))
            _until(lambda: len(notes.read_bytes().splitlines()) > count, due + _PATIENCE)
            times = [float(line) - due for line in notes.read_text().splitlines()[1:]]
        finally:
            for process in running:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
            _forget(redis.Redis.from_url(url))
    assert len(times) == count, f"{len(times)} of {count} were called"
    assert min(times) >= 0, "one was called before its time"
    tell(times)
    # What is left of the broker's threads has nothing more to say.
    sys.stdout.flush()
    os._exit(0)


def _until(is_so: object, deadline: float) -> None:
    while not is_so():  # type: ignore[operator]
        if time.time() > deadline:
            raise TimeoutError("the peer did not come to an end")
        time.sleep(0.05)


def _forget(server: redis.Redis) -> None:
    """Leave nothing behind on a server that others use."""
    for key in server.scan_iter(f"{prefix}*", count=1000):
        server.delete(key)


if __name__ == "__main__":
    main()
