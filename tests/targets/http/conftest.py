"""A target that may call this machine, closed after the test."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from ksana.targets.http import HttpTarget
from tests.targets.http.attempts import http_target

MakeTarget = Callable[..., HttpTarget]


@pytest.fixture
async def make_target() -> AsyncIterator[MakeTarget]:
    """Make targets that are closed after the test."""
    made: list[HttpTarget] = []

    def make(**changed: Any) -> HttpTarget:
        made.append(http_target(**changed))
        return made[-1]

    yield make
    for target in made:
        await target.close()


@pytest.fixture
async def target(make_target: MakeTarget) -> HttpTarget:
    return make_target()
