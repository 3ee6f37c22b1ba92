"""Chains as pictures: layout and grid."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.v2.world import World

DIAMOND: dict[str, Any] = {
    "nodes": [
        {"id": "pull", "type": "noop"},
        {"id": "clean", "type": "fail", "retry": {"maxAttempts": 1}, "deps": ["pull"]},
        {"id": "dedupe", "type": "noop", "deps": ["pull"]},
        {"id": "load", "type": "noop", "deps": ["clean", "dedupe"]},
    ]
}


async def a_chain(world: World, dag: dict[str, Any] | None = None) -> Any:
    return await world.job("nightly", "chain", dag or DIAMOND)


async def test_a_chain_is_laid_out_in_layers(world: World) -> None:
    job = await a_chain(world)
    shown = await world.seen(f"/api/v2/jobs/{job['id']}/layout")
    assert [(node["id"], node["type"], node["layer"], node["row"]) for node in shown["nodes"]] == [
        ("pull", "noop", 0, 0),
        ("clean", "fail", 1, 0),
        ("dedupe", "noop", 1, 1),
        ("load", "noop", 2, 0),
    ]
    assert shown["edges"] == [
        {"from": "pull", "to": "clean"},
        {"from": "pull", "to": "dedupe"},
        {"from": "clean", "to": "load"},
        {"from": "dedupe", "to": "load"},
    ]
    assert all(node["state"] is None and node["run_id"] is None for node in shown["nodes"])
    assert shown["width"] == max(node["x"] for node in shown["nodes"]) + shown["node_width"]
    assert shown["height"] == max(node["y"] for node in shown["nodes"]) + shown["node_height"]


async def test_a_chains_run_shows_where_each_node_stands(world: World) -> None:
    run = await world.run(await a_chain(world))
    path = f"/api/v2/runs/{run['id']}/layout"
    before = await world.seen(path)
    assert {(node["state"], node["run_id"]) for node in before["nodes"]} == {("WAITING", None)}
    await world.work()
    after = await world.seen(path)
    states = {node["id"]: node["state"] for node in after["nodes"]}
    assert states == {"pull": "SUCCESS", "clean": "FAILED", "dedupe": "SUCCESS", "load": "SKIPPED"}
    steps = {step["id"]: step["run_id"] for step in await world.seen(f"/api/v2/runs/{run['id']}/steps")}
    assert {node["id"]: node["run_id"] for node in after["nodes"]} == steps
    assert [(node["x"], node["y"]) for node in after["nodes"]] == [(node["x"], node["y"]) for node in before["nodes"]]


async def test_the_grid_has_a_row_for_each_run_and_a_column_for_each_node_of_now(world: World) -> None:
    job = await a_chain(world)
    first = await world.run(job)
    await world.work()
    changed = {"nodes": [*DIAMOND["nodes"][:1], {"id": "mail", "type": "noop", "deps": ["pull"]}]}
    await world.patch(f"/api/v2/jobs/{job['id']}", {"target": {"kind": "chain", "config": changed}})
    second = await world.run(job)
    grid = await world.seen(f"/api/v2/jobs/{job['id']}/grid")
    assert grid["nodes"] == ["pull", "mail"]
    assert [(row["run_id"], row["state"], row["states"]) for row in grid["runs"]] == [
        (second["id"], "SCHEDULED", ["WAITING", "WAITING"]),
        (first["id"], "FAILED", ["SUCCESS", None]),
    ]
    [newest] = (await world.seen(f"/api/v2/jobs/{job['id']}/grid?runs=1"))["runs"]
    assert newest["run_id"] == second["id"]


@pytest.mark.parametrize("what", ["layout", "grid"])
async def test_what_is_no_chain_has_no_picture(world: World, what: str) -> None:
    job = await world.job()
    answer = await world.get(f"/api/v2/jobs/{job['id']}/{what}")
    assert (answer.status, answer.json()["code"]) == (404, "NOT_FOUND")
    assert "not a chain" in answer.json()["message"]


async def test_a_run_that_is_no_chains_has_no_picture(world: World) -> None:
    run = await world.run(await world.job())
    assert (await world.get(f"/api/v2/runs/{run['id']}/layout")).status == 404
