"""The description of the queue against the queue: schemathesis makes the requests, valid and not."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any, Final

import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.generation.modes import GenerationMode
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.types import ASGIApp

from tests.api.kit.direct import Direct
from tests.api.kit.honesty import schema_of, try_all
from tests.api.queue.conftest import ManyQueues
from tests.services.loop import LoopThread

STOCK: Final = 8


async def _stocked(worlds: ManyQueues) -> ASGIApp:
    """An app in which the first items exist, in every state."""
    queue = await worlds.create()
    await queue.bury()
    for n in range(STOCK - 1):
        await queue.put(n)
    one, two, *_ = await queue.pull(limit=4)
    await queue.post(f"/{one['job_id']}/ack", {"output": [1], "audit_event_id": "aud_1"})
    await queue.post(f"/{two['job_id']}/fail", {"error": "x"})
    return queue.app


@pytest.fixture(scope="module")
def described() -> Iterator[BaseSchema]:
    with tempfile.TemporaryDirectory() as folder, LoopThread() as loop:
        worlds = ManyQueues(f"sqlite:///{folder}/ksana.db")
        yield schema_of(loop.run(_stocked(worlds)), surface="queue")
        loop.run(worlds.close())


def test_the_surface_does_what_its_description_says(described: BaseSchema) -> None:
    """S-12: whatever comes in, the answer is of the described shape, and never a fault of ours."""
    try_all(described, _check, random=1)


def _check(case: schemathesis.Case[Any], session: Direct) -> None:
    checks: list[Any] = [not_a_server_error, response_schema_conformance, status_code_conformance]
    if case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE:
        # An id that is drawn would never be one that exists.
        if "id" in case.path_parameters:
            case.path_parameters["id"] = f"job_{1 + len(case.path_parameters['id']) % STOCK}"
    else:
        checks.append(negative_data_rejection)
    # Nobody moves the clock here.
    body: Any = case.body
    wait = body.get("wait_sec") if isinstance(body, dict) else None
    if isinstance(wait, int | float) and 0 < wait <= 60:
        body["wait_sec"] = 0
    case.call_and_validate(checks=checks, session=session)
