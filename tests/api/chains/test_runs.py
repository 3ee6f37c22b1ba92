"""Runs of chains and what people do to their nodes (J-3, J-35 … J-42, J-50 … J-63, J-67, J-70 … J-74)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from ksana.domain.outcomes import Outcome, Verdict
from tests.api.chains.world import HANGS, NO, NOBODY, Chains, dag_of, ok, refused, work

RUNS = "/api/v1/runs"
RUN_KEYS = {"runId", "chainId", "jobId", "jobName", "status", "dagJson", "createdAt", "updatedAt"}
NODE_KEYS = {
    *("runId", "nodeId", "status", "attempt", "lastError", "artifactJson"),
    *("startedAt", "endedAt", "updatedAt"),
}


async def test_a_run_keeps_the_name_and_the_dag_it_was_started_with(chains: Chains) -> None:
    """J-35, J-44, J-62, J-67, X-101: whatever becomes of the chain; and it is found when the chain is gone."""
    made = await chains.chain([work("a")], name="before")
    run_id = await chains.start(made)
    change = {"name": "after", "dagJson": dag_of([work("z")]), "version": 1}
    ok(await chains.send("PUT", f"/api/v1/chains/{made['chainId']}", change))
    await chains.client.call("DELETE", f"/api/v2/jobs/{made['chainId']}")
    run = await chains.seen(f"{RUNS}/{run_id}")
    assert run.keys() >= RUN_KEYS
    assert (run["runId"], run["chainId"], run["jobName"], run["status"]) == (
        run_id,
        made["chainId"],
        "before",
        "SUCCESS",
    )
    assert run["dagJson"] == made["dagJson"]
    assert list(await chains.nodes_of(run_id)) == ["a"]


async def test_nodes_run_when_what_they_need_has_succeeded(chains: Chains) -> None:
    """J-53, J-56, J-61, J-63, J-71, J-72, J-74: in the order of the dag's arrows, each with times and an artifact."""
    nodes: list[dict[str, Any]] = [
        {"id": "join", "type": "print", "dependsOn": ["left", "right"], "cfg": {"deep": [1, None]}},
        {"id": "left", "type": "print", "dependsOn": ["root"]},
        {"id": "right", "type": "noop", "dependsOn": ["root"]},
        {"id": "root", "type": "print", "cfg": {"n": 1}},
    ]
    run_id = await chains.start(await chains.chain(nodes))
    assert await chains.status(run_id) == "SUCCESS"
    seen = await chains.nodes_of(run_id)
    assert all(node.keys() == NODE_KEYS for node in seen.values())
    assert list(seen) == ["join", "left", "right", "root"]
    assert json.loads(seen["root"]["artifactJson"]) == {"n": 1}
    assert json.loads(seen["join"]["artifactJson"]) == {"deep": [1, None]}
    for node in nodes:
        shown = seen[str(node["id"])]
        # What does nothing was not attempted.
        attempts = 0 if node["type"] == "noop" else 1
        assert (shown["status"], shown["attempt"], shown["lastError"]) == ("SUCCESS", attempts, None)
        assert at(shown["startedAt"]) <= at(shown["endedAt"]) <= at(shown["updatedAt"])
        assert all(at(seen[need]["endedAt"]) <= at(shown["startedAt"]) for need in node.get("dependsOn", []))


async def test_a_node_is_tried_again_as_its_policy_says(chains: Chains) -> None:
    """J-58, J-59, J-60: three attempts in all, a second and two apart, unless the node says otherwise."""
    chains.says("plain", NO, NO, NO)
    chains.says("quick", NO, NO, NO)
    quick = {**work("quick"), "retry": {"maxAttempts": 2, "backoffMillis": 100, "backoffMultiplier": 1}}
    run_id = await chains.start(await chains.chain([{"id": "plain", "type": "work"}, quick, work("after", "plain")]))
    assert await chains.standing(run_id) == ("RUNNING", {"plain": "RETRYING", "quick": "RETRYING", "after": "PENDING"})
    await chains.advance("10s")
    assert await chains.standing(run_id) == ("FAILED", {"plain": "FAILED", "quick": "FAILED", "after": "SKIPPED"})
    begun = chains.sink.deliveries[0].at
    tried = {
        id: [(d.at - begun).total_seconds() for d in chains.sink.deliveries if d.context.step == id]
        for id in ("plain", "quick")
    }
    assert tried == {"plain": [0, 1, 3], "quick": [0, 0.1]}
    nodes = await chains.nodes_of(run_id)
    assert (nodes["plain"]["attempt"], nodes["plain"]["lastError"]) == (3, "said no")
    assert "plain" in (await chains.seen(f"{RUNS}/{run_id}"))["lastError"]


