"""Health, readiness and metrics of the real app."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ksana.domain.errors import StoreUnavailable
from tests.api.v2.world import VERSION, World, open_world


@pytest.fixture
async def world(migrated_sqlite_path: Path) -> AsyncIterator[World]:
    async with open_world(migrated_sqlite_path) as world:
        yield world


async def test_a_well_node_says_so(world: World) -> None:
    assert await world.seen("/health") == {"status": "ok", "store": "up", "version": VERSION}
    assert await world.seen("/readyz") == {"ready": True, "store": "up", "executing": 0}
    alive = await world.get("/healthz")
    assert (alive.status, alive.body, alive.headers["content-type"]) == (200, b"ok\n", "text/plain; charset=utf-8")


async def test_there_is_a_guide_for_language_models(world: World) -> None:
    answer = await world.get("/llms.txt")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert answer.body.startswith(b"# Ksana\n")


@pytest.mark.parametrize("path", ["/health", "/readyz"])
async def test_a_node_whose_store_is_away_is_unwell_but_alive(world: World, path: str) -> None:
    with world.store.away():
        answer = await world.get(path)
        alive = await world.get("/healthz")
    assert (answer.status, alive.status) == (503, 200)
    body = answer.json()
    assert body.pop("error") == body.pop("message")
    assert body == {
        "code": "STORE_UNAVAILABLE",
        "request_id": answer.headers["x-request-id"],
        "status": "degraded",
        "store": "down",
        "version": VERSION,
    }
    assert (await world.get(path)).status == 200


@pytest.mark.parametrize("path", ["/health", "/readyz"])
async def test_a_node_that_cannot_do_its_work_is_unwell_though_its_store_reads(world: World, path: str) -> None:
    world.engine.health.failed(StoreUnavailable("the disk is full"), "planner")
    answer = await world.get(path)
    assert (answer.status, answer.json()["message"]) == (503, "the disk is full")
    world.engine.health.answered("planner")
    assert (await world.get(path)).status == 200


async def test_requests_fail_with_503_while_the_store_is_away(world: World) -> None:
    await world.seen("/api/v2/jobs")
    with world.store.away():
        answer = await world.get("/api/v2/jobs")
    assert (answer.status, answer.json()["code"], answer.headers["retry-after"]) == (503, "STORE_UNAVAILABLE", "1")


async def test_metrics_count_what_happened(world: World) -> None:
    await world.run(await world.job())
    await world.work()
    answer = await world.get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert f'version="{VERSION}"' in answer.body.decode()


@pytest.mark.parametrize("path", ["/health", "/healthz", "/readyz", "/metrics"])
async def test_a_probe_may_add_what_it_likes_to_the_query(world: World, path: str) -> None:
    assert (await world.get(f"{path}?from=probe")).status == 200


async def test_the_page_of_the_api_asks_nobody_else(world: World) -> None:
    page = await world.get("/docs")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert b"http://" not in page.body.replace(b"http://www.w3.org", b"") and b"https://" not in page.body


async def test_an_unknown_path_is_answered_with_the_error_body(world: World) -> None:
    answer = await world.get("/api/v2/nothing", headers={"X-Request-Id": "abc-1"})
    assert answer.status == 404
    body = answer.json()
    assert set(body) == {"error", "code", "message", "request_id"}
    assert (body["code"], body["request_id"], answer.headers["x-request-id"]) == ("NOT_FOUND", "abc-1", "abc-1")
    wrong = await world.call("PUT", "/api/v2/jobs")
    assert (wrong.status, wrong.headers["allow"]) == (405, wrong.headers["allow"])
    assert {"GET", "POST"} <= set(wrong.headers["allow"].replace(" ", "").split(","))
