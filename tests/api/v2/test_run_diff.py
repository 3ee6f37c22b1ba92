"""Two runs side by side."""

from __future__ import annotations

from typing import Any

from ksana.api.kit import Scope
from tests.api.v2.world import World
from tests.kit.sink import Reply, Sink


async def changes(world: World, path: str) -> dict[str, tuple[Any, Any]]:
    return {one["path"]: (one["left"], one["right"]) for one in (await world.seen(path))["changes"]}


async def test_a_failed_run_is_compared_with_the_last_success_before_it(world: World, sink: Sink) -> None:
    good = Reply(body=b'{"rows": [1, 2], "ok": true}')
    url = sink.on("/sync", good, good, Reply(status=500, body=b'{"rows": [1], "ok": true}'), good)
    job = await world.job(kind="http", config={"url": url, "json": {"day": "{{input.day}}"}})
    runs = []
    for day in (1, 2, 3, 4):
        runs.append(await world.run(job, input={"day": day}))
        await world.work()
    path = f"/api/v2/runs/{runs[2]['id']}/diff"
    shown = await world.seen(path)
    assert (shown["left"]["id"], shown["right"]["id"]) == (runs[1]["id"], runs[2]["id"])
    found = await changes(world, path)
    assert found["response.code"] == (200, 500)
    assert found["response.body.rows[1]"] == (2, None)
    assert found["input.day"] == (2, 3)
    assert found["request.body.day"] == (2, 3)
    assert "response.body.ok" not in found
    assert "request.line" not in found
    first = await changes(world, f"{path}?with={runs[0]['id']}")
    assert first["input.day"] == (1, 3)
    newest = await world.seen(f"/api/v2/runs/{runs[3]['id']}/diff")
    assert newest["left"]["id"] == runs[1]["id"]


async def test_without_a_success_to_compare_with_the_answer_says_so(world: World) -> None:
    job = await world.job(kind="fail", config={"times": 1})
    failed = await world.run(job)
    await world.work()
    answer = await world.get(f"/api/v2/runs/{failed['id']}/diff")
    assert (answer.status, answer.json()["code"]) == (404, "NOT_FOUND")
    assert "before run 1 has succeeded" in answer.json()["message"]
    await world.post(f"/api/v2/runs/{failed['id']}/retry")
    await world.work()
    answer = await world.get(f"/api/v2/runs/{failed['id']}/diff")
    assert answer.status == 404
    for other in ("99", "0", "x"):
        assert (await world.get(f"/api/v2/runs/{failed['id']}/diff?with={other}")).status in (400, 404)


async def test_a_long_value_is_cut_and_says_how_long_it_was(world: World) -> None:
    job = await world.job(kind="echo")
    short, long = await world.run(job, input="s"), await world.run(job, input="l" * 5000)
    await world.work()
    found = await changes(world, f"/api/v2/runs/{long['id']}/diff?with={short['id']}")
    assert found["input"][0] == "s"
    assert found["input"][1] == f"{'l' * 2000}… (5000 characters)"


async def test_a_key_that_may_only_read_sees_no_callback_token(world: World, sink: Sink) -> None:
    url = sink.on("/later", Reply(status=202))
    job = await world.job(kind="http", config={"url": url, "mode": "async", "json": {"to": "{{callback_url}}"}})
    other = await world.run(await world.job("plain"))
    run = await world.run(job)
    await world.work()
    path = f"/api/v2/runs/{run['id']}/diff?with={other['id']}"
    [stored] = await world.store.get_runs([run["id"]])
    assert stored.callback_token
    open_to_all = await world.get(path)
    assert stored.callback_token in open_to_all.body.decode()
    answer = await world.get(path, headers={"X-API-Key": await world.key(Scope.RUN_READ)})
    assert answer.status == 200
    assert stored.callback_token not in answer.body.decode()
