"""X-Request-Id in and out: every request has one, the answer repeats it, and log lines can carry it."""

from __future__ import annotations

import os
import re
from contextvars import ContextVar
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADER: Final = b"x-request-id"
_ACCEPTED: Final = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_current: ContextVar[str] = ContextVar("ksana_request_id", default="")


def current_request_id() -> str:
    """The id of the request being answered by this task, or "" outside of one."""
    return _current.get()


class RequestIds:
    """ASGI middleware that takes the caller's id, or makes one where it is absent or unsafe to log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _given(scope) or os.urandom(12).hex().encode()

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (_HEADER, request_id)]
            await send(message)

        token = _current.set(request_id.decode())
        try:
            await self._app(scope, receive, send_with_id)
        finally:
            _current.reset(token)


def _given(scope: Scope) -> bytes | None:
    for name, value in scope["headers"]:
        if name == _HEADER and _ACCEPTED.fullmatch(value):
            return bytes(value)
    return None
