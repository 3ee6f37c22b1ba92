from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest

from ksana.api.kit import PUBLIC, Call, Route, RouteError, Scope, Surface, build_app
from ksana.api.kit.routes import ParamKind, params_of, parse_path


async def nothing(call: Call[Any, Any]) -> None:
    return None


class Inner(msgspec.Struct):
    at: datetime | None
    more: list[Inner]


class Outer(msgspec.Struct):
    inner: dict[str, list[Inner]]


def build(*routes: Route[Any, Any]) -> object:
    return build_app([Surface("s", routes)], None)


def test_a_route_without_a_scope_stops_the_app_from_being_built() -> None:
    with pytest.raises(RouteError, match="GET /a declares no scope"):
        build(Route("GET", "/a", nothing))
    build(Route("GET", "/a", nothing, PUBLIC))
    build(Route("GET", "/a", nothing, Scope.JOB_READ))


def test_a_scope_given_as_text_is_not_a_scope() -> None:
    with pytest.raises(RouteError, match="declares no scope"):
        build(Route("GET", "/a", nothing, "public"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("routes", "words"),
    [
        ([Route("get", "/a", nothing, PUBLIC)], "method"),
        ([Route("GET", "/a", nothing, PUBLIC, request=Outer)], "no body"),
        ([Route("PUT", "/a", nothing, PUBLIC, creates=True)], "only a POST creates"),
        ([Route("POST", "/a", nothing, PUBLIC, creates=True)], "idempotency records"),
        ([Route("GET", "/{id}/{id}", nothing, PUBLIC)], "named twice"),
        ([Route("GET", "/a", nothing, PUBLIC), Route("GET", "/b", nothing, PUBLIC)], "name of another route"),
        (
            [Route("GET", "/a", nothing, PUBLIC), Route("GET", "/a", nothing, PUBLIC, name="b")],
            "declared twice",
        ),
        (
            [Route("GET", "/{a}", nothing, PUBLIC), Route("POST", "/{b}", nothing, PUBLIC, name="b")],
            "the same place",
        ),
        (
            [Route("GET", "/{a:int}", nothing, PUBLIC), Route("GET", "/{b}", nothing, PUBLIC, name="b")],
            "the same place",
        ),
        ([Route("GET", "/a", nothing, PUBLIC, response=Outer)], "use Timestamp"),
        ([Route("GET", "a", nothing, PUBLIC)], "start with /"),
        ([Route("GET", "/a//b", nothing, PUBLIC)], "cannot read"),
        ([Route("GET", "/a{id}", nothing, PUBLIC)], "cannot read"),
        ([Route("GET", "/{id}:go/b", nothing, PUBLIC)], "only the last segment"),
    ],
)
def test_a_wrong_table_is_found_when_the_app_is_built(routes: list[Route[Any, Any]], words: str) -> None:
    with pytest.raises(RouteError, match=words):
        build(*routes)


def test_paths_are_read_into_segments() -> None:
    assert [segment.verb for segment in parse_path("/chains/{id}:start")] == [None, "start"]
    assert params_of("/runs/{id:int}/nodes/{node}") == [("id", ParamKind.INT), ("node", ParamKind.TEXT)]
    assert parse_path("/jobs:bulk")[0].text == "jobs:bulk"
