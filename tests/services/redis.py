"""Redis for the tests: a server is shared by prefix, never by emptying a database somebody may be using."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import redis.asyncio
import redis.exceptions

from tests.services.names import PREFIX
from tests.services.programs import find_program
from tests.services.service import AdmissionError, Recipe


class Redis:
    store = "redis"
    variable = "KSANA_TEST_REDIS"
    package = "redis-server"

    def usual_urls(self) -> list[str]:
        return ["redis://127.0.0.1:6379/0"]

    async def admit(self, url: str) -> None:
        try:
            async with _client(url) as client:
                await client.set(f"{PREFIX}admission", "", ex=60)
        except (OSError, TimeoutError, redis.exceptions.RedisError) as error:
            parts = urlsplit(url)
            raise AdmissionError(f"{parts.hostname}:{parts.port or 6379}: {error}") from error

    def recipe(self, directory: Path, port: int) -> Recipe | None:
        server = find_program("redis-server", "valkey-server")
        if server is None:
            return None
        return Recipe(
            prepare=[],
            serve=[server, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(directory)],
            url=f"redis://127.0.0.1:{port}/0",
            stop_signal=signal.SIGKILL,
            user="redis",
        )

    async def leftovers(self, url: str, *, in_use_too: bool) -> list[str]:
        """Name the keys, not databases; a store may put a hash tag's brace before the prefix."""
        async with _client(url) as client:
            return [key async for key in client.scan_iter(match=f"*{PREFIX}*", count=1000)]

    async def drop(self, url: str, names: list[str]) -> None:
        async with _client(url) as client:
            for start in range(0, len(names), 1000):
                await client.unlink(*names[start : start + 1000])


@asynccontextmanager
async def _client(url: str) -> AsyncIterator["redis.asyncio.Redis"]:
    client = redis.asyncio.from_url(url, decode_responses=True, socket_connect_timeout=5)
    try:
        yield client
    finally:
        await client.aclose()
