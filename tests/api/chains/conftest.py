"""Chains on SQLite, or on every store where a test is about what the store must bear."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.api.chains.world import Chains
from tests.engine.conftest import (  # noqa: F401  # fixtures are found by their names
    Worlds,
    json_world_url,
    mysql_world_url,
    postgres_world_url,
    sqlite_world_url,
)


class ManyChains(Worlds):
    async def create(self, **options: Any) -> Chains:
        chains = Chains(self._store, **options)
        self._worlds.append(chains)
        await chains.open()
        return chains


@pytest.fixture
async def chains(sqlite_world_url: str) -> AsyncIterator[Chains]:  # noqa: F811
    worlds = ManyChains(sqlite_world_url)
    yield await worlds.create()
    await worlds.close()


@pytest.fixture(params=["sqlite", "postgres", "mysql", "json"])
async def any_chains(request: pytest.FixtureRequest) -> AsyncIterator[Chains]:
    """The same on every store."""
    worlds = ManyChains(request.getfixturevalue(f"{request.param}_world_url"))
    yield await worlds.create()
    await worlds.close()
