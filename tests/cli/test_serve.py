"""Real servers and workers: they start, answer, work on time, stop when told and say why when they cannot."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from ksana.domain.keys import KEY_RANDOM_BYTES, Scope, new_key
from tests.cli.nodes import command, serving
from tests.kit.clock import START
from tests.kit.sink import Hang, Sink

KEY = new_key(bytes(range(KEY_RANDOM_BYTES)), name="test", scopes=[Scope.ADMIN], created_at=START).text


async def test_a_server_starts_works_on_time_and_drains(tmp_path: Path, sink: Sink) -> None:
    async with serving(tmp_path, is_spawned=True) as node:
        assert (await node.call("GET", "/health"))[1]["status"] == "ok"
        assert (await node.call("GET", "/readyz"))[1]["ready"] is True
        job = {
            "name": "tick",
            "target": {"kind": "http", "config": {"url": f"{sink.url}/tick", "json": {"at": "{{scheduled_at}}"}}},
            "schedule": {"kind": "every", "every": "200ms"},
        }
        status, made = await node.call("POST", "/api/v2/jobs", job)
        assert status == 201
        requests = await sink.wait_for(3, path="/tick")
        assert len({request.header("Idempotency-Key") for request in requests}) == len(requests)
        runs = await node.until(
            f"/api/v2/jobs/{made['id']}/runs?state=SUCCESS&sort=id", lambda page: page["total"] >= 2
        )
        first, second = (run["planned_at"] for run in runs["items"][:2])
        assert first < second
        assert all(run["due_at"] <= run["started_at"] for run in runs["items"])
        assert await node.process.stop() == 0
        lines = [json.loads(line) for line in node.process.output.splitlines()]
    assert {"ts", "level", "msg", "component"} <= set(lines[0])
    messages = [line["msg"] for line in lines]
    assert messages[0].startswith("ksana ") and node.url in messages[0]
    assert messages[-1] == "stopped"
    assert not [line for line in lines if line["level"] in ("WARNING", "ERROR")]


async def test_a_stopping_server_waits_for_what_is_under_way(tmp_path: Path, sink: Sink) -> None:
    """C-145."""
    async with serving(tmp_path) as node:
        job = {"name": "nap", "target": {"kind": "sleep", "config": {"for": "300ms"}}}
        await node.call("POST", "/api/v2/jobs", job)
        await node.call("POST", "/api/v2/jobs/1/runs")
        await node.until("/api/v2/runs/1", lambda run: run["state"] != "SCHEDULED")
        assert await node.process.stop() == 0
    async with serving(tmp_path) as node:
        _, run = await node.call("GET", "/api/v2/runs/1")
        assert (run["state"], run["attempt"]) == ("SUCCESS", 1)


async def test_a_second_signal_does_not_wait(tmp_path: Path, sink: Sink) -> None:
    async with serving(tmp_path, environment={"KSANA_GRACE": "10m", "KSANA_DEFAULT_TIMEOUT": "10m"}) as node:
        config = {"url": sink.on("/never", Hang())}
        await node.call("POST", "/api/v2/jobs", {"name": "stuck", "target": {"kind": "http", "config": config}})
        await node.call("POST", "/api/v2/jobs/1/runs")
        await sink.wait_for(1)
        os.kill(node.process.pid, signal.SIGTERM)
        await node.process.line("stopping")
        os.kill(node.process.pid, signal.SIGINT)
        assert await node.process.ended() == 130
        assert "Traceback" not in node.process.output


async def test_a_busy_port_is_named_and_refused(tmp_path: Path) -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        async with command("serve", "--port", str(port), directory=tmp_path) as process:
            assert await process.ended() == 1
            assert f"cannot listen on 127.0.0.1:{port}" in process.output
            assert "--port" in process.output
            assert "Traceback" not in process.output


async def test_a_server_for_others_needs_a_key(tmp_path: Path) -> None:
    async with command("serve", "--host", "0.0.0.0", "--port", "0", directory=tmp_path) as process:
        assert await process.ended() == 2
        assert "ksana key create" in process.output
        assert "Traceback" not in process.output


async def test_a_server_for_others_starts_once_a_key_is_stored(tmp_path: Path) -> None:
    async with command("key", "create", "--name", "ops", directory=tmp_path) as making:
        assert await making.ended() == 0
    async with serving(tmp_path, "--host", "0.0.0.0") as node:
        node.url = node.url.replace("0.0.0.0", "127.0.0.1")
        assert (await node.call("GET", "/api/v2/jobs"))[0] == 401


async def test_a_server_for_others_starts_with_a_key_and_asks_for_it(tmp_path: Path) -> None:
    async with serving(tmp_path, "--host", "0.0.0.0", environment={"KSANA_API_KEYS": KEY}) as node:
        node.url = node.url.replace("0.0.0.0", "127.0.0.1")
        assert (await node.call("GET", "/api/v2/jobs"))[0] == 401
        assert (await node.call("GET", "/api/v2/jobs", headers={"Authorization": f"Bearer {KEY}"}))[0] == 200
        assert KEY not in node.process.output


async def test_a_server_for_others_starts_when_told_that_it_is_insecure(tmp_path: Path) -> None:
    async with serving(tmp_path, "--host", "0.0.0.0", "--insecure") as node:
        node.url = node.url.replace("0.0.0.0", "127.0.0.1")
        assert (await node.call("GET", "/api/v2/jobs", headers={"Host": "ksana.example"}))[0] == 200


async def test_a_key_made_while_the_server_runs_closes_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        async with command("key", "create", directory=tmp_path) as making:
            key = (await making.line(r"ksk_\w+")).group()
            assert await making.ended() == 0
        assert (await node.call("GET", "/api/v2/jobs"))[0] == 401
        assert (await node.call("GET", "/api/v2/jobs", headers={"X-API-Key": key}))[0] == 200


async def test_a_file_of_settings_is_named_in_the_old_way(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("server:\n  port: 0\nexecutor:\n  worker_pool_size: 7\n")
    async with command("serve", "-config=my.yaml", directory=tmp_path) as process:
        assert not (await process.url()).endswith(":7100")
        await process.line("7 workers")
        assert await process.stop() == 0


async def test_a_server_behind_a_proxy_lives_under_its_path(tmp_path: Path) -> None:
    async with serving(tmp_path, "--base-path", "/ksana") as node:
        assert f"{node.url}/ksana" in node.process.output
        assert (await node.call("GET", "/api/v2/version"))[0] == 200


@pytest.mark.parametrize("node_kind", ["serve", "worker"])
async def test_python_functions_are_called_by_name(tmp_path: Path, node_kind: str) -> None:
    (tmp_path / "chores.py").write_text(
        "async def greet(name): return f'hello {name}'\ndef add(a, b): return a + b\n"
        "FUNCTIONS = {'greet': greet, 'add': add}\n"
    )
    options = ["--functions", "chores:FUNCTIONS"] if node_kind == "serve" else []
    async with serving(tmp_path, *options) as node:
        queue = "default" if node_kind == "serve" else "chores"
        for name, config in (
            ("greet", {"function": "greet", "kwargs": {"name": "you"}}),
            ("add", {"function": "add", "args": [2, 3]}),
        ):
            target = {"kind": "python", "config": config}
            status, job = await node.call("POST", "/api/v2/jobs", {"name": name, "target": target, "queue": queue})
            assert status == 201, job
            await node.call("POST", f"/api/v2/jobs/{job['id']}/runs")
        if node_kind == "worker":
            async with command("worker", "chores:FUNCTIONS", "--queue", "chores", directory=tmp_path) as worker:
                await node.until("/api/v2/runs?state=SUCCESS", lambda page: page["total"] == 2)
                assert len((await node.call("GET", "/api/v2/nodes"))[1]) == 2
                assert await worker.stop() == 0
        page = await node.until("/api/v2/runs?state=SUCCESS&sort=id", lambda page: page["total"] == 2)
        results = []
        for run in page["items"]:
            _, [attempt] = await node.call("GET", f"/api/v2/runs/{run['id']}/attempts")
            results.append(attempt["result"])
        assert results == ["hello you", 5]


async def test_a_worker_does_not_listen_and_needs_no_key(tmp_path: Path) -> None:
    async with command("worker", directory=tmp_path, environment={"KSANA_HOST": "0.0.0.0"}) as process:
        await process.line("working for sqlite:")
        assert await process.stop() == 0
