"""The demo: every sample is made, runs against the target beside it, and is told of; nothing is left behind."""

import re
import socket
from pathlib import Path

from tests.cli.nodes import Node
from tests.kit.processes import ksana


async def test_every_sample_runs_and_is_told_of(tmp_path: Path) -> None:
    async with ksana("demo", "--port", "0", "--no-open", directory=tmp_path) as process:
        greeting = await process.line(r"console (http://[\w.:]+)/console/ +data (\S+)")
        node = Node(process, greeting[1])
        await process.line("ksana init")
        _, jobs = await node.call("GET", "/api/v2/jobs?page_size=50&sort=name")
        by_name = {job["name"]: job["id"] for job in jobs["items"]}
        assert set(by_name) == {
            *("demo.broken", "demo.export", "demo.flaky", "demo.heartbeat", "demo.nightly", "demo.report", "demo.tick"),
        }
        for name in ("demo.heartbeat", "demo.report", "demo.tick", "demo.broken", "demo.export", "demo.flaky"):
            await node.call("POST", f"/api/v2/jobs/{by_name[name]}/runs")
        for line in (
            r"✓ demo\.heartbeat .* ms",
            r"✓ demo\.report",
            r"✓ demo\.tick",
            r"✕ demo\.broken .*no such customer",
            r"⇄ demo\.export +waits for its callback",
            r"↻ demo\.flaky +503 Service Unavailable",
            r"✓ demo\.mail welcome",
        ):
            await process.line(line)
        assert await process.stop() == 0
    assert f"'GET {node.url}/healthz' --url {node.url}\n" in process.output
    assert not Path(greeting[2]).exists()  # noqa: ASYNC240
    assert not re.search(r"Traceback|\"level\":\"ERROR\"(?!.*dead letter|.*demo\.broken)", process.output)


async def test_a_busy_port_is_named_and_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with ksana("demo", "--port", str(port), "--no-open", directory=tmp_path) as process:
            assert await process.ended() == 1
    assert f"cannot listen on 127.0.0.1:{port}" in process.output
    assert "Traceback" not in process.output
