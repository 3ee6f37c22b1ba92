"""Redis as a cluster: nodes on it die at random, and it dies itself."""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.api import Api, api
from tests.chaos.deliveries import check_deliveries
from tests.chaos.test_kill import JOBS, QUICK, _job, _no_slot_is_missing
from tests.kit.processes import Process, ksana, program
from tests.kit.sink import Sink
from tests.services.private import _free_port
from tests.services.programs import find_program

NODES = 3
SECONDS = float(os.environ.get("KSANA_TEST_CHAOS_SECONDS", "5"))
"""For how long nodes are killed: a few seconds show that it works, a minute looks for what is rare."""
PER_ROUND = 20


class Nodes:
    """Nodes of one store, which come and go."""

    def __init__(self, store_url: str, directory: Path, stack: AsyncExitStack) -> None:
        self._command = ("serve", "--port", "0", "--store", store_url, "--log-level", "info")
        self._directory = directory
        self._stack = stack
        self.all: list[Process] = []

    async def add(self) -> str:
        """Start one, and give its address."""
        node = await self._stack.enter_async_context(
            ksana(*self._command, directory=self._directory, environment=QUICK)
        )
        self.all.append(node)
        return await node.url()

    async def kill(self, chance: random.Random) -> None:
        await self.all.pop(chance.randrange(len(self.all))).kill()


@pytest.mark.parametrize("store_url", ["redis"], indirect=True)
async def test_nodes_that_die_at_random_fire_every_slot_once(store_url: str, tmp_path: Path, sink: Sink) -> None:
    chance = random.Random(7)
    async with AsyncExitStack() as stack:
        nodes = Nodes(store_url, tmp_path, stack)
        for _ in range(NODES):
            url = await nodes.add()
        async with api(url) as client:
            jobs = [await _job(client, sink, number) for number in range(JOBS)]
        end, rounds = time.monotonic() + SECONDS, 0
        while time.monotonic() < end or rounds < NODES:
            await sink.wait_for(sink.count + chance.randrange(PER_ROUND))
            # Two of three may be gone at once.
            for _ in range(chance.choice((1, 1, 2))):
                await nodes.kill(chance)
            while len(nodes.all) < NODES:
                url = await nodes.add()
            rounds += 1
        async with api(url) as client:
            await sink.wait_for(sink.count + PER_ROUND)
            await _all_is_accounted_for(client, sink, jobs)
        assert [await node.stop() for node in nodes.all] == [0] * NODES


@pytest.mark.usefixtures("redis_url")
async def test_a_redis_that_is_killed_and_started_again_has_all_that_was_acknowledged(
    tmp_path: Path, sink: Sink
) -> None:
    port = _free_port()
    command = ("serve", "--port", "0", "--store", f"redis://127.0.0.1:{port}/0", "--log-level", "info")
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(_redis(tmp_path, port))
        server = await stack.enter_async_context(ksana(*command, directory=tmp_path, environment=QUICK))
        client = await stack.enter_async_context(api(await server.url()))
        jobs = [await _job(client, sink, number) for number in range(JOBS)]
        acknowledged: list[int] = []
        making = asyncio.create_task(_make_jobs(client, acknowledged))
        await sink.wait_for(JOBS * 2)
        await redis.kill()
        await making
        await server.line("store")
        assert await client.status("/readyz") == 503
        await stack.enter_async_context(_redis(tmp_path, port))
        await sink.wait_for(sink.count + JOBS * 3)
        assert await client.status("/readyz") == 200
        assert len(acknowledged) >= 1
        for number in acknowledged:
            assert (await client.call("GET", f"/api/v2/jobs/{number}"))["name"] == f"made {number}"
        await _all_is_accounted_for(client, sink, jobs)
        assert await server.stop() == 0


async def _make_jobs(client: Api, acknowledged: list[int]) -> None:
    """Make one after the other until the server no longer says that it did."""
    with suppress(AssertionError):
        while True:
            job = await client.create(name="new", target={"kind": "noop"})
            changed = await client.call("PATCH", f"/api/v2/jobs/{job['id']}", {"name": f"made {job['id']}"})
            acknowledged.append(changed["id"])


async def _all_is_accounted_for(client: Api, sink: Sink, jobs: list[dict[str, Any]]) -> None:
    """Every slot is one run, and every run was done, but for those the pause at the end has met waiting."""
    paused = [await client.call("POST", f"/api/v2/jobs/{job['id']}/pause") for job in jobs]
    await client.until_idle()
    runs = [run for job in jobs for run in await client.all_runs(job_id=job["id"])]
    check_deliveries(sink.requests, runs)
    paused_at = {job["id"]: job["paused_at"] for job in paused}
    undone = [run for run in runs if run["state"] != "SUCCESS"]
    assert [run for run in undone if run["state"] != "CANCELED" or run["ended_at"] < paused_at[run["job_id"]]] == []
    for job in paused:
        await _no_slot_is_missing(client, job)
        log = await client.call("GET", f"/api/v2/jobs/{job['id']}/fires?limit=1000")
        assert [record for record in log if record["run_id"] is None and record["reason"] != "paused"] == []


@asynccontextmanager
async def _redis(directory: Path, port: int) -> AsyncIterator[Process]:
    """A Redis that writes down all it says yes to, in a directory that outlives it."""
    server = find_program("redis-server", "valkey-server")
    if server is None:
        pytest.skip("neither redis-server nor valkey-server is installed")
    safely = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
    command = (server, "--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory), *safely)
    async with program(*command, directory=directory) as process:
        await process.line("[Rr]eady to accept connections")
        yield process
