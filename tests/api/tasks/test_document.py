"""What the document tells its reader to type, typed: the file, the quick start, the ten steps. Only hosts differ."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.cli.nodes import Node, command, serving
from tests.config.test_yaml_file import CRONJOB_FILE
from tests.kit.processes import DEADLINE
from tests.kit.sink import Hang, Reply, Sink
from tests.services.databases import FreshDatabase

QUICK_START = """\
curl -X POST http://localhost:8080/api/v1/tasks -H "Content-Type: application/json" -d '{"name":"t1","description":"demo","cron_expr":"*/5 * * * *","exec_type":"SYNC","http_method":"GET","target_url":"https://httpbin.org/get","timeout_seconds":5}'
curl -X POST http://localhost:8080/api/v1/tasks/1/trigger
curl http://localhost:8080/api/v1/tasks/1/runs
curl -X POST http://localhost:8080/api/v1/runs/{run_id}/cancel
"""  # noqa: E501
TEN_STEPS = """\
# 1. 创建任务
curl -X POST http://localhost:8080/api/v1/tasks -H 'Content-Type: application/json' -d '{"name":"t1","description":"d","cron_expr":"*/20 * * * * *","exec_type":"SYNC","http_method":"GET","target_url":"https://httpbin.org/get","timeout_seconds":5}'

# 2. 列表
curl http://localhost:8080/api/v1/tasks

# 3. 手动触发
curl -X POST http://localhost:8080/api/v1/tasks/1/trigger

# 4. 查看运行列表
curl http://localhost:8080/api/v1/tasks/1/runs

# 5. 查看运行详情（替换 run_id）
curl http://localhost:8080/api/v1/runs/1

# 6. 取消运行（若仍在运行）
curl -X POST http://localhost:8080/api/v1/runs/1/cancel

# 7. 禁用任务
curl -X PATCH http://localhost:8080/api/v1/tasks/1/disable

# 8. 启用任务
curl -X PATCH http://localhost:8080/api/v1/tasks/1/enable

# 9. 更新 Cron
curl -X PATCH http://localhost:8080/api/v1/tasks/1 -H 'Content-Type: application/json' -d '{"cron_expr":"*/10 * * * * *"}'

# 10. 删除任务
curl -X DELETE http://localhost:8080/api/v1/tasks/1
"""  # noqa: E501


async def typed(line: str, node: Node, target: str, **words: object) -> Any:
    """Type a line of the document into a shell, with other hosts in it, and give the JSON that comes back."""
    for name, value in words.items():
        line = line.replace(f"{{{name}}}", str(value))
    line = line.replace("http://localhost:8080", node.url).replace("https://httpbin.org/get", target)
    child = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        f"{line} -sS -w '\\n%{{http_code}}'",
        stdout=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
        env={**os.environ, "NO_PROXY": "*"},
    )
    out, _ = await asyncio.wait_for(child.communicate(), DEADLINE)
    body, _, status = out.decode().rpartition("\n")
    assert status.startswith("2"), f"{line}\nwas answered with {out.decode()}"
    return json.loads(body)


def go_dsn(url: str) -> str:
    """A database as the document writes it."""
    parts = urlsplit(url)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    credentials = f"{user}:{password}" if password else user
    query = "charset=utf8mb4&parseTime=True&loc=Local"
    if "unix_socket" in parts.query:
        socket = unquote(re.search(r"unix_socket=([^&]+)", parts.query)[1])  # type: ignore[index]
        return f"{credentials}@unix({socket}){parts.path}?{query}"
    return f"{credentials}@tcp({parts.hostname}:{parts.port or 3306}){parts.path}?{query}"


def config_file(directory: Path, changes: Mapping[str, str]) -> Path:
    """The document's file, with some of its text changed."""
    text = CRONJOB_FILE
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path = directory / "config.yaml"
    path.write_text(text)
    return path


