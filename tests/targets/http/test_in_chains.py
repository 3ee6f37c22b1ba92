"""HTTP calls as steps of a chain, through the whole engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.api.v2.world import open_world
from tests.kit.sink import Reply, Sink

HOSTILE = '../x?t={{params.secret}}{{callback_token}}"\n'


def answers(body: Any) -> Reply:
    return Reply(body=json.dumps(body).encode(), headers={"Content-Type": "application/json"})


async def test_what_one_call_answers_goes_into_the_next_and_only_as_a_value(
    sink: Sink, fresh_sqlite_path: Path
) -> None:
    fetched = sink.on("/fetch", answers({"evil": HOSTILE, "rows": [{"id": "a b"}, {"id": "c"}]}))
    base = fetched.removesuffix("/fetch")
    nodes = [
        {"id": "fetch", "type": "http", "cfg": {"url": "{{params.base}}/fetch", "method": "GET"}},
        {
            "id": "push",
            "type": "http",
            "dependsOn": ["fetch"],
            "map": "{{fetch.artifact.rows}}",
            "maxParallel": 1,
            "cfg": {
                "url": f"{base}/{{{{item.id}}}}/{{{{fetch.artifact.evil}}}}",
                "headers": {"X-Index": "{{index}} {{attempt}}"},
                "json": {"row": "{{item}}", "said": "<{{fetch.artifact.evil}}>"},
            },
        },
    ]
    async with open_world(fresh_sqlite_path) as world:
        dag = {"nodes": nodes, "params": {"base": base, "secret": "hush"}}
        run = await world.run(await world.job("c", "chain", dag))
        await world.work()
        assert (await world.seen(f"/api/v2/runs/{run['id']}"))["state"] == "SUCCESS"
    pushed = [request for request in sink.requests if request.method == "POST"]
    assert [json.loads(request.body) for request in pushed] == [
        {"row": {"id": "a b"}, "said": f"<{HOSTILE}>"},
        {"row": {"id": "c"}, "said": f"<{HOSTILE}>"},
    ]
    assert [request.header("X-Index") for request in pushed] == ["0 1", "1 1"]
    assert pushed[0].target.startswith("/a%20b/..%2Fx%3Ft%3D%7B%7B")