async def test_a_node_goes_on_where_its_last_attempt_left_off(chains: Chains) -> None:
    """J-69, J-73: any target is a type of node; what one leaves as a checkpoint, its next attempt is given."""
    chains.says("a", Outcome(Verdict.RETRY, error="half-way", checkpoint=b'{"row":7}'))
    run_id = await chains.start(await chains.chain([work("a", retry={"maxAttempts": 2, "backoff": 0})]))
    await chains.advance("1s")
    assert await chains.status(run_id) == "SUCCESS"
    assert [delivery.context.checkpoint for delivery in chains.sink.deliveries] == [None, {"row": 7}]


async def test_a_failure_skips_what_depends_on_it_and_nothing_else(chains: Chains) -> None:
    """J-53, J-70, X-95: other branches finish; with failFast nothing more starts. An unknown type fails its node."""
    nodes = [{"id": "bad", "type": "nope"}, work("after", "bad"), work("last", "after"), work("a"), work("b", "a")]
    run_id = await chains.start(await chains.chain(nodes))
    ends = {"bad": "FAILED", "after": "SKIPPED", "last": "SKIPPED", "a": "SUCCESS", "b": "SUCCESS"}
    assert await chains.standing(run_id) == ("FAILED", ends)
    assert "'nope'" in (await chains.nodes_of(run_id))["bad"]["lastError"]
    chains.says("a", NO)
    run_id = await chains.start(await chains.chain([work("a"), work("b")], dag={"failFast": True, "maxParallel": 1}))
    assert await chains.standing(run_id) == ("FAILED", {"a": "FAILED", "b": "PENDING"})


async def test_a_stop_ends_the_wait_for_a_retry(chains: Chains) -> None:
    """J-52: there is no further attempt."""
    chains.says("a", NO)
    run_id = await chains.start(await chains.chain([work("a", retry={"maxAttempts": 3, "backoff": 5000})]))
    assert await chains.standing(run_id) == ("RUNNING", {"a": "RETRYING"})
    await chains.act(f"{run_id}:stop")
    assert await chains.standing(run_id) == ("STOPPED", {"a": "STOPPED"})
    await chains.advance("10s")
    assert (await chains.nodes_of(run_id))["a"]["attempt"] == 1


async def test_a_run_that_is_over_cannot_be_stopped(chains: Chains) -> None:
    """J-37, X-84: nor one that does not exist; one that has not begun can, and never does."""
    made = await chains.chain([work("a")])
    good = await chains.start(made)
    chains.says("a", NO)
    bad = await chains.start(made)
    for run_id in (good, bad):
        assert refused(await chains.send("POST", f"{RUNS}/{run_id}:stop"))[:2] == (409, "INVALID_STATE")
    assert refused(await chains.send("POST", f"{RUNS}/{NOBODY}:stop"))[:2] == (400, "RUN_NOT_FOUND")
    unbegun = ok(await chains.send("POST", f"/api/v1/chains/{made['chainId']}:start"))["runId"]
    assert ok(await chains.send("POST", f"{RUNS}/{unbegun}:stop"))["status"] == "STOPPING"
    await chains.settle()
    assert await chains.standing(unbegun) == ("STOPPED", {"a": "PENDING"})


