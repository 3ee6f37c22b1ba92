"""Several nodes on one store."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ksana.domain.jobs import JobSpec, TargetSpec
from ksana.domain.schedules import Once
from ksana.engine.clock import SystemClock
from ksana.engine.engine import Engine
from ksana.stores.open import open_store
from ksana.targets.http import HttpTarget, TargetPolicy
from tests.chaos.api import api
from tests.chaos.deliveries import check_deliveries
from tests.chaos.test_kill import QUICK
from tests.kit.processes import ksana
from tests.kit.sink import Reply, Sink

JOBS = 1000


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_two_nodes_fire_a_thousand_jobs_of_one_second_once_each(
    store_url: str, tmp_path: Path, sink: Sink
) -> None:
    busy = {**QUICK, "KSANA_WORKERS": "50"}
    async with (
        ksana(
            "serve", "--port", "0", "--store", store_url, "--log-level", "info", directory=tmp_path, environment=busy
        ) as one,
        ksana("worker", "--store", store_url, "--log-level", "info", directory=tmp_path, environment=busy) as two,
    ):
        await two.line("working")
        async with api(await one.url()) as client:
            await _seed(store_url, sink.url + "/hit")
            await sink.wait_for(JOBS, timeout=60)
            await client.until_idle()
            runs = await client.all_runs()
            assert len(runs) == JOBS
            assert {run["state"] for run in runs} == {"SUCCESS"}
            assert sink.count == JOBS
            check_deliveries(sink.requests, runs)
            nodes = await client.call("GET", "/api/v2/nodes")
            assert sum(node["is_alive"] for node in nodes) == 2


async def _seed(store_url: str, target: str) -> None:
    """All jobs in one commit, so that their common second lies ahead of every node."""
    store = open_store(store_url)
    await store.open()
    http = HttpTarget(policy=TargetPolicy.of(allow_loopback=True, allow_private=True), now=SystemClock().now)
    engine = Engine(store, {"http": http})
    run_at = datetime.now(UTC) + timedelta(seconds=2)
    specs = [
        JobSpec(name=f"job {number}", target=TargetSpec("http", {"url": target}), schedule=Once(run_at))
        for number in range(JOBS)
    ]
    await engine.jobs.create_many("v2", specs)
    await http.close()
    await store.close()


async def test_a_worker_frozen_past_its_lease_cannot_overwrite_the_newer_result(
    store_url: str, tmp_path: Path, sink: Sink
) -> None:
    release = asyncio.Event()
    target = sink.on("/slow", Reply(status=500, after=release), Reply(status=200))
    command = ("serve", "--port", "0", "--store", store_url, "--log-level", "info")
    async with ksana(*command, directory=tmp_path, environment=QUICK) as first:
        async with api(await first.url()) as client:
            await client.until_settled()
            job = await client.create(
                name="slow",
                target={"kind": "http", "config": {"url": target}},
                timeouts={"total": "1m"},
                retry={"max_attempts": 1},
            )
            run = await client.call("POST", f"/api/v2/jobs/{job['id']}/runs")
            await sink.wait_for(1, path="/slow")
        first.freeze()
        async with ksana(*command, directory=tmp_path, environment=QUICK) as second, api(await second.url()) as client:
            await sink.wait_for(2, path="/slow")
            await client.until_idle()
            done = await client.call("GET", f"/api/v2/runs/{run['id']}")
            assert (done["state"], done["reclaims"]) == ("SUCCESS", 1)
            # The frozen worker wakes and its target answers 500: too late to matter.
            release.set()
            # The answer lies there before the worker wakes; else it may hear first that the run was taken from it.
            await sink.wait_until(lambda: len(sink.replied) == 2, "both replies")
            first.thaw()
            await first.line("newer attempt|lost|fenced|too late")
            after = await client.call("GET", f"/api/v2/runs/{run['id']}")
            assert after == done
            fences = [int(request.header("X-Ksana-Fence") or 0) for request in sink.to("/slow")]
            assert fences == sorted(set(fences))
