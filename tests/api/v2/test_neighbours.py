"""Runs around a run."""

from __future__ import annotations

from tests.api.v2.world import World


async def test_a_run_knows_the_ones_before_and_after_it(world: World) -> None:
    one, other = await world.job("one"), await world.job("other")
    first, between, last = await world.run(one), await world.run(other), await world.run(one)
    assert await world.seen(f"/api/v2/runs/{first['id']}/neighbours") == {
        "previous": None,
        "next": between["id"],
        "previous_same_job": None,
        "next_same_job": last["id"],
    }
    assert await world.seen(f"/api/v2/runs/{last['id']}/neighbours") == {
        "previous": between["id"],
        "next": None,
        "previous_same_job": first["id"],
        "next_same_job": None,
    }
    assert (await world.get("/api/v2/runs/99/neighbours")).status == 404


async def test_steps_of_a_chain_are_neighbours_of_each_other_only(world: World) -> None:
    dag = {"nodes": [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop", "deps": ["a"]}]}
    chain = await world.run(await world.job("chain", "chain", dag))
    await world.work()
    after = await world.run(await world.job("after"))
    assert (await world.seen(f"/api/v2/runs/{chain['id']}/neighbours"))["next"] == after["id"]
    a, b = (step["run_id"] for step in await world.seen(f"/api/v2/runs/{chain['id']}/steps"))
    assert await world.seen(f"/api/v2/runs/{a}/neighbours") == {
        "previous": None,
        "next": b,
        "previous_same_job": None,
        "next_same_job": None,
    }


async def test_runs_that_ended_by_the_same_error_are_counted(world: World) -> None:
    job = await world.job(kind="fail", config={"message": "no route\nto the host"})
    other = await world.job("other", "fail", {"message": "no route\nto the host"})
    old = await world.run(job)
    await world.work()
    await world.advance("25h")
    first = await world.run(job)
    await world.run(other)
    await world.work()
    await world.patch(f"/api/v2/jobs/{job['id']}", {"target": {"kind": "fail", "config": {"message": "else"}}})
    await world.advance("1h")
    await world.run(job)
    await world.work()
    await world.patch(
        f"/api/v2/jobs/{job['id']}", {"target": {"kind": "fail", "config": {"message": "no route\nto anywhere"}}}
    )
    await world.advance("1h")
    last = await world.run(job)
    await world.work()
    assert await world.seen(f"/api/v2/runs/{first['id']}/similar") == {
        "count": 2,
        "first_at": "2030-01-02T13:00:00.000Z",
        "last_at": "2030-01-02T15:00:00.000Z",
        "run_ids": [last["id"], first["id"]],
        "is_partial": False,
    }
    assert (await world.seen(f"/api/v2/runs/{old['id']}/similar"))["run_ids"] == [old["id"]]


async def test_a_run_without_an_error_is_like_no_other(world: World) -> None:
    run = await world.run(await world.job())
    await world.work()
    assert await world.seen(f"/api/v2/runs/{run['id']}/similar") == {
        "count": 0,
        "first_at": None,
        "last_at": None,
        "run_ids": [],
        "is_partial": False,
    }
