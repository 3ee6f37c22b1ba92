"""Answers without an end: pieces are sent as they come, until there are no more or the caller hangs up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

EVENT_STREAM = "text/event-stream"


class Stream(Response):
    """Sends what `pieces` gives, which is not begun for a caller who wants no body. When the caller is gone it is ended
    at the point where it waits."""

    def __init__(self, pieces: AsyncGenerator[bytes, None], media_type: str, headers: Mapping[str, str]) -> None:
        super().__init__(media_type=media_type, headers=headers)
        self._pieces = pieces
        # How long it is nobody knows.
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if scope["method"] != "HEAD":
            sending = asyncio.ensure_future(self._send(send))
            gone = asyncio.ensure_future(_hung_up(receive))
            try:
                await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
                sending.cancel()
                with suppress(asyncio.CancelledError):
                    await sending
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send) -> None:
        async with aclosing(self._pieces) as pieces:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
