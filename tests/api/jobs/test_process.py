"""A real server with the settings of the document: its defaults reach the jobs, it logs, drains and comes back."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

from tests.cli.nodes import Node, serving
from tests.kit.processes import DEADLINE
from tests.kit.sink import Hang, Reply, Sink

EVERY = {"kind": "every", "every": "200ms"}
HOURLY = {"kind": "every", "every": "1h"}


async def test_a_server_of_the_document_from_start_to_stop_and_back(tmp_path: Path, sink: Sink) -> None:
    """K-1, K-6, K-11, K-28, K-81, K-82, K-87, K-88, K-103: no credentials, no other service, one process."""
    settings = {
        "DATA_DIR": "kept",
        "WORKERS": "2",
        "DEFAULT_TIMEOUT": "7s",
        "MAX_RETRIES": "1",
        "RETRY_BACKOFF": "20ms",
    }
    async with serving(tmp_path, environment=settings) as node:
        assert (await node.call("GET", "/health"))[0] == 200
        ticking = await made(node, name="tick", http={"url": sink.url + "/tick"}, schedule=EVERY)
        assert (ticking["timeout"], ticking["max_retries"], ticking["retry_backoff"]) == ("7s", 1, "20ms")
        await sink.wait_for(3, path="/tick")
        await node.call("POST", f"/jobs/{ticking['id']}/pause")
        failing = await made(node, name="fail", http={"url": sink.on("/fail", Reply(500))}, schedule=HOURLY)
        await node.call("POST", f"/jobs/{failing['id']}/run-now")
        seen = await node.until(f"/jobs/{failing['id']}", lambda job: job["last_status"] != "")
        assert (seen["last_status"], len(sink.to("/fail"))) == ("failed", 2)
        gate = asyncio.Event()
        slow = await made(node, name="slow", http={"url": sink.on("/slow", Reply(after=gate))}, schedule=HOURLY)
        await node.call("POST", f"/jobs/{slow['id']}/run-now")
        await sink.wait_for(1, path="/slow")
        os.kill(node.process.pid, signal.SIGINT)
        await node.process.line("stopping")
        gate.set()
        assert await node.process.ended() == 0
        lines = [json.loads(line) for line in node.process.output.splitlines()]
    assert (tmp_path / "kept").is_dir()
    [failed] = [line for line in lines if line.get("name") == "fail" and line.get("status") == "FAILED"]
    assert {"ts", "level", "job_id", "name", "status", "latency_ms", "error"} <= failed.keys()
    assert failed["schedule_id"] == failing["id"]
    assert not [line for line in lines if line["level"] == "DEBUG"]
    async with serving(tmp_path, environment={"DATA_DIR": "kept"}) as node:
        jobs = {job["name"]: job for job in (await node.call("GET", "/jobs"))[1]}
        assert {name: job["last_status"] for name, job in jobs.items()} == {
            "tick": "paused",
            "fail": "failed",
            "slow": "success",
        }
        assert (jobs["tick"]["timeout"], jobs["tick"]["enabled"], jobs["fail"]["last_error"]) == (
            "7s",
            False,
            seen["last_error"],
        )


async def test_a_stopping_server_does_not_wait_for_ever(tmp_path: Path, sink: Sink) -> None:
    """K-87: a call that never ends is canceled at the limit; LOG_LEVEL=debug says more (K-86)."""
    async with serving(tmp_path, environment={"KSANA_GRACE": "100ms", "LOG_LEVEL": "debug"}) as node:
        stuck = await made(node, http={"url": sink.on("/", Hang())}, schedule=HOURLY, timeout="1h")
        await node.call("POST", f"/jobs/{stuck['id']}/run-now")
        await sink.wait_for(1)
        assert await node.process.stop(DEADLINE) == 0
        assert '"DEBUG"' in node.process.output


async def made(node: Node, **said: Any) -> Any:
    status, job = await node.call("POST", "/jobs", said)
    assert status == 201, job
    return job
