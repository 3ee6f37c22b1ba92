"""Kill -9 in the middle of a chain, again and again: every node is done, none is done again once it was, and none
begins before what it depends on, on every store."""

import random
from pathlib import Path
from typing import Any

import pytest

from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.stores.open import open_store
from tests.chaos.api import Api, api
from tests.chaos.conftest import STORES
from tests.chaos.test_kill import QUICK
from tests.kit.processes import ksana
from tests.kit.sink import Request, Sink

NEEDS = {
    "fetch": [],
    **{f"part{i}": ["fetch"] for i in range(4)},
    "left": ["part0", "part1"],
    "right": ["part2", "part3"],
    "gate": ["left", "right"],
    **{f"check{i}": ["gate"] for i in range(3)},
    "publish": ["check0", "check1", "check2"],
    "told": ["publish"],
    "tell": ["told"],
    "end": ["tell"],
}
IDLE = frozenset({"gate", "told", "end"})
"""Nodes that do nothing, and are done by whoever ends what they wait for."""
KILLS = 3


@pytest.mark.parametrize("store_url", [*STORES, "json"], indirect=True)
async def test_a_chain_survives_its_server_being_killed_between_any_two_nodes(
    store_url: str, tmp_path: Path, sink: Sink
) -> None:
    command = ("serve", "--port", "0", "--store", store_url, "--log-level", "info")
    dice = random.Random(store_url.partition(":")[0])
    run_id, done = 0, dict[int, int]()
    for _ in range(KILLS):
        async with ksana(*command, directory=tmp_path, environment=QUICK) as server:
            url = await server.url()
            if not run_id:
                async with api(url) as client:
                    run_id = await _start(client, sink)
            # With a request under way, or with its answer just given and perhaps not yet stored.
            seen = sink.requests if dice.random() < 0.5 else sink.replied
            wanted = min(len(NEEDS) - len(IDLE), len(_begun(seen)) + dice.randint(1, 3))
            await sink.wait_until(lambda seen=seen, wanted=wanted: len(_begun(seen)) >= wanted, f"{wanted} nodes")  # type: ignore[misc]
            await server.kill()
        for node in await _nodes(store_url, run_id):
            if node.state is State.SUCCESS and node.step not in IDLE:
                done.setdefault(node.id, _deliveries(sink, node.id))

    async with ksana(*command, directory=tmp_path, environment=QUICK) as server:
        async with api(await server.url()) as client:
            await client.until_idle()
            run = await client.call("GET", f"/api/v2/runs/{run_id}")
            steps = {step["id"]: step for step in await client.call("GET", f"/api/v2/runs/{run_id}/steps")}
        assert await server.stop() == 0
    assert run["state"] == "SUCCESS"
    assert done, "no node was done before the last kill"
    assert {step["state"] for step in steps.values()} == {"SUCCESS"}
    for id, needs in NEEDS.items():
        for need in needs:
            assert steps[id]["started_at"] >= steps[need]["ended_at"], f"{id} began before {need} was done"
    again = {node_id for node_id, count in done.items() if _deliveries(sink, node_id) != count}
    assert not again, f"nodes delivered again after their success was stored: {again}"
    for step in (step for id, step in steps.items() if id not in IDLE):
        fences = [int(request.header("X-Ksana-Fence") or 0) for request in _requests(sink, step["run_id"])]
        assert fences, f"{step['id']} was never delivered"
        assert fences == sorted(set(fences))


async def _start(client: Api, sink: Sink) -> int:
    nodes: list[dict[str, Any]] = [
        {"id": id, "dependsOn": needs}
        | ({} if id in IDLE else {"type": "http", "cfg": {"method": "POST", "url": f"{sink.url}/{id}"}})
        for id, needs in NEEDS.items()
    ]
    chain = await client.create(name="chain", target={"kind": "chain", "config": {"nodes": nodes, "maxParallel": 3}})
    run = await client.call("POST", f"/api/v2/jobs/{chain['id']}/runs")
    return int(run["id"])


async def _nodes(store_url: str, run_id: int) -> list[Run]:
    """What is stored of the nodes while nobody works on them."""
    store = open_store(store_url)
    await store.open()
    try:
        return await store.children(run_id)
    finally:
        await store.close()


def _begun(requests: list[Request]) -> set[str]:
    return {request.path for request in requests}


def _requests(sink: Sink, run_id: int) -> list[Request]:
    return [request for request in sink.requests if request.header("X-Ksana-Run-Id") == str(run_id)]


def _deliveries(sink: Sink, run_id: int) -> int:
    return len(_requests(sink, run_id))
