"""A wire between a program and its database that can be cut and mended."""

import asyncio
from contextlib import suppress
from types import TracebackType


class Proxy:
    """Forwards a loopback port of its own to a server; `cut` drops every connection and refuses new ones."""

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def __aenter__(self) -> "Proxy":
        await self.mend()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.cut()

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            there_reader, there_writer = await asyncio.open_connection(*self._to)
            self._writers.add(there_writer)
            await asyncio.gather(_pump(reader, there_writer), _pump(there_reader, writer))
        finally:
            self._writers.discard(writer)
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, OSError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    with suppress(ConnectionError, OSError):
        writer.close()
