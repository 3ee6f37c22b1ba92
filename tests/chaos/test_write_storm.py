"""A storm of changes on the JSON file, with the power cut again and again: nothing acknowledged is lost, and whoever
reads the file at any moment reads a whole one. (K-59, K-60, K-96, K-101)"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from tests.chaos.reader import read_all_the_time
from tests.kit.processes import Process, ksana

KILLS = 10
PER_LIFE = 30
SENDERS = 8
JOB = {
    "type": "http",
    "http": {"method": "POST", "url": "http://127.0.0.1:9/never"},
    "schedule": {"kind": "every", "every": "1h"},
}


class Server(NamedTuple):
    """A process and its address."""

    process: Process
    url: str


class Storm:
    """Creates jobs and renames old ones, and remembers what was acknowledged: by id, the newest name."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.under_way: dict[str, set[str]] = {}
        self.changes = 0

    async def rage(self, server: Server) -> None:
        """Have many send changes at once until enough are acknowledged, then cut the power under the rest."""
        wanted, enough = self.changes + PER_LIFE, asyncio.Event()
        async with aiohttp.ClientSession(server.url) as session:
            senders = [asyncio.ensure_future(self._send(session, wanted, enough)) for _ in range(SENDERS)]
            await asyncio.wait_for(enough.wait(), 30)
            await server.process.kill()
            await asyncio.gather(*senders)

    async def _send(self, session: aiohttp.ClientSession, wanted: int, enough: asyncio.Event) -> None:
        """Send one change after the other, until the server is gone."""
        while True:
            try:
                await self._change(session)
            except aiohttp.ClientError:
                return
            if self.changes >= wanted:
                enough.set()

    async def _change(self, session: aiohttp.ClientSession) -> None:
        number = sum(map(len, self.under_way.values()))
        known = list(self.names)
        id = f"job-{number}" if number % 3 or not known else known[number % len(known)]
        name = f"name {number}"
        self.under_way.setdefault(id, set()).add(name)
        body = {"name": name} if id in self.names else {**JOB, "id": id, "name": name}
        method, path = ("PATCH", f"/jobs/{id}") if id in self.names else ("POST", "/jobs")
        async with session.request(method, path, json=body) as answer:
            assert answer.status in (200, 201), await answer.text()
            self.names[id] = (await answer.json())["name"]
            self.changes += 1

    def check(self, jobs: list[dict[str, Any]]) -> None:
        """Everything acknowledged is there; a name is the one acknowledged last, or one that was on its way."""
        found = {job["id"]: job["name"] for job in jobs}
        assert self.names.keys() - found.keys() == set()
        for id, name in found.items():
            assert name in self.under_way[id]
        # What was in the air when the power went may or may not have happened; from here on it is known.
        self.names.update(found)


@asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[Server]:
    words = ("serve", "--port", "0", "--store", "json:data", "--log-level", "info")
    async with ksana(*words, directory=directory) as process:
        yield Server(process, await process.url())


async def test_a_storm_of_changes_survives_ten_power_cuts(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    storm = Storm()
    with read_all_the_time(directory / "jobs.json"):
        for _ in range(KILLS):
            async with serving(tmp_path) as server:
                await storm.rage(server)
            storm.check(json.loads((directory / "jobs.json").read_bytes())["jobs"])
        async with serving(tmp_path) as server:
            async with aiohttp.ClientSession(server.url) as session, session.get("/jobs") as answer:
                storm.check(await answer.json())
            assert await server.process.stop() == 0
    assert storm.changes >= KILLS * PER_LIFE
    assert not list(directory.glob("jobs.bad*"))
