"""The description of the real app against the app: schemathesis makes the requests, valid and not."""

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
from schemathesis.specs.openapi.checks import (
    negative_data_rejection,
    positive_data_acceptance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.kit.direct import Direct
from tests.api.kit.honesty import schema_of, try_all
from tests.api.v2.world import World, open_world
from tests.services.loop import LoopThread

# What these refuse is not all said by a schema: names of zones, fields to sort by, configs, keys used before, versions.
SAYS_LESS: Final = {
    "jobs_change",
    "jobs_create",
    "jobs_delete",
    "jobs_pause",
    "jobs_resume",
    "jobs_run_now",
    "v2_backfill",
    "v2_begin_operation",
    "v2_call_back",
    "v2_change_job",
    "v2_create_job",
    "v2_delete_job",
    "v2_heatmap",
    "v2_histogram",
    "v2_list_audit",
    "v2_list_job_runs",
    "v2_list_jobs",
    "v2_list_operations",
    "v2_list_runs",
    "v2_list_versions",
    "v2_minutes",
    "v2_outcomes",
    "v2_pause",
    "v2_preview",
    "v2_resume",
    "v2_run_now",
    "v2_timeline",
}
STOCK: Final = 6


async def _stocked(stack: AsyncExitStack, path: Path) -> World:
    """A world in which the first ids exist, in many states."""
    world = await stack.enter_async_context(open_world(path, allowed_hosts=["*"]))
    every = {"kind": "every", "every": "1m"}
    cron = {"kind": "cron", "expr": "0 9 * * 1-5", "timezone": "Asia/Shanghai"}
    await world.job("one", schedule=every, tags=["a"])
    await world.job("two", "echo", {"message": {"deep": [1, None]}}, schedule=cron, enabled=False)
    await world.job("three", "fail", retry={"max_attempts": 2})
    await world.job("four", overlap={"rule": "skip"})
    await world.job("five", schedule={"kind": "once", "run_at": "2030-01-01T12:00:30Z"})
    await world.job("six", "sleep", {"for": "1h"})
    for id in range(1, STOCK + 1):
        timer = {"id": str(id), "http": {"url": "https://ksana.invalid/"}, "schedule": {**every, "jitter": "1s"}}
        await world.post("/jobs", timer)
    for id in (1, 2, 3, 3, 4):
        await world.post(f"/api/v2/jobs/{id}/runs", {"input": {"n": id}})
    await world.work()
    await world.advance("2m")
    return world


@pytest.fixture(scope="module")
def described() -> Iterator[BaseSchema]:
    with tempfile.TemporaryDirectory() as folder, LoopThread() as loop:
        stack = AsyncExitStack()
        # A stream of events has no end that schemathesis would wait for.
        yield schema_of(loop.run(_stocked(stack, Path(folder) / "ksana.db")).app).exclude(operation_id="v2_events")
        loop.run(stack.aclose())


def test_the_app_does_what_its_description_says(described: BaseSchema) -> None:
    try_all(described, _check, random=2)


def _check(case: schemathesis.Case[Any], session: Direct) -> None:
    checks: list[Any] = [
        not_a_server_error,
        response_schema_conformance,
        status_code_conformance,
        negative_data_rejection,
    ]
    is_good = case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE
    if is_good and "id" in case.path_parameters and case.method != "DELETE":
        # An id drawn from 63 bits would never be one that exists.
        id = case.path_parameters["id"]
        number = 1 + (id if isinstance(id, int) else len(id)) % STOCK
        case.path_parameters["id"] = number if isinstance(id, int) else str(number)
    if case.operation.definition.raw["operationId"] not in SAYS_LESS:
        checks.append(positive_data_acceptance)
    case.call_and_validate(checks=checks, session=session)
