"""What the samples call: a small HTTP server on loopback that answers well, badly, late, or later by a callback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ksana.client import AsyncClient, ClientError

EXPORT_TAKES: Final = 6.0
"""Seconds between taking an export on and calling back."""


class Target:
    """Answers by path: `/ok`, `/flaky` (every third call succeeds), `/broken`, `/export` (calls back)."""

    def __init__(self, export_takes: float) -> None:
        self._export_takes = export_takes
        self._flaky = 0
        self._later: set[asyncio.Task[None]] = set()

    def app(self) -> Starlette:
        answers = {"/ok": self.ok, "/flaky": self.flaky, "/broken": self.broken, "/export": self.export}
        return Starlette(routes=[Route(path, answer, methods=["GET", "POST"]) for path, answer in answers.items()])

    async def ok(self, request: Request) -> Response:
        return JSONResponse({"ok": True, "run": request.headers.get("x-ksana-run-id")})

    async def flaky(self, request: Request) -> Response:
        self._flaky += 1
        if self._flaky % 3:
            return JSONResponse({"error": "the upstream is warming up"}, 503)
        return JSONResponse({"ok": True, "tries": 3})

    async def broken(self, request: Request) -> Response:
        return JSONResponse({"error": "no such customer: 4711"}, 422)

    async def export(self, request: Request) -> Response:
        task = asyncio.create_task(self._call_back(request.headers["x-callback-url"]))
        self._later.add(task)
        task.add_done_callback(self._later.discard)
        return JSONResponse({"accepted": True}, 202)

    async def _call_back(self, url: str) -> None:
        await asyncio.sleep(self._export_takes)
        base, _, path = url.partition("/api/")
        async with AsyncClient(base) as client:
            try:
                await client.ask("POST", f"/api/{path}", {"status": "SUCCESS", "data": {"rows": 12_400}})
            except ClientError:
                # The run was ended by hand meanwhile, or the server stops.
                return

    async def close(self) -> None:
        for task in self._later:
            task.cancel()
        await asyncio.gather(*self._later, return_exceptions=True)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(export_takes: float = EXPORT_TAKES) -> AsyncIterator[str]:
    """The target at work; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    target = Target(export_takes)
    server = _Server(
        uvicorn.Config(target.app(), log_config=None, access_log=False, lifespan="off", timeout_keep_alive=60)
    )
    running = asyncio.create_task(server.serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        await target.close()
        server.should_exit = True
        await running
        listener.close()