async def test_the_quick_start_works_on_mariadb(
    fresh_mysql_database: FreshDatabase, tmp_path: Path, sink: Sink
) -> None:
    """C-1, C-76, C-77, C-125, C-129, C-130, C-131, C-133, C-147: database, tables, file, start with -config=, create,
    trigger, list, cancel."""
    sink.otherwise(Hang())
    dsn = "user:pass@tcp(127.0.0.1:3306)/cronjob?charset=utf8mb4&parseTime=True&loc=Local"
    config_file(tmp_path, {dsn: go_dsn(fresh_mysql_database())})
    async with command("db", "migrate", "-config=config.yaml", directory=tmp_path) as tables:
        assert await tables.ended() == 0, tables.output
    create, trigger, runs, cancel = QUICK_START.splitlines()
    # The file says 8080, which may be taken on this machine.
    async with serving(tmp_path, "-config=config.yaml") as node:
        assert "mysql://" in node.process.output
        assert "16 workers" in node.process.output
        assert await typed(create, node, sink.url) == {"id": 1, "name": "t1"}
        run_id = (await typed(trigger, node, sink.url))["run_id"]
        assert isinstance(run_id, int)
        await sink.wait_for(1)
        [run] = [run for run in await typed(runs, node, sink.url) if run["ID"] == run_id]
        assert (run["TaskID"], run["Status"]) == (1, "RUNNING")
        canceled = await typed(cancel, node, sink.url, run_id=run_id)
        assert canceled == {"run_id": run_id, "status": "CANCELED"}
        await sink.wait_until(lambda: not sink.open, "the connection to be closed")
        _, task = await node.call("GET", "/api/v1/tasks/1")
        assert (task["CronExpr"], task["TimeoutSeconds"]) == ("0 */5 * * * *", 5)
        body = {"name": "t2", "cron_expr": "@yearly", "target_url": sink.url}
        _, made = await node.call("POST", "/api/v1/tasks", body)
        _, task = await node.call("GET", f"/api/v1/tasks/{made['id']}")
        # What the file says is what a task gets that does not say.
        assert (task["TimeoutSeconds"], task["retry_policy"]["max_retries"]) == (15, 0)
        assert await node.process.stop() == 0


@pytest.mark.parametrize("store", ["sqlite", "postgres", "mysql"])
async def test_the_ten_steps_work(store: str, request: pytest.FixtureRequest, tmp_path: Path, sink: Sink) -> None:
    """C-148: every call succeeds and answers as documented."""
    sink.otherwise(Hang())
    arguments = ["--store", "sqlite:ksana.db"]
    if store != "sqlite":
        arguments = ["--store", request.getfixturevalue(f"fresh_{store}_database")()]
    steps = [line for line in TEN_STEPS.splitlines() if line and not line.startswith("#")]
    assert len(steps) == 10
    async with serving(tmp_path, *arguments) as node:
        assert await typed(steps[0], node, sink.url) == {"id": 1, "name": "t1"}
        [task] = await typed(steps[1], node, sink.url)
        assert (task["ID"], task["Name"], task["CronExpr"], task["Status"]) == (1, "t1", "*/20 * * * * *", "ENABLED")
        assert list(await typed(steps[2], node, sink.url)) == ["run_id"]
        # The run of a planned instant may have come in between; the first of them is under way either way.
        await sink.wait_for(1)
        listed = await typed(steps[3], node, sink.url)
        assert 1 in [run["ID"] for run in listed]
        run = await typed(steps[4], node, sink.url)
        assert (run["ID"], run["TaskID"], run["Status"], run["Attempt"]) == (1, 1, "RUNNING", 1)
        assert await typed(steps[5], node, sink.url) == {"run_id": 1, "status": "CANCELED"}
        assert await typed(steps[6], node, sink.url) == {"status": "DISABLED"}
        assert await typed(steps[7], node, sink.url) == {"status": "ENABLED"}
        assert await typed(steps[8], node, sink.url) == {"updated": True}
        assert (await node.call("GET", "/api/v1/tasks/1"))[1]["CronExpr"] == "*/10 * * * * *"
        assert await typed(steps[9], node, sink.url) == {"deleted": True}


async def test_a_callback_completes_the_circle_between_processes(tmp_path: Path, sink: Sink) -> None:
    """C-5, C-109, C-152: the address the target is told is one at which this very server answers."""
    sink.on("/work", Reply(202))
    async with serving(tmp_path) as node:
        body = {"name": "a", "cron_expr": "@yearly", "target_url": f"{sink.url}/work", "exec_type": "ASYNC"}
        _, made = await node.call("POST", "/api/v1/tasks", body)
        _, run = await node.call("POST", f"/api/v1/tasks/{made['id']}/trigger")
        [request] = await sink.wait_for(1)
        url = request.header("X-Callback-Url")
        assert url is not None
        assert url.startswith(f"{node.url}/api/v1/callbacks/")
        told = await node.call("POST", url.removeprefix(node.url), {"status": "SUCCESS", "data": {}})
        assert told == (200, {"run_id": run["run_id"], "final_status": "SUCCESS"})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"poll_interval: 1s ": "poll_interval: banana "}, "scheduler.poll_interval"),
        ({"batch_limit": "batch_limits"}, "did you mean scheduler.batch_limit"),
        ({"logging:\n  level: info": "logging:\n  level: loud"}, "logging.level"),
        ({"  request_timeout: 15s\n": "  request_timeout: 15s\n  body_log_max: 100\n"}, "executor.body_log_max"),
    ],
)
async def test_a_bad_file_stops_the_start_and_names_the_key(tmp_path: Path, changes: dict[str, str], said: str) -> None:
    """C-136, C-137: with a suggestion where one is near; nothing is truncated, so there is no key for it."""
    config_file(tmp_path, changes)
    async with command("serve", "--config", "config.yaml", directory=tmp_path) as process:
        assert await process.ended() != 0
        assert said in process.output
