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
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from starlette.types import ASGIApp, Receive, Scope, Send

from ksana.api import tasks
from ksana.api.kit import build_app
from ksana.domain.idempotency import IdempotencyRecord
from tests.api.kit.honesty import random_requests, schema_of
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


class _Stage:
    """Where the app will stand: tests are collected from its description before there is a store to run on."""

    def __init__(self) -> None:
        self.app = build_app([tasks.surface()], None, idempotency=NoAnswers(), version="1")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


class NoAnswers:
    async def find(self, scope: str, key: str) -> IdempotencyRecord | None:
        return None


stage = _Stage()
schema = schema_of(stage)


@pytest.fixture(scope="module", autouse=True)
def on_stage() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, LoopThread() as loop:
        stack = AsyncExitStack()
        stage.app = loop.run(_stocked(stack, Path(folder) / "ksana.db"))
        yield
        loop.run(stack.aclose())


@schema.parametrize()
@random_requests(2)
def test_the_surface_does_what_its_description_says(case: schemathesis.Case[Any]) -> None:
    """C-15, C-116: whatever comes in, the answer is of the described shape, and never a fault of ours."""
    is_good = case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE
    if is_good and "id" in case.path_parameters and case.method != "DELETE":
        # An id drawn from 63 bits would never be one that exists.
        case.path_parameters["id"] = 1 + int(case.path_parameters["id"]) % STOCK
    checks: list[Any] = [not_a_server_error, response_schema_conformance, status_code_conformance]
    case.call_and_validate(checks=checks)
