"""Kill -9 in a loop under load: nothing lost, nothing doubled, on every store."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.api import Api, api
from tests.chaos.conftest import STORES
from tests.chaos.deliveries import check_deliveries
from tests.kit.processes import ksana
from tests.kit.sink import Sink

JOBS = 10
EVERY = timedelta(milliseconds=200)
ROUNDS = 4
PER_ROUND = 25
QUICK = {"KSANA_LEASE": "1s", "KSANA_WORKERS": "16", "KSANA_POLL": "200ms", "KSANA_LOG_LEVEL": "warning"}


@pytest.mark.parametrize("store_url", [*STORES, "json", "redis"], indirect=True)
async def test_killing_the_server_again_and_again_loses_and_doubles_nothing(
    store_url: str, tmp_path: Path, sink: Sink
) -> None:
    command = ("serve", "--port", "0", "--store", store_url, "--log-level", "info")
    jobs: list[dict[str, Any]] = []
    for number in range(ROUNDS):
        async with ksana(*command, directory=tmp_path, environment=QUICK) as server:
            url = await server.url()
            if number == 0:
                async with api(url) as client:
                    jobs = [await _job(client, sink, i) for i in range(JOBS)]
            await sink.wait_for(sink.count + PER_ROUND)
            await server.kill()

    async with ksana(*command, directory=tmp_path, environment=QUICK) as server:
        async with api(await server.url()) as client:
            await sink.wait_for(sink.count + PER_ROUND)
            paused = [await client.call("POST", f"/api/v2/jobs/{job['id']}/pause") for job in jobs]
            await client.until_idle()
            runs = await client.all_runs()
            check_deliveries(sink.requests, runs)
            for job in paused:
                await _no_slot_is_missing(client, job)
        assert await server.stop() == 0


async def _job(client: Api, sink: Sink, number: int) -> dict[str, Any]:
    return await client.create(
        name=f"job {number}",
        target={"kind": "http", "config": {"method": "POST", "url": sink.url + "/hit"}},
        schedule={"kind": "every", "every": "200ms"},
        overlap={"rule": "parallel"},
        misfire={"rule": "catch_up", "limit": 1000},
        retry={"max_attempts": 50, "initial_delay": "100ms"},
    )


async def _no_slot_is_missing(client: Api, job: dict[str, Any]) -> None:
    """Every planned instant from the first to the pause is a run of its own or lies inside a gap."""
    log = await client.call("GET", f"/api/v2/jobs/{job['id']}/fires?limit=1000")
    origin = _at(job["schedule"]["origin_at"])
    seen: set[int] = set()
    for record in log:
        first = round((_at(record["from_at"]) - origin) / EVERY)
        slots = set(range(first, first + record["count"]))
        assert not slots & seen, f"slot {slots & seen} of job {job['id']} has two records: {record}"
        seen |= slots
    last = (_at(job["paused_at"]) - origin) // EVERY
    missing = set(range(1, last)) - seen
    assert not missing, f"slots {sorted(missing)} of job {job['id']} left no trace"


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)
