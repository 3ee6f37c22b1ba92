"""Where the time of a run went, over HTTP."""

from __future__ import annotations

from tests.api.v2.world import World
from tests.kit.sink import Reply, Sink


async def test_a_run_shows_its_attempts_and_the_rest_between_them(world: World, sink: Sink) -> None:
    url = sink.on("/flaky", Reply(status=503), Reply())
    retry = {"max_attempts": 2, "initial_delay": "5s"}
    job = await world.job(kind="http", config={"url": url, "method": "GET"}, retry=retry)
    run = await world.run(job)
    await world.advance("1s")
    await world.advance("5s")
    shown = await world.seen(f"/api/v2/runs/{run['id']}/waterfall")
    assert shown["total_ms"] == 6000
    assert [(one["kind"], one["ms"], one["attempt"], one["outcome"], one["code"]) for one in shown["segments"]] == [
        ("wait", 1000, None, None, None),
        ("attempt", 0, 1, "retry", 503),
        ("back_off", 5000, None, None, None),
        ("attempt", 0, 2, "success", 200),
    ]
    assert shown["segments"][0] | {"label": ""} == {
        "kind": "wait",
        "attempt": None,
        "from": "2030-01-01T12:00:00.000Z",
        "to": "2030-01-01T12:00:01.000Z",
        "ms": 1000,
        "outcome": None,
        "code": None,
        "label": "",
    }


async def test_a_run_that_has_just_been_made_has_taken_no_time(world: World) -> None:
    run = await world.run(await world.job())
    assert await world.seen(f"/api/v2/runs/{run['id']}/waterfall") == {"total_ms": 0, "segments": []}
    assert (await world.get("/api/v2/runs/99/waterfall")).status == 404
