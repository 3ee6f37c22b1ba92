"""A Ksana app inside another web app. Whoever mounts an app passes on requests and nothing of its own life, so the app
is started by the one that mounts it, by a server that serves it alone, or else by the first request."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from ipaddress import ip_address
from typing import NamedTuple, Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from ksana.api.kit import KeyRing
from ksana.api.kit.errors import ErrorStyle, Forbidden, body_of
from ksana.api.kit.wire import encode
from ksana.api.stored import StoredKeys
from ksana.app import Program, given_keys
from ksana.engine.engine import Engine

_log = logging.getLogger("ksana")


class Live(NamedTuple):
    """What an app that runs consists of."""

    program: Program
    engine: Engine


class App(Protocol):
    """What can be mounted: runs while `running()` is entered, and is `live` then."""

    live: Live | None

    def running(self) -> AbstractAsyncContextManager[object]: ...


class _Built(NamedTuple):
    """The HTTP side of an app that runs, and what lets a request in."""

    web: ASGIApp
    keys: KeyRing
    is_insecure: bool


class Mounted:
    """The ASGI app of an app."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._keeper: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()
        self._live: Live | None = None
        self._built: _Built | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._last(receive, send)
            return
        live = self._app.live or await self._begun_by_a_request()
        built = self._of(live)
        if not built.is_insecure and _is_exposed(scope) and await built.keys.is_open():
            await _refuse(scope, send)
            return
        await built.web(scope, receive, send)

    async def _last(self, receive: Receive, send: Send) -> None:
        """Run for as long as the server that serves this app alone."""
        async with AsyncExitStack() as stack:
            await receive()
            try:
                await stack.enter_async_context(self._app.running())
            except Exception as error:
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                raise
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _begun_by_a_request(self) -> Live:
        """Start for a request that finds nothing running, and wait until it does."""
        if self._keeper is None or self._keeper.done():
            _log.warning(
                "started by a request; to have schedules from the start, and what is under way finished at the end, "
                "enter `async with app.running():` in the lifespan of the app that mounts this one"
            )
            self._begun = asyncio.Event()
            self._keeper = asyncio.create_task(self._keep(self._begun))
        begun = asyncio.ensure_future(self._begun.wait())
        await asyncio.wait({begun, self._keeper}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        if self._keeper.done():
            self._keeper.result()
        assert self._app.live is not None
        return self._app.live

    async def _keep(self, begun: asyncio.Event) -> None:
        async with self._app.running():
            begun.set()
            # Whoever ends the loop cancels what is left in it.
            await asyncio.Event().wait()

    def _of(self, live: Live) -> _Built:
        if self._built is None or self._live is not live:
            settings = live.program.settings
            keys = KeyRing(StoredKeys(live.program.store, given_keys(settings)), time.monotonic)
            self._live, self._built = live, _Built(live.program.web(live.engine), keys, settings.server.insecure)
        return self._built


def _is_exposed(scope: Scope) -> bool:
    """Whether the request came in at an address that others can reach."""
    server = scope.get("server")
    try:
        return server is not None and not ip_address(server[0]).is_loopback
    except ValueError:
        # A name or a socket in the file system: nobody listens at either.
        return False


async def _refuse(scope: Scope, send: Send) -> None:
    if scope["type"] != "http":
        await send({"type": "websocket.close", "code": 1008})
        return
    error = Forbidden(
        "anyone who reaches this address could run jobs: make a key with `ksana key create`, or set KSANA_API_KEYS"
    )
    body = encode(body_of(error, ErrorStyle.TEXT, ""))
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
