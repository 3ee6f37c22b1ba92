"""Chains as `/api/v2` has them: jobs of the kind `chain`, and steps of their runs."""

from __future__ import annotations

from typing import Any

from tests.api.chains.world import HANGS, NO, Chains, ok, work

RUNS = "/api/v2/runs"


async def made(chains: Chains, *nodes: dict[str, Any], **dag: Any) -> int:
    """Make a chain as a job, start it, and give the number of its run."""
    target = {"kind": "chain", "config": {"nodes": list(nodes), **dag}}
    job = ok(await chains.send("POST", "/api/v2/jobs", {"name": "c", "target": target}))
    assert job["target"] == target
    run: int = ok(await chains.send("POST", f"/api/v2/jobs/{job['id']}/runs", {"input": dag.get("params")}))["id"]
    await chains.settle()
    return run


async def states(chains: Chains, run: int) -> list[str]:
    return [step["state"] for step in await chains.seen(f"{RUNS}/{run}/steps")]


async def test_a_chain_is_a_job_whose_runs_have_steps(chains: Chains) -> None:
    chains.says("b", NO)
    run = await made(chains, work("a"), work("b", "a", when="all_done"), work("c", "b"), params={"n": 1})
    seen = await chains.seen(f"{RUNS}/{run}")
    assert (seen["kind"], seen["state"], seen["input"], seen["parent_id"]) == ("chain", "FAILED", {"n": 1}, None)
    step = (await chains.seen(f"{RUNS}/{run}/steps"))[1]
    child = await chains.seen(f"{RUNS}/{step['run_id']}")
    assert (child["parent_id"], child["step"], child["state"]) == (run, "b", "FAILED")
    assert step == {
        "id": "b",
        "kind": "work",
        "needs": ["a"],
        "when": "all_done",
        "run_id": child["id"],
        "state": "FAILED",
        "reason": None,
        "attempt": 1,
        "error": "said no",
        "artifact": None,
        "checkpoint": None,
        "started_at": child["started_at"],
        "ended_at": child["ended_at"],
    }
    # Parts of others are in no list unless somebody asks for them.
    listed = {
        query: [found["id"] for found in (await chains.seen(f"{RUNS}?{query}"))["items"]]
        for query in ("", "children=true", f"parent_id={run}")
    }
    assert listed[""] == [run]
    assert sorted(listed["children=true"]) == [run, *sorted(listed[f"parent_id={run}"])]
    assert len(listed[f"parent_id={run}"]) == 3


async def test_what_failed_of_a_chain_is_tried_again_as_a_whole(chains: Chains) -> None:
    chains.says("a", NO)
    chains.says("b", NO)
    run = await made(chains, work("a"), work("b"), work("c", "a", "b"))
    assert await states(chains, run) == ["FAILED", "FAILED", "SKIPPED"]
    assert ok(await chains.send("POST", f"{RUNS}/{run}/retry"))["state"] == "RUNNING"
    await chains.settle()
    assert (await chains.seen(f"{RUNS}/{run}"))["state"] == "SUCCESS"
    assert await states(chains, run) == ["SUCCESS", "SUCCESS", "SUCCESS"]
    assert (await chains.send("POST", f"{RUNS}/{run}/retry")).status == 409


async def test_a_part_of_a_chain_that_is_tried_again_takes_the_chain_with_it(chains: Chains) -> None:
    chains.says("a", NO)
    run = await made(chains, work("a"), work("b", "a"))
    part = (await chains.seen(f"{RUNS}/{run}/steps"))[0]["run_id"]
    assert ok(await chains.send("POST", f"{RUNS}/{part}/retry"))["id"] == part
    await chains.settle()
    assert (await chains.seen(f"{RUNS}/{run}"))["state"] == "SUCCESS"


async def test_a_cancel_asks_a_chain_to_stop(chains: Chains) -> None:
    chains.says("a", HANGS)
    run = await made(chains, work("a"), work("b", "a"))
    assert ok(await chains.send("POST", f"{RUNS}/{run}/cancel"))["state"] == "STOPPING"
    await chains.settle()
    assert (await chains.seen(f"{RUNS}/{run}"))["state"] == "CANCELED"
    assert await states(chains, run) == ["CANCELED", "WAITING"]
    assert (await chains.send("POST", f"{RUNS}/{run}/cancel")).status == 409


async def test_a_step_is_retried_and_completed_by_hand(chains: Chains) -> None:
    chains.says("a", NO, NO)
    run = await made(
        chains, work("a"), {"id": "b", "type": "print", "dependsOn": ["a"], "cfg": {"x": "{{a.artifact}}"}}
    )
    retried = ok(await chains.send("POST", f"{RUNS}/{run}/steps/a/retry", {"reason": "once more"}))
    assert (retried["state"], retried["step"], retried["error"]) == ("RETRYING", "a", "once more")
    await chains.settle()
    done = ok(await chains.send("POST", f"{RUNS}/{run}/steps/a/complete", {"artifact": [7]}))
    assert (done["state"], done["attempt"]) == ("SUCCESS", 2)
    await chains.settle()
    assert [step["artifact"] for step in await chains.seen(f"{RUNS}/{run}/steps")] == [[7], {"x": [7]}]


async def test_steps_are_only_where_there_is_a_chain(chains: Chains) -> None:
    chains.says("a", NO)
    run = await made(chains, work("a"))
    job = ok(await chains.send("POST", "/api/v2/jobs", {"name": "j", "target": {"kind": "noop"}}))
    other = ok(await chains.send("POST", f"/api/v2/jobs/{job['id']}/runs", {"input": {"type": "chain"}}))["id"]
    [part] = [step["run_id"] for step in await chains.seen(f"{RUNS}/{run}/steps")]
    for path in (f"{RUNS}/{other}/steps", f"{RUNS}/{part}/steps", f"{RUNS}/999/steps"):
        assert (await chains.send("GET", path)).status == 404
    for path in (f"{RUNS}/{other}/steps/a/retry", f"{RUNS}/{run}/steps/nope/complete"):
        assert (await chains.send("POST", path)).status == 404


async def test_a_dag_is_refused_under_the_names_of_the_request(chains: Chains) -> None:
    target = {"kind": "chain", "config": {"nodes": [{"id": "a", "dependsOn": ["b"]}]}}
    answer = await chains.send("POST", "/api/v2/jobs", {"name": "c", "target": target})
    assert [problem["field"] for problem in answer.json()["problems"]] == ["target.config.nodes[0].dependsOn"]
    job = ok(
        await chains.send(
            "POST", "/api/v2/jobs", {"name": "c", "target": {"kind": "chain", "config": {"nodes": [{"id": "a"}]}}}
        )
    )
    for given in ([1], {"nope": 1}):
        refused = await chains.send("POST", f"/api/v2/jobs/{job['id']}/runs", {"input": given})
        assert refused.status == 400, refused.body
