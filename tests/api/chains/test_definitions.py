"""Definitions of chains: create, update, switch, find (J-2, J-8 … J-34)."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Any

from tests.api.chains.world import Chains, dag_of, ok, refused

DAG = {
    "job": "nightly",
    "nodes": [
        {"id": "fetch", "type": "print", "cfg": {"n": 1}, "note": "unknown properties are kept"},
        {
            "id": "load",
            "type": "print",
            "dependsOn": ["fetch"],
            "retry": {"maxAttempts": 2, "backoff": 50, "backoffMultiplier": 1.5},
        },
    ],
}
DETAIL = {"chainId", "name", "description", "enabled", "version", "dagJson", "createdAt", "updatedAt"}
PATH = "/api/v1/chains"


async def test_a_chain_is_shown_as_it_was_submitted(chains: Chains) -> None:
    """J-11, J-14, J-15, J-25, J-33: text and object alike, the text encoded twice too; unknown properties are kept."""
    for name, given in {"text": json.dumps(DAG), "object": DAG, "text in text": json.dumps(json.dumps(DAG))}.items():
        answer = await chains.send("POST", PATH, {"name": name, "dagJson": given, "colour": "red"})
        made = answer.json()
        assert answer.status == 201
        assert made.keys() == DETAIL
        assert answer.headers["location"] == f"{PATH}/{made['chainId']}"
        assert isinstance(made["chainId"], str)
        assert (made["version"], made["enabled"], made["description"]) == (1, True, None)
        assert json.loads(made["dagJson"]) == DAG
        assert datetime.fromisoformat(made["createdAt"]).tzinfo is not None
        assert await chains.seen(f"{PATH}/{made['chainId']}") == made
    off = await chains.chain(name="off", enabled=False, description="not yet")
    assert (off["enabled"], off["description"]) == (False, "not yet")
    on = await chains.chain(name="on", enabled=None)
    assert on["enabled"] is True


WRONG_DAGS = {
    "{not json": "must be JSON",
    "  ": "must not be blank",
    "[1]": "must be a JSON object",
    "{}": "dag must have nodes",
    '{"nodes": []}': "dag must have nodes",
    dag_of([{"id": "a"}, {"id": "a"}]): "'a' is taken by nodes[0]",
    dag_of([{"id": " "}]): "give the node an id",
    dag_of([{"id": "a", "dependsOn": ["b"]}]): "there is no node 'b'",
    dag_of([{"id": "a", "dependsOn": ["a"]}]): "in a circle: a -> a",
    dag_of([{"id": "a", "dependsOn": ["b"]}, {"id": "b", "dependsOn": ["a"]}]): "in a circle",
    '{"nodes": [{"id": "a", "cfg": {"x": 1, "x": 2}}]}': "appears twice",
}


async def test_a_dag_that_cannot_run_is_refused(chains: Chains) -> None:
    """J-13, J-28, J-29, J-30, J-31, J-32, J-34: when it is made and when it is changed, and nothing changes then."""
    made = await chains.chain(name="good")
    for dag, says in WRONG_DAGS.items():
        status, code, text = refused(await chains.send("POST", PATH, {"name": "bad", "dagJson": dag}))
        assert (status, code) == (400, "INVALID_ARGUMENT")
        assert text == says if says == "dag must have nodes" else says in text
        # Even under a version that is old: what is wrong with the dag stays wrong.
        change = {"name": "good", "dagJson": dag, "version": 7}
        assert refused(await chains.send("PUT", f"{PATH}/{made['chainId']}", change))[:2] == (400, "INVALID_ARGUMENT")
    assert await chains.seen(f"{PATH}/{made['chainId']}") == made


async def test_other_spellings_of_a_dag_mean_the_same(chains: Chains) -> None:
    """X-93, J-33: ids, dependencies and configs under their other names."""
    nodes: list[dict[str, Any]] = [{"nodeId": "a", "type": "print", "config": {"n": 1}}, {"id": "b", "deps": ["a"]}]
    run_id = await chains.start(await chains.chain(nodes))
    assert await chains.standing(run_id) == ("SUCCESS", {"a": "SUCCESS", "b": "SUCCESS"})
    assert json.loads((await chains.nodes_of(run_id))["a"]["artifactJson"]) == {"n": 1}


async def test_a_chain_without_a_name_is_refused(chains: Chains) -> None:
    """J-13."""
    for body in ({"name": ""}, {"name": "  "}, {}, {"name": 7}, {"name": "x" * 129}):
        status, code, text = refused(await chains.send("POST", PATH, {"dagJson": DAG, **body}))
        assert (status, code) == (400, "INVALID_ARGUMENT")
        assert text.startswith("name: ")
    for dag in ({}, {"dagJson": None}, {"dagJson": ""}, {"dagJson": 7}):
        assert refused(await chains.send("POST", PATH, {"name": "n", **dag}))[2].startswith("dagJson: ")


async def test_an_update_replaces_a_chain_and_raises_its_version(chains: Chains) -> None:
    """J-16, J-17, J-18, J-19, J-20, J-22, X-103: switching does not count, and does not ask for a version."""
    made = await chains.chain(name="one", description="old")
    other = await chains.chain(name="two")
    path = f"{PATH}/{made['chainId']}"
    for verb in ("disable", "disable", "enable", "disable"):
        assert ok(await chains.send("POST", f"{path}:{verb}"))["version"] == 1
    changed = ok(await chains.send("PUT", path, {"name": "one", "dagJson": DAG, "version": 1, "enabled": True}))
    assert (changed["version"], changed["enabled"], changed["description"]) == (2, False, None)
    assert json.loads(changed["dagJson"]) == DAG
    late = await chains.send("PUT", path, {"name": "one", "dagJson": DAG, "version": 1})
    assert refused(late) == (409, "VERSION_CONFLICT", "chain version conflict or not found")
    taken = await chains.send("PUT", path, {"name": "two", "dagJson": DAG, "version": 2})
    assert refused(taken) == (400, "ALREADY_EXISTS", "chain name already exists: two")
    for version in ({}, {"version": 0}, {"version": -1}, {"version": None}, {"version": "2"}):
        answer = await chains.send("PUT", path, {"name": "one", "dagJson": DAG, **version})
        assert refused(answer)[0] == 400
    gone = await chains.send("PUT", f"{PATH}/999", {"name": "x", "dagJson": DAG, "version": 1})
    assert refused(gone) == (400, "CHAIN_NOT_FOUND", "chain not found: 999")
    # Whoever changes it elsewhere counts too, or that change would be lost.
    answer = await chains.client.call("PATCH", f"/api/v2/jobs/{other['chainId']}", json_body={"description": "new"})
    assert answer.status == 200
    assert (await chains.seen(f"{PATH}/{other['chainId']}"))["version"] == 2


async def test_of_ten_updates_of_one_version_exactly_one_counts(any_chains: Chains) -> None:
    """J-64."""
    made = await any_chains.chain()
    change = {"name": made["name"], "dagJson": DAG, "version": 1}
    sent = [any_chains.send("PUT", f"{PATH}/{made['chainId']}", change) for _ in range(10)]
    answers = await asyncio.gather(*sent)
    assert sorted(answer.status for answer in answers) == [200, *[409] * 9]
    taken = await any_chains.send("POST", PATH, {"name": made["name"], "dagJson": DAG})
    assert refused(taken)[:2] == (400, "ALREADY_EXISTS")


async def test_a_switch_may_be_thrown_twice(chains: Chains) -> None:
    """J-21, J-42: with the colon as it is, or encoded."""
    made = await chains.chain()
    for verb, enabled in ((":disable", False), ("%3Adisable", False), (":enable", True), ("%3aenable", True)):
        shown = ok(await chains.send("POST", f"{PATH}/{made['chainId']}{verb}"))
        assert shown.keys() == DETAIL
        assert shown["enabled"] is enabled
    for verb in ("enable", "disable", "start"):
        assert refused(await chains.send("POST", f"{PATH}/7:{verb}"))[:2] == (400, "CHAIN_NOT_FOUND")


async def test_chains_are_found_by_pages(chains: Chains) -> None:
    """J-23, J-24, X-105: 25 chains are a page of twenty and one of five; sizes are taken as the nearest there is."""
    for n in range(25):
        await chains.chain(name=f"{'Load' if n % 5 == 0 else 'clean'} {n}", enabled=n % 2 == 0)
    first = await chains.seen(PATH)
    assert (first["page"], first["size"], first["total"], len(first["items"])) == (1, 20, 25, 20)
    assert first["items"][0].keys() == DETAIL - {"dagJson"}
    second = await chains.seen(f"{PATH}?page=2&size=20&keyword=&enabled=")
    assert [chain["name"] for chain in second["items"]] == [
        f"{'Load' if n % 5 == 0 else 'clean'} {n}" for n in range(20, 25)
    ]
    found = await chains.seen(f"{PATH}?keyword=load&enabled=true")
    assert ([chain["name"] for chain in found["items"]], found["total"]) == (["Load 0", "Load 10", "Load 20"], 3)
    assert (await chains.seen(f"{PATH}?enabled=false"))["total"] == 12
    for query, page, size in (("page=0&size=0", 1, 1), ("page=-3&size=1000", 1, 200), ("page=9&size=3", 9, 3)):
        shown = await chains.seen(f"{PATH}?{query}")
        assert (shown["page"], shown["size"], shown["total"]) == (page, size, 25)
    assert refused(await chains.send("GET", f"{PATH}?page=first"))[0] == 400


async def test_nothing_is_ever_a_404_here(chains: Chains) -> None:
    """J-8, J-9, J-10: what does not exist is a wrong argument, with a code of its own beside the text."""
    answer = await chains.client.post("/api/v2/jobs", {"name": "a job", "target": {"kind": "noop"}})
    for chain_id in ("999", "nope", "0", "9" * 30, str(answer.json()["id"])):
        got = await chains.send("GET", f"{PATH}/{chain_id}")
        assert refused(got) == (400, "CHAIN_NOT_FOUND", f"chain not found: {chain_id}")
        assert refused(await chains.send("GET", f"{PATH}/{chain_id}/runs"))[0] == 400


async def test_a_chain_may_have_a_schedule_and_bounds(chains: Chains) -> None:
    """Beyond the document: shown only if set, kept by an update that does not say them."""
    made = await chains.chain(schedule="@hourly", misfire="catch_up", catchUpLimit=3, maxConcurrency=2)
    said = {name: made[name] for name in made.keys() - DETAIL}
    assert said == {
        "schedule": {"cron": "@hourly", "timezone": "UTC"},
        "nextFireAt": "2030-01-01T13:00:00.000Z",
        "misfire": "catch_up",
        "catchUpLimit": 3,
        "overlap": "queue",
        "maxConcurrency": 2,
    }
    path = f"{PATH}/{made['chainId']}"
    same = {"name": made["name"], "dagJson": made["dagJson"], "version": 1}
    kept = ok(await chains.send("PUT", path, same))
    assert {name: kept[name] for name in said} == said
    plain = ok(await chains.send("PUT", path, {**same, "version": 2, "schedule": None, "overlap": "parallel"}))
    assert plain.keys() - DETAIL == {"misfire", "catchUpLimit"}
    for schedule, shown in (
        ({"cron": "0 9 * * 1-5", "timezone": "Asia/Shanghai"}, {"cron": "0 9 * * 1-5", "timezone": "Asia/Shanghai"}),
        ({"every": "90s"}, {"every": "1m30s"}),
        ("@every 5m", {"every": "5m"}),
        ({"at": "2031-01-01T00:00:00+01:00"}, {"at": "2030-12-31T23:00:00.000Z"}),
        ({"once": "2031-01-01T00:00:00Z"}, {"at": "2031-01-01T00:00:00.000Z"}),
    ):
        assert (await chains.chain(schedule=schedule))["schedule"] == shown
    for wrong, field in (
        ({"schedule": "61 * * * *"}, "schedule.cron"),
        ({"schedule": {"cron": "@daily", "every": "1m"}}, "schedule"),
        ({"schedule": {"every": "1m", "timezone": "UTC"}}, "schedule.timezone"),
        ({"schedule": {"at": "tomorrow"}}, "schedule.at"),
        ({"catchUpLimit": 3}, "catchUpLimit"),
        ({"overlap": "parallel", "maxConcurrency": 2}, "maxConcurrency"),
        ({"overlap": "sometimes"}, "overlap"),
    ):
        answer = await chains.send("POST", PATH, {"name": "wrong", "dagJson": DAG, **wrong})
        assert [problem["field"] for problem in answer.json()["problems"]] == [field]


async def test_a_scheduled_chain_starts_by_itself(chains: Chains) -> None:
    """Beyond the document (J-4 leaves it out): its runs are as those started by hand."""
    made = await chains.chain(schedule={"every": "1h"})
    await chains.advance("2h")
    runs = await chains.seen(f"{PATH}/{made['chainId']}/runs")
    assert [run["status"] for run in runs["items"]] == ["SUCCESS", "SUCCESS"]
    assert runs["total"] == 2
    ok(await chains.send("POST", f"{PATH}/{made['chainId']}:disable"))
    await chains.advance("2h")
    assert (await chains.seen(f"{PATH}/{made['chainId']}/runs?status=SUCCESS&size=1"))["total"] == 2
