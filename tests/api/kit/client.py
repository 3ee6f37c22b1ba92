"""A caller without a network: drives an ASGI app with one request and reads its answer whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Scope


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Client:
    """Calls an app; headers given here go with every request."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str] | None = None) -> None:
        self._app = app
        self._headers = {"host": "127.0.0.1:7100", **(headers or {})}

    async def call(
        self,
        method: str,
        target: str,
        *,
        json_body: Any = None,
        body: bytes | list[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        root_path: str = "",
        hangs_up: asyncio.Event | None = None,
    ) -> Answer:
        """One request; `target` is the path and query as they stand on the request line. The caller hangs up when that
        event is set, or else as soon as it has said everything."""
        chunks = body if isinstance(body, list) else [body or b""]
        sent = {**self._headers, **{name.lower(): value for name, value in (headers or {}).items()}}
        if json_body is not None:
            chunks = [json.dumps(json_body).encode()]
            sent.setdefault("content-type", "application/json")
        raw_path, _, query = target.partition("?")
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(raw_path),
            "raw_path": raw_path.encode(),
            "root_path": root_path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent.items()],
            "client": ("127.0.0.1", 5),
            "server": ("127.0.0.1", 7100),
        }
        waiting: list[Message] = [
            {"type": "http.request", "body": chunk, "more_body": index < len(chunks) - 1}
            for index, chunk in enumerate(chunks)
        ]
        got: list[Message] = []

        async def receive() -> Message:
            if not waiting and hangs_up is not None:
                await hangs_up.wait()
            return waiting.pop(0) if waiting else {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            got.append(message)

        await self._app(scope, receive, send)
        start, *rest = got
        answered = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        return Answer(start["status"], answered, b"".join(message["body"] for message in rest))

    async def get(self, target: str, **options: Any) -> Answer:
        """A GET."""
        return await self.call("GET", target, **options)

    async def post(self, target: str, json_body: Any = None, **options: Any) -> Answer:
        """A POST."""
        return await self.call("POST", target, json_body=json_body, **options)