async def test_what_somebody_says_by_hand_is_kept(chains: Chains) -> None:
    """J-40, J-41: artifact and reason; without them the node keeps its own."""
    chains.says("a", NO)
    nodes = [work("a"), {"id": "b", "type": "print", "dependsOn": ["a"], "cfg": {"from": "{{a.artifact}}"}}]
    run_id = await chains.start(await chains.chain(nodes))
    said = {"artifactJson": '{"rows": 7}', "reason": "loaded by hand"}
    await chains.act(f"{run_id}/nodes/a:complete", said)
    seen = await chains.nodes_of(run_id)
    assert (json.loads(seen["a"]["artifactJson"]), seen["a"]["lastError"]) == ({"rows": 7}, "loaded by hand")
    assert json.loads(seen["b"]["artifactJson"]) == {"from": {"rows": 7}}
    # Again changes nothing, whatever it says.
    assert (await chains.act(f"{run_id}/nodes/a:complete", {"artifactJson": "[]"}))["attempt"] == 1
    assert (await chains.nodes_of(run_id))["a"] == seen["a"]
    chains.says("a", NO, NO)
    second = await chains.start(await chains.chain([work("a")]))
    await chains.act(f"{second}/nodes/a:retry", {"artifactJson": {"half": True}, "reason": "once more"})
    assert (await chains.nodes_of(second))["a"]["artifactJson"] == '{"half":true}'
    await chains.act(f"{second}/nodes/a:complete", {"artifactJson": None})
    assert (await chains.nodes_of(second))["a"]["artifactJson"] == '{"half":true}'
    wrong = await chains.send("POST", f"{RUNS}/{second}/nodes/a:complete", {"artifactJson": "{rows"})
    assert refused(wrong)[:2] == (400, "INVALID_ARGUMENT")


async def test_an_act_by_hand_is_refused_where_it_makes_no_sense(chains: Chains) -> None:
    """J-38, J-39, X-99: nodes that wait, were skipped or do not exist; ids may hold colons and slashes."""
    chains.says("a", NO)
    run_id = await chains.start(await chains.chain([work("a"), work("b/c:retry", "a")]))
    for verb in ("retry", "complete"):
        answer = await chains.send("POST", f"{RUNS}/{run_id}/nodes/b%2Fc:retry:{verb}")
        assert refused(answer)[:2] == (409, "INVALID_STATE")
        unknown = await chains.send("POST", f"{RUNS}/{run_id}/nodes/nope:{verb}")
        assert refused(unknown) == (400, "NODE_NOT_FOUND", "node not found: nope")
        nobody = await chains.send("POST", f"{RUNS}/{NOBODY}/nodes/a:{verb}")
        assert refused(nobody) == (400, "RUN_NOT_FOUND", f"run not found: {NOBODY}")
    unbegun = ok(await chains.send("POST", f"/api/v1/chains/{(await chains.chain([work('a')]))['chainId']}:start"))
    for verb in ("retry", "complete"):
        early = await chains.send("POST", f"{RUNS}/{unbegun['runId']}/nodes/a:{verb}")
        assert refused(early)[:2] == (409, "INVALID_STATE")


async def test_whose_word_counts_when_a_node_is_completed_while_it_runs(chains: Chains) -> None:
    """X-100: the person's; what the executor says later is dropped."""
    chains.says("a", HANGS)
    run_id = await chains.start(await chains.chain([work("a")]))
    [delivery] = chains.sink.running.values()
    await chains.act(f"{run_id}/nodes/a:complete", {"artifactJson": "1"})
    assert [canceled.run_id for canceled in chains.sink.canceled] == [delivery.run_id]
    assert await chains.standing(run_id) == ("SUCCESS", {"a": "SUCCESS"})


async def test_runs_of_tasks_and_of_chains_share_a_path_and_keep_apart(chains: Chains) -> None:
    """X-1, J-9, J-35: numbers are runs of tasks, UUIDs runs of chains, and neither finds the other's."""
    run_id = await chains.start(await chains.chain([work("a")]))
    number = int(run_id[18:].replace("-", ""), 16)
    task_run = await chains.send("GET", f"{RUNS}/{number}")
    assert (task_run.status, task_run.json()["error"]) == (404, "NOT_FOUND")
    assert (await chains.send("GET", f"{RUNS}/{run_id.upper()}")).status == 200
    for nobody in (NOBODY, f"{run_id[:-1]}{'0' if run_id[-1] != '0' else '1'}", "f" * 8 + run_id[8:]):
        assert refused(await chains.send("GET", f"{RUNS}/{nobody}")) == (
            400,
            "RUN_NOT_FOUND",
            f"run not found: {nobody}",
        )
        assert refused(await chains.send("GET", f"{RUNS}/{nobody}/nodes"))[0] == 400
    neither = await chains.send("GET", f"{RUNS}/nope")
    assert (neither.status, neither.json()["code"]) == (400, "INVALID_ID")


