"""A world of its own for every test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.v2.world import World, open_world


@pytest.fixture
async def world(migrated_sqlite_path: Path) -> AsyncIterator[World]:
    async with open_world(migrated_sqlite_path) as world:
        yield world
