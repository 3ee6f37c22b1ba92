"""The system at a glance, and the settings."""

from __future__ import annotations

from typing import Any

from ksana.api.kit import Scope
from tests.api.v2.world import VERSION, World


def levels(shown: Any) -> dict[str, str]:
    return {check["name"]: check["level"] for check in shown["checks"]}


async def test_a_system_that_is_well_says_so(world: World) -> None:
    world.clock.move_to(world.clock.time.replace(second=5))
    shown = await world.seen("/api/v2/system")
    assert {name: shown[name] for name in ("version", "started_at", "uptime_seconds", "exposed", "auth")} == {
        "version": VERSION,
        "started_at": "2030-01-01T12:00:00.000Z",
        "uptime_seconds": 5.0,
        "exposed": False,
        "auth": False,
    }
    assert shown["store"]["ok"] is True
    assert [(node["id"], node["is_alive"]) for node in shown["nodes"]] == [(shown["node_id"], True)]
    assert shown["retention"] == {"keep": "720h", "keep_last": 10}
    assert set(levels(shown).values()) == {"ok"}
    assert all(check["fix"] is None for check in shown["checks"])


async def test_what_is_not_well_is_named_with_what_to_do(world: World) -> None:
    await world.job(schedule={"kind": "every", "every": "1m"})
    await world.run(await world.job("waits"))
    world.clock.move_to(world.clock.time.replace(minute=5))
    shown = await world.seen("/api/v2/system")
    assert levels(shown) == {
        "store": "ok",
        "firing": "bad",
        "workers": "warn",
        "dead_letters": "ok",
        "nodes": "warn",
        "access": "ok",
    }
    assert all(check["fix"] for check in shown["checks"] if check["level"] != "ok")


async def test_a_store_out_of_reach_is_told_and_not_thrown(world: World) -> None:
    # Whether a key is asked for is remembered for a while.
    await world.seen("/api/v2/system")
    with world.store.away():
        shown = await world.seen("/api/v2/system")
    assert (shown["store"]["ok"], shown["nodes"]) == (False, [])
    assert levels(shown)["store"] == "bad"


async def test_whoever_came_in_with_a_key_knows_that_one_is_asked_for(world: World) -> None:
    key = await world.key(Scope.JOB_READ)
    shown = (await world.get("/api/v2/system", headers={"X-API-Key": key})).json()
    assert shown["auth"] is True
