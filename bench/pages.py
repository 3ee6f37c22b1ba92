"""What the pages of the console ask for, with a week of a hundred thousand runs stored: every answer within 300 ms.

python bench/pages.py seed URL RUNS         store a week of runs, some of them failed
python bench/pages.py ask URL TIMES         start a server on them, and ask for everything each page asks for
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import uvloop
from figures import MILLIS, Figure, Missing, Row, at_most
from fresh import FailedError, say, script
from ours import Bench
from pyreqwest.client import Client, ClientBuilder
from served import serving

from ksana.domain.archive import Section
from ksana.domain.jobs import Job, JobSpec, TargetSpec
from ksana.domain.outcomes import Verdict
from ksana.domain.runs import Attempt, Run, Trigger
from ksana.domain.schedules import Every
from ksana.domain.states import State

# What is measured must not carry what only the one who measures needs.
if TYPE_CHECKING:
    from places import Places

_RUNS = 100_000
_QUICK = 20
_JOBS = 200
_WEEK = timedelta(days=7)
# Has nothing in common with the number of jobs, so that each of them fails at times.
_FAILS_ONE_IN = 21
_STORED_AT_ONCE = 1_000
_TIMES = 9
_LIMIT_MS = 300
# What a page shows a list of, and the answers in which there is nothing to list.
_LISTS = ("items", "lanes", "bars", "cells", "groups", "nodes", "runs", "segments")
_EMPTY = {"runs by an error there is none of", "operations", "alerts", "objects", "runs/{id}/callbacks"}
# By kind there are three lanes: those of jobs, of items and of chains.
_LANES = ("noop", "item", "chain")
_QUEUE = "pages"
_ITEMS = 500


def rows(places: Places, rounds: int, quick: bool) -> Iterator[Row]:
    runs = _RUNS // _QUICK if quick else _RUNS
    try:
        with places.fresh("sqlite") as url:
            say(f"  storing {runs:,} runs")
            script("pages.py", "seed", url, runs)
            told = [script("pages.py", "ask", url, _TIMES) for _ in range(rounds)]
    except FailedError as error:
        yield Row(f"pages, {runs:,} runs, SQLite", Missing(str(error)))
        return
    for name in told[0]:
        figure = Figure(tuple(one[name] for one in told), MILLIS)
        yield Row(f"GET {name}, {runs:,} runs, SQLite", figure, wanted=at_most(_LIMIT_MS))


async def _seed(url: str, runs: int) -> dict[str, float]:
    now = datetime.now(UTC).replace(microsecond=0)
    bench = Bench(url, 1)
    await bench.store.open()
    jobs = [await bench.engine.jobs.create("v2", _spec(number, now)) for number in range(_JOBS)]
    ids = await bench.store.reserve_ids("run", runs)
    for start in range(0, runs, _STORED_AT_ONCE):
        made = [
            _run(ids[i], jobs[i % _JOBS], now - _WEEK * (runs - i) / runs)
            for i in range(start, start + _STORED_AT_ONCE)
        ]
        await bench.store.restore(Section.RUNS, made)
        await bench.store.restore(Section.ATTEMPTS, [_attempt(run) for run in made])
    while await bench.store.roll_up(now):
        pass
    await bench.close()
    # Here, and not where it is measured: every round has to find the same things.
    async with serving(url) as address:
        client = ClientBuilder().no_proxy().build()
        await _add_a_chain_and_a_queue(client, address)
        for job in jobs:
            # Leaves a version and a line of the audit.
            change = client.patch(f"{address}/api/v2/jobs/{job.id}").body_json({"description": "changed"})
            assert (await change.build().send()).status == 200
        await client.close()
    return {"runs": runs}


def _spec(number: int, now: datetime) -> JobSpec:
    every = Every(timedelta(hours=1), origin_at=now)
    return JobSpec(name=f"job {number}", target=TargetSpec("noop"), schedule=every, tags=(f"team {number % 9}",))


def _run(number: int, job: Job, at: datetime) -> Run:
    is_bad = number % _FAILS_ONE_IN == 0
    return Run(
        id=number,
        job_id=job.id,
        job_version=job.version,
        surface="v2",
        kind="noop",
        trigger=Trigger.SCHEDULE,
        slot_at=at,
        state=State.FAILED if is_bad else State.SUCCESS,
        epoch=2,
        attempt=1,
        due_at=at,
        created_at=at,
        started_at=at + timedelta(milliseconds=3),
        ended_at=at + timedelta(milliseconds=40),
        error=f"503 Service Unavailable from POST http://host/{number // _FAILS_ONE_IN % 7}" if is_bad else "",
    )


def _attempt(run: Run) -> Attempt:
    assert run.started_at is not None and run.ended_at is not None
    verdict = Verdict.FAIL if run.error else Verdict.SUCCESS
    return Attempt(
        run_id=run.id,
        number=1,
        epoch=1,
        started_at=run.started_at,
        ended_at=run.ended_at,
        verdict=verdict,
        code=503 if run.error else 200,
        error=run.error,
    )


async def _ask(url: str, times: int) -> dict[str, float]:
    async with serving(url) as address:
        client = ClientBuilder().no_proxy().build()
        places = await _places(client, address)
        told = {name: await _median(client, name, address + path, times) for name, path in places.items()}
        await client.close()
    return told


async def _median(client: Client, name: str, url: str, times: int) -> float:
    took: list[float] = []
    # The first also fills the caches that every server has after its first visitor.
    for _ in range(times + 1):
        began = time.perf_counter()
        response = await client.get(url).build().send()
        text = await response.text()
        took.append(time.perf_counter() - began)
        assert response.status == 200, f"{name}: {response.status}"
    # An answer that leaves out what it should show is quick for nothing.
    assert _shows(json.loads(text)) or name in _EMPTY, f"{name}: there is nothing in the answer"
    return statistics.median(took[1:]) * 1000


def _shows(answer: Any) -> bool:
    """Whether there is something in every list that an answer is about."""
    lists = [answer] if isinstance(answer, list) else [answer[key] for key in _LISTS if key in answer]
    return all(lists) and len(answer.get("lanes", _LANES) if isinstance(answer, dict) else _LANES) >= len(_LANES)


async def _add_a_chain_and_a_queue(client: Client, address: str) -> None:
    nodes = [{"id": f"n{i}", "type": "noop", "deps": [f"n{i - 1}"] if i else []} for i in range(20)]
    chain = {"name": "chain", "target": {"kind": "chain", "config": {"nodes": nodes}}}
    job = await _post(client, f"{address}/api/v2/jobs", chain)
    await _post(client, f"{address}/api/v2/jobs/{job['id']}/runs", {})
    items = [{"queue": _QUEUE, "max_attempts": 1} for _ in range(_ITEMS)]
    await _post(client, f"{address}/scheduler/jobs/batch", {"jobs": items})
    wish = {"queue": _QUEUE, "worker_id": "w", "limit": _ITEMS // 10}
    for item in (await _post(client, f"{address}/scheduler/jobs/pull", wish))["jobs"]:
        await _post(client, f"{address}/scheduler/jobs/{item['job_id']}/fail", {"error": "no such address"})
    # Held for longer than measuring takes.
    await _post(client, f"{address}/scheduler/jobs/pull", {**wish, "lease_sec": 3600})


async def _post(client: Client, url: str, body: Any) -> Any:
    response = await client.post(url).body_json(body).build().send()
    assert response.status in (200, 201, 202), await response.text()
    return await response.json()


async def _places(client: Client, address: str) -> dict[str, str]:
    """What each page asks for when it is opened, and what its filters lead to: paths by their names in the table."""

    async def get(path: str) -> Any:
        return await (await client.get(f"{address}/api/v2/{path}").build().send()).json()

    failed = (await get("runs?state=FAILED&page_size=1"))["items"][0]
    chain = (await get("jobs?kind=chain"))["items"][0]["id"]
    begun = (await get(f"jobs/{chain}/runs"))["items"][0]["id"]
    ids = ",".join(str(job["id"]) for job in (await get("jobs?page_size=50"))["items"])
    job, run = f"jobs/{failed['job_id']}", f"runs/{failed['id']}"
    parts = ("/attempts", "/waterfall", "/callbacks", "/neighbours", "/similar", "/diff")
    asked = {
        "overview": "overview",
        "timeline, 1 h": _stretch("timeline", hours=1, is_open=False, group="job", limit=12),
        **{
            f"timeline, 7 d, by {by}": _stretch("timeline", days=7, is_open=False, group=by, limit=12)
            for by in ("job", "tag", "kind")
        },
        "heatmap, 7 d": "heatmap?days=7&timezone=Asia%2FShanghai",
        "jobs": "jobs?page_size=50",
        "jobs by name": "jobs?name=job%201&sort=-name",
        "jobs/outcomes of 50": f"jobs/outcomes?ids={ids}",
        "jobs/{id}": job,
        "jobs/{id}/runs": f"{job}/runs?page_size=60",
        "jobs/{id}/fires, 7 d": _stretch(f"{job}/fires", days=7, limit=200),
        "jobs/{id}/versions": f"{job}/versions",
        "audit of a job": f"audit?subject=job&subject_id={failed['job_id']}",
        "runs": "runs?page_size=50",
        "runs, 24 h": _stretch("runs", days=1),
        "runs, a late page": "runs?page=80&page_size=50",
        "runs that failed": "runs?state=FAILED&state=TIMEOUT&state=DEAD_LETTER",
        "runs by name": "runs?name=job%2017",
        "runs by error": "runs?error=host%2F3",
        "runs by an error there is none of": "runs?error=nowhere",
        "runs by tag": "runs?tag=team%203",
        "runs/histogram, 24 h": _stretch("runs/histogram", days=1, buckets=80),
        "runs/histogram, 30 d": _stretch("runs/histogram", days=30, buckets=80),
        "runs/histogram, 7 d, by error": _stretch("runs/histogram", days=7, buckets=80, state="FAILED", error="host"),
        "runs/{id}": run,
        **{f"runs/{{id}}{part}": f"{run}{part}" for part in parts},
        "chains": "jobs?kind=chain",
        "jobs/{id}/layout": f"jobs/{chain}/layout",
        "jobs/{id}/grid": f"jobs/{chain}/grid?runs=25",
        "runs/{id}/layout": f"runs/{begun}/layout",
        "runs/{id}/steps": f"runs/{begun}/steps",
        "queues": "queues",
        "queues/{name}/holders": f"queues/{_QUEUE}/holders",
        **{
            name: name for name in ("targets", "caller", "system", "settings", "nodes", "audit", "operations", "alerts")
        },
    }
    items = {
        "items": f"jobs?queue={_QUEUE}",
        **{name: name for name in ("dead-letters", "dead-letters/groups", "objects")},
    }
    return {name: f"/api/v2/{path}" for name, path in asked.items()} | {
        name: f"/scheduler/{path}" for name, path in items.items()
    }


def _stretch(path: str, *, days: int = 0, hours: int = 0, is_open: bool = True, **more: str | int) -> str:
    """From so long ago until now, or, as the time line has it, until a quarter of that ahead."""
    now, span = datetime.now(UTC), timedelta(days=days, hours=hours)
    ends = {"since": now - span} if is_open else {"since": now - span, "until": now + span / 4}
    told = {name: at.strftime("%Y-%m-%dT%H:%M:%SZ") for name, at in ends.items()}
    return f"{path}?{urlencode({**told, **more})}"


def main() -> None:
    match sys.argv[1:]:
        case ["seed", url, runs]:
            told = uvloop.run(_seed(url, int(runs)))
        case ["ask", url, times]:
            told = uvloop.run(_ask(url, int(times)))
        case _:
            sys.exit(__doc__)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
