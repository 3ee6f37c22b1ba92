"""A short way to speak to a server under test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp


class Api:
    """`/api/v2` of one server."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self.url = url

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        async with self._session.request(method, self.url + path, json=body) as answer:
            shown = await answer.json() if answer.content_type == "application/json" else await answer.text()
            assert answer.status < 300, (method, path, answer.status, shown)
            return shown

    async def create(self, **fields: Any) -> dict[str, Any]:
        job: dict[str, Any] = await self.call("POST", "/api/v2/jobs", fields)
        return job

    async def status(self, path: str) -> int:
        async with self._session.get(self.url + path) as answer:
            return answer.status

    async def until_idle(self, timeout: float = 30) -> None:
        """Wait until no run is unfinished."""
        states = "&".join(f"state={state}" for state in ("WAITING", "SCHEDULED", "RUNNING", "RETRYING"))
        async with asyncio.timeout(timeout):
            while (await self.call("GET", f"/api/v2/runs?page_size=1&{states}"))["total"]:
                pass

    async def until_settled(self, timeout: float = 30) -> None:
        """Wait until a node that has just started is done with what it does at its start: one frozen in the midst of
        it may hold locks that keep others from their own upkeep, for as long as the database lets it."""
        leases: set[str] = set()
        async with asyncio.timeout(timeout):
            while len(leases) < 4:
                leases |= {node["lease_until"] for node in await self.call("GET", "/api/v2/nodes")}

    async def all_runs(self, **filters: str) -> list[dict[str, Any]]:
        """Every run that matches, page by page, newest first."""
        found: list[dict[str, Any]] = []
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        while True:
            after = f"&before_id={found[-1]['id']}" if found else ""
            page = await self.call("GET", f"/api/v2/runs?page_size=200&{query}{after}")
            found += page["items"]
            if len(page["items"]) < 200:
                return found


@asynccontextmanager
async def api(url: str) -> AsyncIterator[Api]:
    async with aiohttp.ClientSession() as session:
        yield Api(session, url)
