"""The fourteen acceptance cases of the JobChain document, by their numbers (J-1 … J-3)."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from tests.api.chains.world import HANGS, NO, Chains, dag_of, ok, refused, work

PATH = "/api/v1/chains"
PRINTS: list[dict[str, Any]] = [
    {"id": "a", "type": "print", "cfg": {"n": 1}},
    {"id": "b", "type": "print", "dependsOn": ["a"]},
]


async def test_ac1_a_chain_is_created(chains: Chains) -> None:
    """J-80."""
    made = await chains.chain(PRINTS)
    assert made["chainId"]
    assert made["version"] == 1


async def test_ac2_a_name_can_be_had_once(chains: Chains) -> None:
    """J-81, J-12."""
    await chains.chain(name="nightly")
    again = await chains.send("POST", PATH, {"name": "nightly", "dagJson": dag_of(PRINTS)})
    assert refused(again) == (400, "ALREADY_EXISTS", "chain name already exists: nightly")


async def test_ac3_a_dag_must_have_nodes(chains: Chains) -> None:
    """J-82, J-29."""
    for dag in ("{}", '{"nodes": []}', '{"job": "x", "nodes": null}'):
        answer = await chains.send("POST", PATH, {"name": "empty", "dagJson": dag})
        assert (answer.status, answer.json()["error"]) == (400, "dag must have nodes")


async def test_ac4_the_right_version_updates(chains: Chains) -> None:
    """J-83."""
    made = await chains.chain()
    change = {"name": made["name"], "description": "new", "dagJson": dag_of(PRINTS), "version": 1}
    assert ok(await chains.send("PUT", f"{PATH}/{made['chainId']}", change))["version"] == 2


async def test_ac5_an_old_version_conflicts(chains: Chains) -> None:
    """J-84."""
    made = await chains.chain()
    change = {"name": made["name"], "dagJson": dag_of(PRINTS), "version": 1}
    ok(await chains.send("PUT", f"{PATH}/{made['chainId']}", change))
    answer = await chains.send("PUT", f"{PATH}/{made['chainId']}", change)
    assert (answer.status, answer.json()["error"]) == (409, "chain version conflict or not found")


async def test_ac6_a_disabled_chain_does_not_start(chains: Chains) -> None:
    """J-85, J-14, J-27: what was started before goes on."""
    chains.says("a", HANGS)
    made = await chains.chain([work("a"), work("b", "a")])
    run_id = await chains.start(made)
    waiting = ok(await chains.send("POST", f"{PATH}/{made['chainId']}:start"))["runId"]
    ok(await chains.send("POST", f"{PATH}/{made['chainId']}:disable"))
    answer = await chains.send("POST", f"{PATH}/{made['chainId']}:start")
    assert answer.status == 409
    assert answer.json()["error"].startswith("chain is disabled")
    off = await chains.chain(enabled=False)
    assert refused(await chains.send("POST", f"{PATH}/{off['chainId']}:start"))[:2] == (409, "CHAIN_DISABLED")
    await chains.settle()
    await chains.answer_node(run_id, "a")
    assert [await chains.status(id) for id in (run_id, waiting)] == ["SUCCESS", "SUCCESS"]


async def test_ac7_a_page_is_filtered(chains: Chains) -> None:
    """J-86."""
    for name, enabled in (("load one", True), ("load two", False), ("clean", True)):
        await chains.chain(name=name, enabled=enabled)
    for query, names in (
        ("keyword=load", ["load one", "load two"]),
        ("enabled=true", ["load one", "clean"]),
        ("keyword=load&enabled=false", ["load two"]),
    ):
        page = await chains.seen(f"{PATH}?{query}")
        assert [chain["name"] for chain in page["items"]] == names


async def test_ac8_the_detail_has_the_dag(chains: Chains) -> None:
    """J-87."""
    made = await chains.chain(PRINTS)
    shown = await chains.seen(f"{PATH}/{made['chainId']}")
    assert json.loads(shown["dagJson"]) == {"nodes": PRINTS}


async def test_ac9_a_start_makes_a_run(chains: Chains) -> None:
    """J-88, J-26, J-55: at once, without a body, and a new one every time; the answer waits for nothing."""
    made = await chains.chain(PRINTS)
    path = f"{PATH}/{made['chainId']}"
    answers = [await chains.send("POST", f"{path}{verb}") for verb in (":start", "%3Astart")]
    ids = [ok(answer)["runId"] for answer in answers]
    assert len({UUID(run_id) for run_id in ids}) == 2
    assert answers[0].headers["location"] == f"/api/v1/runs/{ids[0]}"
    assert await chains.standing(ids[0]) == ("PENDING", {"a": "PENDING", "b": "PENDING"})


async def test_ac10_a_run_goes_from_pending_over_running_to_its_end(chains: Chains) -> None:
    """J-89, J-57, J-50, J-56."""
    chains.says("a", HANGS, HANGS)
    made = await chains.chain([work("a"), work("b", "a")])
    for outcome, end in (((), "SUCCESS"), ((NO,), "FAILED")):
        run_id = ok(await chains.send("POST", f"{PATH}/{made['chainId']}:start"))["runId"]
        assert await chains.status(run_id) == "PENDING"
        await chains.settle()
        assert await chains.standing(run_id) == ("RUNNING", {"a": "RUNNING", "b": "PENDING"})
        await chains.answer_node(run_id, "a", *outcome)
        assert await chains.status(run_id) == end


async def test_ac11_every_node_is_there_from_the_start(chains: Chains) -> None:
    """J-90, J-36."""
    run_id = ok(await chains.send("POST", f"{PATH}/{(await chains.chain(PRINTS))['chainId']}:start"))["runId"]
    before = await chains.seen(f"/api/v1/runs/{run_id}/nodes")
    await chains.settle()
    after = await chains.seen(f"/api/v1/runs/{run_id}/nodes")
    assert [node["nodeId"] for node in before] == [node["nodeId"] for node in after] == ["a", "b"]
    assert [node["status"] for node in after] == ["SUCCESS", "SUCCESS"]


async def test_ac12_a_running_run_is_stopped(chains: Chains) -> None:
    """J-91, J-37, J-51: nothing more of it starts; to ask again changes nothing."""
    chains.says("a", HANGS)
    run_id = await chains.start(await chains.chain([work("a"), work("b", "a"), work("c", "b")]))
    for _ in range(2):
        assert ok(await chains.send("POST", f"/api/v1/runs/{run_id}:stop")) == {"runId": run_id, "status": "STOPPING"}
    assert await chains.status(run_id) == "STOPPING"
    await chains.settle()
    assert await chains.standing(run_id) == ("STOPPED", {"a": "STOPPED", "b": "PENDING", "c": "PENDING"})
    assert ok(await chains.send("POST", f"/api/v1/runs/{run_id}:stop"))["status"] == "STOPPED"


async def test_ac13_only_what_failed_or_was_stopped_is_retried(chains: Chains) -> None:
    """J-92, J-38, J-54: the attempt counts one more, and the chain goes on from there."""
    chains.says("a", NO)
    chains.says("b", HANGS)
    run_id = await chains.start(await chains.chain([work("a"), work("b"), work("c", "a")]))
    retried = ok(await chains.send("POST", f"/api/v1/runs/{run_id}/nodes/a:retry"))
    assert retried == {"runId": run_id, "nodeId": "a", "status": "RETRYING", "attempt": 2}
    listed = (await chains.nodes_of(run_id))["a"]
    assert (listed["status"], listed["attempt"]) == ("RETRYING", 2)
    await chains.settle()
    again = await chains.send("POST", f"/api/v1/runs/{run_id}/nodes/a:retry")
    assert refused(again)[:2] == (409, "INVALID_STATE")
    await chains.act(f"{run_id}:stop")
    assert await chains.standing(run_id) == ("STOPPED", {"a": "SUCCESS", "b": "STOPPED", "c": "SUCCESS"})
    assert (await chains.act(f"{run_id}/nodes/b%3Aretry"))["attempt"] == 2
    assert await chains.status(run_id) == "SUCCESS"


async def test_ac14_only_what_runs_failed_or_was_stopped_is_completed(chains: Chains) -> None:
    """J-93, J-39: the attempt stays as it is, and the chain goes on from there."""
    chains.says("a", HANGS)
    chains.says("b", NO)
    run_id = await chains.start(await chains.chain([work("a"), work("b", "a"), work("c", "b"), work("d", "c")]))
    early = await chains.send("POST", f"/api/v1/runs/{run_id}/nodes/b:complete")
    assert refused(early)[:2] == (409, "INVALID_STATE")
    done = {"runId": run_id, "nodeId": "a", "status": "SUCCESS", "attempt": 1}
    assert await chains.act(f"{run_id}/nodes/a:complete") == done
    assert await chains.standing(run_id) == (
        "FAILED",
        {"a": "SUCCESS", "b": "FAILED", "c": "SKIPPED", "d": "SKIPPED"},
    )
    chains.says("c", HANGS)
    assert (await chains.act(f"{run_id}/nodes/b:complete"))["status"] == "SUCCESS"
    await chains.act(f"{run_id}:stop")
    assert (await chains.act(f"{run_id}/nodes/c:complete"))["status"] == "SUCCESS"
    assert await chains.standing(run_id) == ("SUCCESS", dict.fromkeys("abcd", "SUCCESS"))
