"""The description of the chains surface against the surface: schemathesis makes the requests, valid and not."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.generation.modes import GenerationMode
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from starlette.types import ASGIApp

from tests.api.chains.conftest import ManyChains
from tests.api.chains.world import HANGS, NO, Chains, work
from tests.api.kit.direct import Direct
from tests.api.kit.honesty import schema_of, try_all
from tests.services.loop import LoopThread

STOCK: Final = 4
PATHS: Final = {
    "/api/v1/chains": {"get", "post"},
    "/api/v1/chains/{chainId}": {"get", "put"},
    "/api/v1/chains/{chainId}:enable": {"post"},
    "/api/v1/chains/{chainId}:disable": {"post"},
    "/api/v1/chains/{chainId}:start": {"post"},
    "/api/v1/chains/{chainId}/runs": {"get"},
    "/api/v1/runs/{id}": {"get"},
    "/api/v1/runs/{id}/nodes": {"get"},
    "/api/v1/runs/{id}:stop": {"post"},
    "/api/v1/runs/{id}/cancel": {"post"},
    "/api/v1/runs/{id}/nodes/{nodeId}:retry": {"post"},
    "/api/v1/runs/{id}/nodes/{nodeId}:complete": {"post"},
}


async def test_the_description_is_where_springdoc_has_it(chains: Chains) -> None:
    """J-75."""
    description = await chains.seen("/v3/api-docs")
    assert description == await chains.seen("/openapi.json")
    assert {path: description["paths"][path].keys() for path in PATHS} == PATHS
    page = await chains.send("GET", "/swagger-ui.html")
    assert (page.status, page.headers["location"]) == (302, "docs")


class Stage(NamedTuple):
    """An app in which the first chains exist, with runs in many states."""

    app: ASGIApp
    runs: list[str]


async def _stocked(worlds: ManyChains) -> Stage:
    chains = await worlds.create()
    chains.says("a", NO, HANGS, NO)
    runs = []
    for n in range(STOCK):
        made = await chains.chain([work("a"), work("b", "a")], schedule="@yearly", enabled=n != 2, maxConcurrency=9)
        if made["enabled"]:
            runs.append(await chains.start(made))
    return Stage(chains.app, runs)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory() as folder, LoopThread() as loop:
        worlds = ManyChains(f"sqlite:///{folder}/ksana.db")
        yield loop.run(_stocked(worlds))
        loop.run(worlds.close())


@pytest.fixture(scope="module")
def described(stage: Stage) -> BaseSchema:
    return schema_of(stage.app, surface="chains")


def test_the_surface_does_what_its_description_says(described: BaseSchema, stage: Stage) -> None:
    """J-8, J-75: whatever comes in, the answer is of the described shape, and never a fault of ours."""
    try_all(described, lambda case, session: _check(case, session, stage), random=2)


def _check(case: schemathesis.Case[Any], session: Direct, stage: Stage) -> None:
    is_good = case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE
    if is_good:
        # Ids that are drawn would never be some that exist, nor would a text be a dag.
        drawn = len(json.dumps(case.path_parameters, default=str))
        found = {
            "id": stage.runs[drawn % len(stage.runs)],
            "chainId": str(1 + drawn % STOCK),
            "nodeId": "ab"[drawn % 2],
        }
        case.path_parameters.update({name: found[name] for name in case.path_parameters})
        if isinstance(case.body, dict) and isinstance(case.body.get("dagJson"), str):
            case.body["dagJson"] = json.dumps({"nodes": [work("a")]})
    checks: list[Any] = [not_a_server_error, response_schema_conformance, status_code_conformance]
    case.call_and_validate(checks=checks, session=session)
