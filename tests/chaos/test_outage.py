"""The database goes away for a while under a running server."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.chaos.api import api
from tests.chaos.deliveries import check_deliveries
from tests.chaos.proxy import Proxy
from tests.chaos.test_kill import JOBS, QUICK, _job, _no_slot_is_missing
from tests.kit.processes import ksana
from tests.kit.sink import Sink

PORTS = {"postgresql": 5432, "mysql": 3306, "redis": 6379}


@pytest.mark.parametrize("store_url", ["postgres", "mysql", "redis"], indirect=True)
async def test_a_database_that_goes_away_and_comes_back_costs_nothing(
    store_url: str, tmp_path: Path, sink: Sink
) -> None:
    parts = urlsplit(store_url)
    async with Proxy(parts.hostname or "127.0.0.1", parts.port or PORTS[parts.scheme]) as wire:
        login = "".join(parts.netloc.rpartition("@")[:2])
        through = parts._replace(netloc=f"{login}127.0.0.1:{wire.port}").geturl()
        command = ("serve", "--port", "0", "--store", through, "--log-level", "info")
        async with ksana(*command, directory=tmp_path, environment=QUICK) as server, api(await server.url()) as client:
            jobs = [await _job(client, sink, number) for number in range(JOBS)]
            await sink.wait_for(JOBS * 2)
            await wire.cut()
            await server.line("store")
            assert await client.status("/readyz") == 503
            assert await client.status("/healthz") == 200
            await wire.mend()
            await sink.wait_for(sink.count + JOBS * 3)
            assert await client.status("/readyz") == 200
            paused = [await client.call("POST", f"/api/v2/jobs/{job['id']}/pause") for job in jobs]
            await client.until_idle()
            check_deliveries(sink.requests, await client.all_runs())
            for job in paused:
                await _no_slot_is_missing(client, job)
            assert await server.stop() == 0
