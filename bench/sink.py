"""A server that answers every request with an empty 200, in a process of its own: only the caller is measured."""

from __future__ import annotations

import asyncio
import multiprocessing
import re
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import cast

import uvloop

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class _Answering(asyncio.Protocol):
    """Reads no more of a request than where it ends."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no asyncio.Transport by inheritance.
        self._transport = cast(asyncio.Transport, transport)
        self._unread = b""

    def data_received(self, data: bytes) -> None:
        unread, answers = self._unread + data, 0
        while (end := _end_of_first(unread)) is not None:
            unread = unread[end:]
            answers += 1
        self._unread = unread
        if answers:
            self._transport.write(_ANSWER * answers)


def _end_of_first(data: bytes) -> int | None:
    head = data.find(b"\r\n\r\n")
    if head < 0:
        return None
    length = _LENGTH.search(data, 0, head + 2)
    end = head + 4 + (int(length[1]) if length else 0)
    return end if end <= len(data) else None


@contextmanager
def running_sink() -> Iterator[str]:
    """The URL of a sink that lives as long as the block."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    # The other end now lives in the child alone: if that dies before it says its port, we hear of it and do not wait.
    theirs.close()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/sink"
    finally:
        process.terminate()
        process.join()


def _serve(port: Connection) -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(serve())
