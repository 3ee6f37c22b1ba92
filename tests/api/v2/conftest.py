"""A world of its own for every test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.v2.world import World, open_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path / "ksana.db") as world:
        yield world
