"""The API of an app inside another web app, under a path of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.types import ASGIApp

from ksana import Ksana
from tests.cli.nodes import BARE_NAMES, Node
from tests.kit.processes import DEADLINE, program

HOST = """
import uvicorn
from starlette.applications import Starlette

from ksana import Ksana

app = Ksana("sqlite:shop.db")

@app.every("100ms")
def ping():
    return "pong"

web = Starlette()
web.mount("/ksana", app.asgi())
uvicorn.run(web, port=0)
"""


async def call(
    web: ASGIApp, path: str, body: Any = None, server: tuple[str, int] | None = ("127.0.0.1", 80)
) -> tuple[int, Any]:
    """A request, as a server passes it on."""
    data = b"" if body is None else json.dumps(body).encode()
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": data, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
    scope = {
        "type": "http",
        "method": "GET" if body is None else "POST",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "server": server,
        "client": ("127.0.0.1", 1),
        "http_version": "1.1",
        "scheme": "http",
    }
    await web(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


def shop(tmp_path: Path, **settings: Any) -> Ksana:
    app = Ksana(f"sqlite:///{tmp_path}/shop.db", **settings)
    app.every("1h", name="tick")(lambda: None)
    return app


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def test_a_mounted_app_runs_for_as_long_as_the_one_that_mounts_it(tmp_path: Path) -> None:
    app = shop(tmp_path)

    @asynccontextmanager
    async def lifespan(web: Starlette) -> AsyncIterator[None]:
        async with app.running():
            yield

    web = Starlette(lifespan=lifespan)
    web.mount("/ksana", app.asgi())
    async with web.router.lifespan_context(web):
        status, page = await call(web, "/ksana/api/v2/jobs")
        assert (status, [job["name"] for job in page["items"]]) == (200, ["tick"])
        status, made = await call(web, "/ksana/api/v2/jobs", {"name": "more", "target": {"kind": "noop"}})
        assert (status, made["surface"]) == (201, "v2")
        assert (await call(web, "/ksana/nowhere"))[0] == 404
    assert app.live is None


async def test_served_alone_it_follows_the_life_of_its_server(tmp_path: Path) -> None:
    app = shop(tmp_path)
    web = app.asgi()
    told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    said: asyncio.Queue[Any] = asyncio.Queue()
    living = asyncio.create_task(_awaited(web({"type": "lifespan"}, told.get, said.put)))
    async with asyncio.timeout(DEADLINE):
        told.put_nowait({"type": "lifespan.startup"})
        assert await said.get() == {"type": "lifespan.startup.complete"}
        assert (await call(web, "/readyz"))[0] == 200
        told.put_nowait({"type": "lifespan.shutdown"})
        assert await said.get() == {"type": "lifespan.shutdown.complete"}
        await living
    assert app.live is None


async def _awaited(work: Any) -> None:
    await work


async def test_one_that_cannot_start_says_so_to_its_server(tmp_path: Path) -> None:
    said: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        said.append(message)

    with pytest.raises(Exception, match="wrokers"):
        await shop(tmp_path, wrokers=3).asgi()({"type": "lifespan"}, receive, send)
    assert said[0]["type"] == "lifespan.startup.failed"
    assert "wrokers" in said[0]["message"]


async def test_beyond_loopback_a_key_is_needed(tmp_path: Path) -> None:
    app = shop(tmp_path)
    async with app.running():
        web = app.asgi()
        status, error = await call(web, "/api/v2/jobs", server=("192.0.2.1", 80))
        assert (status, error["code"]) == (403, "FORBIDDEN")
        assert "ksana key create" in error["message"]
        assert (await call(web, "/api/v2/jobs", server=("::1", 80)))[0] == 200
        assert (await call(web, "/api/v2/jobs", server=None))[0] == 200
    open_app = shop(tmp_path, insecure=True)
    async with open_app.running():
        assert (await call(open_app.asgi(), "/api/v2/jobs", server=("192.0.2.1", 80)))[0] == 200


async def test_nobody_has_started_it_so_the_first_request_does(tmp_path: Path) -> None:
    (tmp_path / "host.py").write_text(HOST)
    bare = dict.fromkeys(BARE_NAMES, "")
    async with program(sys.executable, "host.py", directory=tmp_path, environment=bare) as process:
        node = Node(process, await process.url())
        many = [node.call("GET", "/ksana/api/v2/jobs") for _ in range(4)]
        answers = await asyncio.gather(*many)
        assert {status for status, _ in answers} == {200}
        await node.until("/ksana/api/v2/runs?state=SUCCESS", lambda seen: seen["total"] >= 1)
        assert "enter `async with app.running():`" in process.output
        assert "Traceback" not in process.output
