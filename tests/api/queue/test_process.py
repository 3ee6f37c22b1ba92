"""Real processes: a server hands items out, a worker of ours sees to them."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.cli.nodes import Node, command, serving

FUNCTIONS = """
def revalidate(item):
    if item["object_id"] == "cg_bad":
        raise ValueError("no evidence")
    return {"audit_event_id": "aud_7", "seen": item["object_id"]}

functions = {"cognition.revalidate": revalidate}
"""


def document(object_id: str) -> dict[str, Any]:
    run_at = (datetime.now(UTC) + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"object_type": "cognition", "object_id": object_id, "action": "revalidate", "run_at": run_at}


async def waiting_pull(node: Node) -> asyncio.StreamWriter:
    """A worker that waits for a minute, as its connection."""
    host = urlsplit(node.url)
    _, writer = await asyncio.open_connection(host.hostname, host.port)
    body = json.dumps({"worker_id": "gone", "queue": "mail", "wait_sec": 60}).encode()
    head = f"POST /scheduler/jobs/pull HTTP/1.1\r\nHost: {host.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    # Whoever is answered after it was asked after it.
    await node.call("GET", "/scheduler/stats")
    return writer


async def test_a_worker_sees_to_items_and_who_hangs_up_takes_none_along(tmp_path: Path) -> None:
    """S-37: the built-in worker, by the functions that are called like the types of the items."""
    (tmp_path / "handlers.py").write_text(FUNCTIONS)
    async with serving(tmp_path) as node:
        arguments = ("worker", "handlers:functions", "--queue", "governance", "--data-dir", "data")
        async with command(*arguments, directory=tmp_path) as worker:
            await worker.line("working for")
            _, good = await node.call("POST", "/scheduler/jobs", document("cg_123"))
            _, bad = await node.call("POST", "/scheduler/jobs", document("cg_bad"))
            path = f"/scheduler/jobs/{good['job_id']}"
            done = await node.until(path, lambda job: job["status"] == "succeeded")
            assert (done["audit_event_id"], done["output"]["seen"]) == ("aud_7", "cg_123")
            failed = await node.until(f"/scheduler/jobs/{bad['job_id']}", lambda job: job["attempt"] == 1)
            assert failed["last_error"] == "ValueError: no evidence"
            assert await worker.stop() == 0

        (await waiting_pull(node)).close()
        _, made = await node.call("POST", "/scheduler/jobs", {"queue": "mail", "delay_sec": 1})
        _, pulled = await node.call("POST", "/scheduler/jobs/pull", {"worker_id": "w", "queue": "mail", "wait_sec": 20})
        assert [job["job_id"] for job in pulled["jobs"]] == [made["job_id"]]

        stays = await waiting_pull(node)
        assert await node.process.stop() == 0
        stays.close()
    lines = [json.loads(line) for line in node.process.output.splitlines()]
    assert not [line for line in lines if line["level"] in ("WARNING", "ERROR")]
