"""The description of the chains surface against the surface: schemathesis makes the requests, valid and not."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from typing import Any, Final

import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.generation.modes import GenerationMode
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from starlette.types import ASGIApp, Receive, Scope, Send

from ksana.api import chains as surfaces
from ksana.api.kit import build_app
from ksana.domain.idempotency import IdempotencyRecord
from tests.api.chains.conftest import ManyChains
from tests.api.chains.world import HANGS, NO, Chains, work
from tests.api.kit.honesty import random_requests, schema_of
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


async def _stocked(worlds: ManyChains) -> tuple[ASGIApp, list[str]]:
    """An app in which the first chains exist, with runs in many states."""
    chains = await worlds.create()
    chains.says("a", NO, HANGS, NO)
    runs = []
    for n in range(STOCK):
        made = await chains.chain([work("a"), work("b", "a")], schedule="@yearly", enabled=n != 2, maxConcurrency=9)
        if made["enabled"]:
            runs.append(await chains.start(made))
    return chains.app, runs


class _Stage:
    """Where the app will stand: tests are collected from its description before there is a store to run on."""

    def __init__(self) -> None:
        self.app: ASGIApp = build_app([surfaces.surface()], None, idempotency=_NoAnswers(), version="1")
        self.runs: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


class _NoAnswers:
    async def find(self, scope: str, key: str) -> IdempotencyRecord | None:
        return None


stage = _Stage()
schema = schema_of(stage)


@pytest.fixture(scope="module")
def on_stage() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, LoopThread() as loop:
        worlds = ManyChains(f"sqlite:///{folder}/ksana.db")
        stage.app, stage.runs = loop.run(_stocked(worlds))
        yield
        loop.run(worlds.close())


@pytest.mark.usefixtures("on_stage")
@schema.parametrize()
@random_requests(2)
def test_the_surface_does_what_its_description_says(case: schemathesis.Case[Any]) -> None:
    """J-8, J-75: whatever comes in, the answer is of the described shape, and never a fault of ours."""
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
    case.call_and_validate(checks=checks)
