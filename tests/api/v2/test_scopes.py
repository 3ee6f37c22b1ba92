"""Who may call what: every route of the app, taken from its own table, so that a new one is covered by itself."""

from typing import Any

import pytest

from ksana.api.kit import PUBLIC, Route, Scope
from tests.api.v2.world import World, surfaces

ROUTES = [route for surface in surfaces() for route in surface.routes]
CLOSED = [route for route in ROUTES if route.scope is not PUBLIC]
OPEN_TO_ALL = {
    ("GET", "/health"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/llms.txt"),
    ("POST", "/api/v2/callbacks/{token}"),
}


def _label(route: Route[Any, Any]) -> str:
    return f"{route.method} {route.path}"


def _path(route: Route[Any, Any]) -> str:
    return route.path.replace("{id:int}", "999999").replace("{id}", "nobody").replace("{token}", "nobody")


each_closed_route = pytest.mark.parametrize("route", CLOSED, ids=_label)


def test_only_a_few_routes_are_open_to_all() -> None:
    assert {(route.method, route.path) for route in ROUTES if route.scope is PUBLIC} == OPEN_TO_ALL


def test_reading_needs_a_reading_scope_and_writing_another() -> None:
    for route in CLOSED:
        reads = route.method == "GET" or route.path.endswith("/preview")
        assert str(route.scope).endswith(":read") is reads, _label(route)


@each_closed_route
async def test_without_a_key_the_answer_is_401_once_a_key_exists(world: World, route: Route[Any, Any]) -> None:
    await world.key(Scope.ADMIN)
    answer = await world.call(route.method, _path(route))
    assert (answer.status, answer.json()["code"]) == (401, "UNAUTHENTICATED")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@each_closed_route
async def test_a_key_without_the_scope_gets_403(world: World, route: Route[Any, Any]) -> None:
    others = [scope for scope in Scope if scope not in (route.scope, *route.or_scopes, Scope.ADMIN)]
    key = await world.key(*others)
    answer = await world.call(route.method, _path(route), headers={"Authorization": f"Bearer {key}"})
    assert (answer.status, answer.json()["code"]) == (403, "FORBIDDEN")
    assert str(route.scope) in answer.json()["message"]


@each_closed_route
async def test_a_key_with_only_the_scope_is_let_in(world: World, route: Route[Any, Any]) -> None:
    assert isinstance(route.scope, Scope)
    key = await world.key(route.scope)
    answer = await world.call(route.method, _path(route), headers={"X-API-Key": key})
    assert answer.status in (200, 400, 404)


@pytest.mark.parametrize("path", ["/health", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"])
async def test_a_public_page_needs_no_key(world: World, path: str) -> None:
    await world.key(Scope.ADMIN)
    assert (await world.get(path)).status == 200


async def test_without_any_key_loopback_may_do_everything_and_other_names_nothing(world: World) -> None:
    assert (await world.get("/api/v2/jobs")).status == 200
    foreign = await world.get("/api/v2/jobs", headers={"Host": "evil.test"})
    assert (foreign.status, foreign.json()["code"]) == (421, "MISDIRECTED_REQUEST")


async def test_a_revoked_key_is_refused_within_seconds(world: World) -> None:
    key = await world.key(Scope.ADMIN)
    headers = {"Authorization": f"Bearer {key}"}
    assert (await world.get("/api/v2/jobs", headers=headers)).status == 200
    [stored] = await world.store.keys()
    await world.store.revoke_key(stored.id, world.clock.time)
    await world.advance("3s")
    assert (await world.get("/api/v2/jobs", headers=headers)).status == 401
    assert (await world.get("/api/v2/jobs")).status == 401
