"""The description of the tasks surface against the surface: schemathesis makes the requests, valid and not."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.generation.modes import GenerationMode
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from starlette.types import ASGIApp

from tests.api.kit.direct import Direct
from tests.api.kit.honesty import schema_of, try_all
from tests.api.tasks.world import open_world
from tests.kit.sink import Reply, Sink
from tests.services.loop import LoopThread

STOCK: Final = 6


async def _stocked(stack: AsyncExitStack, path: Path) -> ASGIApp:
    """An app in which the first ids exist, in many states."""
    sink = await stack.enter_async_context(Sink())
    world = await stack.enter_async_context(open_world(f"sqlite:///{path}", sink))
    sink.on("/work", Reply(200, b"\xff"), Reply(404), Reply(500), Reply(202))
    policy = {"max_retries": 1, "initial_delay": 60}
    for n in range(STOCK):
        await world.task(exec_type="ASYNC" if n > 2 else "SYNC", retry_policy=policy, concurrency_policy="SKIP")
        await world.trigger(n + 1)
        await world.work()
    return world.app


@pytest.fixture(scope="module")
def described() -> Iterator[BaseSchema]:
    with tempfile.TemporaryDirectory() as folder, LoopThread() as loop:
        stack = AsyncExitStack()
        yield schema_of(loop.run(_stocked(stack, Path(folder) / "ksana.db")), surface="tasks")
        loop.run(stack.aclose())


def test_the_surface_does_what_its_description_says(described: BaseSchema) -> None:
    """C-15, C-116: whatever comes in, the answer is of the described shape, and never a fault of ours."""
    try_all(described, _check, random=2)


def _check(case: schemathesis.Case[Any], session: Direct) -> None:
    is_good = case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE
    if is_good and "id" in case.path_parameters and case.method != "DELETE":
        # An id drawn from 63 bits would never be one that exists.
        case.path_parameters["id"] = 1 + int(case.path_parameters["id"]) % STOCK
    checks: list[Any] = [not_a_server_error, response_schema_conformance, status_code_conformance]
    case.call_and_validate(checks=checks, session=session)