async def test_either_word_ends_either_kind_of_run(chains: Chains) -> None:
    """X-2: the answer has the shape of the word that was used, and a run of a task has one node."""
    chains.says("a", HANGS)
    run_id = await chains.start(await chains.chain([work("a")]))
    canceled = {"run_id": run_id, "status": "CANCELED"}
    assert await chains.act(f"{run_id}/cancel") == canceled
    assert await chains.standing(run_id) == ("STOPPED", {"a": "STOPPED"})
    over = await chains.start(await chains.chain([work("a")]))
    assert await chains.act(f"{over}/cancel") == {"run_id": over, "status": "CANCELED", "actual_status": "SUCCESS"}
    task = {"name": "t", "cron_expr": "@yearly", "target_url": "https://ksana.invalid/"}
    path = f"/api/v1/tasks/{ok(await chains.send('POST', '/api/v1/tasks', task))['id']}/trigger"
    number = ok(await chains.send("POST", path))["run_id"]
    for status in ("STOPPING", "STOPPED"):
        stopped = ok(await chains.send("POST", f"{RUNS}/{number}:stop"))
        assert stopped == {"runId": str(number), "status": status}
    [node] = await chains.seen(f"{RUNS}/{number}/nodes")
    assert node.keys() == NODE_KEYS
    assert (node["nodeId"], node["status"], node["attempt"]) == ("main", "STOPPED", 0)


async def test_a_start_may_set_what_the_chain_declares(chains: Chains) -> None:
    """Beyond the document: parameters, shown with the run."""
    nodes = [{"id": "a", "type": "print", "cfg": {"day": "{{params.day}}"}}]
    made = await chains.chain(nodes, dag={"params": {"day": "today", "n": 1}})
    run_id = await chains.start(made, params={"day": "monday"})
    assert json.loads((await chains.nodes_of(run_id))["a"]["artifactJson"]) == {"day": "monday"}
    assert (await chains.seen(f"{RUNS}/{run_id}"))["params"] == {"day": "monday", "n": 1}
    for params, field in (({"nope": 1}, "params.nope"), ({"n": "one"}, "params.n")):
        answer = await chains.send("POST", f"/api/v1/chains/{made['chainId']}:start", {"params": params})
        assert refused(answer)[0] == 400
        assert answer.json()["problems"][0]["field"] == field


async def test_a_repeated_start_with_the_same_key_is_one_start(chains: Chains) -> None:
    """J-65: and so is a repeated creation."""
    body = {"name": "once", "dagJson": dag_of([work("a")])}
    first, second = [await chains.send("POST", "/api/v1/chains", body, Idempotency_Key="c") for _ in range(2)]
    assert (first.status, second.status, first.json()) == (201, 201, second.json())
    path = f"/api/v1/chains/{first.json()['chainId']}"
    starts = [ok(await chains.send("POST", f"{path}:start", Idempotency_Key=key)) for key in ("s", "s", "t")]
    assert starts[0] == starts[1] != starts[2]
    assert (await chains.seen(f"{path}/runs"))["total"] == 2


async def test_runs_of_a_chain_are_listed_newest_first(chains: Chains) -> None:
    """Beyond the document: a page of them, without their dags."""
    chains.says("a", NO)
    made = await chains.chain([work("a")])
    ids = [await chains.start(made) for _ in range(3)]
    page = await chains.seen(f"/api/v1/chains/{made['chainId']}/runs?size=2")
    assert [run["runId"] for run in page["items"]] == [ids[2], ids[1]]
    assert (page["page"], page["size"], page["total"]) == (1, 2, 3)
    assert page["items"][0].keys() & {"dagJson", "params"} == set()
    failed = await chains.seen(f"/api/v1/chains/{made['chainId']}/runs?status=FAILED")
    assert [run["runId"] for run in failed["items"]] == [ids[0]]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)
