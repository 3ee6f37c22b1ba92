"""An app that joins a server by its address: its handlers pull over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ksana import Ack, AsyncClient, Item, Ksana, Retry, Run
from ksana.domain.errors import InvalidArgument, NotFound
from tests.cli.nodes import command, serving
from tests.kit.processes import DEADLINE

GUEST = """
from ksana import Ksana

app = Ksana("{url}")

@app.handler("mail")
def mail(item):
    return {{"to": item.payload}}

@app.handler("sms")
def sms(item):
    return "sent"
"""


async def until(k: AsyncClient, item: Item, status: str) -> Item:
    async with asyncio.timeout(DEADLINE):
        while (seen := await k.queue.get(item)).status != status:
            pass
    return seen


async def test_handlers_pull_over_http_and_say_there_what_came_of_it(tmp_path: Path) -> None:
    found: list[Any] = []
    async with serving(tmp_path) as node, AsyncClient(node.url) as k:
        app = Ksana(node.url)

        @app.handler("mail", concurrency=2)
        async def mail(item: Item, run: Run) -> Any:
            found.append((item.payload, item.attempt, item.progress, run.attempt))
            match item.payload:
                case "again" if item.attempt == 0:
                    run.save({"sent": 1})
                    raise Retry("1ms", "half-way")
                case "never":
                    raise ValueError("broken")
            return Ack(output={"sent": item.payload}, audit_event_id="aud_1", next_action_at="2031-01-01T00:00:00Z")

        async with app.handling():
            first = await k.queue.enqueue("mail", "hello")
            done = await until(k, first, "succeeded")
            assert (done.output, done.audit_event_id) == ({"sent": "hello"}, "aud_1")
            assert done.next_action_at is not None and done.next_action_at.year == 2031
            await until(k, await k.queue.enqueue("mail", "again"), "succeeded")
            dead = await until(k, await k.queue.enqueue("mail", "never", max_attempts=1), "dead_letter")
            assert dead.last_error == "ValueError: broken"
        # Whoever stops waits for nobody on the other side, and takes nothing with it.
        waiting = await k.queue.enqueue("mail", "hello")
        assert (await k.queue.get(waiting)).status == "queued"
    assert found == [("hello", 0, None, 1), ("again", 0, None, 1), ("again", 1, {"sent": 1}, 2), ("never", 0, None, 1)]


async def test_what_the_server_does_not_take_is_not_done_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as node, AsyncClient(node.url) as k:
        app = Ksana(node.url)

        @app.handler("mail")
        async def mail(item: Item) -> Any:
            return Ack(audit_event_id="a" * 256)

        async with app.handling():
            over = await until(k, await k.queue.enqueue("mail"), "failed")
            assert "audit_event_id" in (over.last_error or "")


async def test_a_worker_that_joins_a_server_works_for_the_queues_it_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path) as node, AsyncClient(node.url) as k:
        (tmp_path / "guest.py").write_text(GUEST.format(url=node.url))
        async with command("worker", "guest:app", "--queue", "mail", directory=tmp_path) as worker:
            await worker.line(f"working for {node.url}")
            text = await k.queue.enqueue("sms")
            seen = await until(k, await k.queue.enqueue("mail", "x"), "succeeded")
            assert (seen.output, (await k.queue.get(text)).status) == ({"to": "x"}, "queued")
            assert await worker.stop() == 0
        assert "stopped" in worker.output


async def test_what_needs_a_store_is_refused_where_only_a_server_is_named() -> None:
    app = Ksana("http://127.0.0.1:7100")
    with pytest.raises(InvalidArgument, match=r"work\(\)"):
        app.serve()
    with pytest.raises(InvalidArgument, match=r"handling\(\)"):
        app.asgi()
    with pytest.raises(InvalidArgument, match=r"handling\(\)"):
        async with app.running():
            pass
    with pytest.raises(NotFound, match="handler"):
        app.work()
    app.every("1h", name="tick")(lambda: None)
    with pytest.raises(InvalidArgument, match=r"\(tick\) are kept in a store"):
        app.work()
    with pytest.raises(InvalidArgument, match="running"):
        async with Ksana("sqlite:x.db").handling():
            pass
