"""`ksana bench`: how many runs a server makes, and how late they begin."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from ksana.cli.asking import connected, shown
from ksana.cli.output import Out
from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.errors import InvalidArgument, KsanaError

if TYPE_CHECKING:
    from ksana.client import Client, Run

_SHORTEST = timedelta(milliseconds=100)
_SETTLE = 5.0
_STEP = 0.2


@click.command()
@click.option("--jobs", "count", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many jobs.")
@click.option("--rate", type=click.FloatRange(0.1), default=50.0, show_default=True, help="Runs a second, in all.")
@click.option("--for", "length", default="10s", show_default=True, help="How long.")
@click.option("--target", "kind", default="noop", show_default=True, help="Kind of target: noop, echo, sleep …")
@click.option("--private", "is_private", is_flag=True, help="Start a server of its own on a fresh SQLite file.")
@click.option("--url", help="The server (KSANA_URL, else http://127.0.0.1:7100).")
@click.option("--key", "--token", "key", help="The API key (KSANA_KEY).")
@shown
def bench(
    count: int,
    rate: float,
    length: str,
    kind: str,
    is_private: bool,
    url: str | None,
    key: str | None,
    out: Out,
) -> None:
    """Put a load on a server: jobs that run at a steady rate for a while, deleted at the end.

    Prints how many runs were made and ended a second, and how long after their planned instants they began.
    """
    span = parse_duration(length, "--for")
    every = timedelta(seconds=count / rate)
    if every < _SHORTEST:
        raise InvalidArgument.of("--rate", f"{count} jobs make at most {count * 10} runs a second; say more --jobs")
    with _server(is_private, url, key) as server:
        result = _measured(server, out, count, every, span, kind)
    _show(out, result, rate)


@contextmanager
def _server(is_private: bool, url: str | None, key: str | None) -> Iterator[Client]:
    if not is_private:
        with connected(url, key) as server:
            yield server
        return
    import re
    import subprocess
    import sys
    import tempfile
    import threading

    with tempfile.TemporaryDirectory(prefix="ksana-bench-") as directory:
        words = ["serve", "--port", "0", "--store", f"sqlite:{directory}/ksana.db", "--log-format", "text"]
        program = [sys.executable, "-m", "ksana", *words]
        child = subprocess.Popen(  # noqa: S603
            program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=directory
        )
        try:
            assert child.stderr is not None
            found = next((match for line in child.stderr if (match := re.search(r"http://[\w.:]+\d", line))), None)
            if found is None:
                raise KsanaError("the private server did not start; see `ksana doctor`")
            # What it goes on to say has to go somewhere, or it would wait for a reader.
            threading.Thread(target=child.stderr.read, daemon=True).start()
            with connected(found[0], None) as server:
                yield server
        finally:
            child.terminate()
            child.wait(30)


def _measured(server: Client, out: Out, count: int, every: timedelta, span: timedelta, kind: str) -> dict[str, Any]:
    """Make the jobs, let them run, and look at their runs; the jobs never outlive this."""
    import uuid

    tag = f"bench-{uuid.uuid4().hex[:12]}"
    made: list[int] = []
    try:
        out.say(f"making {count} jobs, each every {format_duration(every)} …")
        for number in range(count):
            job = server.jobs.create(
                f"{tag}-{number}", target={"kind": kind}, every=every, tags=[tag], overlap={"rule": "parallel"}
            )
            made.append(job.id)
        _let_pass(out, 2 * every + span)
        for job_id in made:
            server.jobs.pause(job_id)
        return _figures(_settled(server, tag), span)
    finally:
        for job_id in made:
            server.jobs.delete(job_id)


def _settled(server: Client, tag: str) -> list[Run]:
    """The runs once all of them are over, or as they are if some take long."""
    deadline = time.monotonic() + _SETTLE
    while True:
        runs = list(server.runs.list(tag=tag, page_size=200))
        if all(run.is_over for run in runs) or time.monotonic() > deadline:
            return runs
        time.sleep(_STEP)


def _let_pass(out: Out, span: timedelta) -> None:
    import sys

    steps = max(1, round(span.total_seconds() / _STEP))
    if not sys.stderr.isatty() or out.is_quiet:
        time.sleep(span.total_seconds())
        return
    with click.progressbar(range(steps), label="running", file=sys.stderr) as bar:
        for _ in bar:
            time.sleep(span.total_seconds() / steps)


def _figures(runs: list[Run], span: timedelta) -> dict[str, Any]:
    """Of the stretch in which all jobs were there; what ran while they were still being made says nothing."""
    firsts: dict[int | None, datetime] = {}
    for run in runs:
        firsts[run.job_id] = min(run.planned_at, firsts.get(run.job_id, run.planned_at))
    begin = max(firsts.values(), default=None)
    counted = [] if begin is None else [run for run in runs if begin <= run.planned_at < begin + span]
    late = sorted(_late(run.planned_at, run.started_at) for run in counted if run.started_at is not None)
    ended = sum(run.is_over for run in counted)
    return {
        "runs": len(counted),
        "succeeded": sum(run.ok for run in counted),
        "failed": sum(run.is_over and not run.ok for run in counted),
        "unfinished": len(counted) - ended,
        "seconds": span.total_seconds(),
        "runs_per_second": round(ended / span.total_seconds(), 1),
        "late_p50_ms": _quantile(late, 0.5),
        "late_p95_ms": _quantile(late, 0.95),
        "late_p99_ms": _quantile(late, 0.99),
        "late_max_ms": _quantile(late, 1.0),
    }


def _late(planned_at: datetime, started_at: datetime) -> float:
    return max(0.0, (started_at - planned_at).total_seconds() * 1000)


def _quantile(ordered: list[float], share: float) -> float | None:
    return None if not ordered else round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)


def _show(out: Out, result: dict[str, Any], rate: float) -> None:
    fields = [(name.replace("_", " "), "" if value is None else str(value)) for name, value in result.items()]
    out.fields([("asked for a second", f"{rate:g}"), *fields], result, result["runs_per_second"])
