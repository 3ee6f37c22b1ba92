"""A target that may call this machine, closed after the test; both loops where transports matter."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest
import uvloop

from ksana.targets.http import HttpTarget
from tests.targets.http.attempts import http_target

MakeTarget = Callable[..., HttpTarget]


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Transports differ in when they write, close and tell, so what depends on that runs on both kinds of loop."""
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.path.stem in ("test_begin", "test_wire"):
        loops["uvloop"] = uvloop.new_event_loop
    return loops


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
