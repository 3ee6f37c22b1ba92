"""The wire of programs that await. It belongs to the loop it is first used in."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple, TypeVar

from ksana.client.calls import Call, Conversation, Pages, Pause
from ksana.client.http1 import Place, Reading, encoded
from ksana.client.talks import Answer, Lost, Manners, Request, made

T = TypeVar("T")

_CHUNK: Final = 64 * 1024
_MOST_IDLE: Final = 10


class _Connection(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class LoopingWire:
    """Connections to one server, on a loop."""

    def __init__(
        self,
        place: Place,
        manners: Manners,
        timeout: float,
        tls: ssl.SSLContext | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.manners = manners
        self._place = place
        self._timeout = timeout
        self._tls = tls
        self._sleep = sleep
        self._idle: list[_Connection] = []

    async def make(self, described: Call[T] | Conversation[T]) -> T:
        """Have it done."""
        talk = made(described, self.manners)
        try:
            step = next(talk)
            while True:
                try:
                    heard = await (self._pause(step) if isinstance(step, Pause) else self._send(step))
                except Lost as lost:
                    step = talk.throw(lost)
                else:
                    step = talk.send(heard)
        except StopIteration as end:
            result: T = end.value
            return result

    async def each(self, pages: Pages[T]) -> AsyncIterator[T]:
        """Every item, page after page."""
        call: Call[list[T]] | None = pages.first
        while call is not None:
            items = await self.make(call)
            for item in items:
                yield item
            call = pages.next(call, items)

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().writer.close()
        # The loop tells transports of their end on its next turn.
        await asyncio.sleep(0)

    async def _pause(self, pause: Pause) -> float:
        if pause.seconds > 0:
            await self._sleep(pause.seconds)
        return asyncio.get_running_loop().time()

    async def _send(self, request: Request) -> Answer:
        data = encoded(request, self._place)
        limit = self._timeout + request.held_back
        reading = Reading()
        connection = self._quiet() if not request.is_fresh else None
        try:
            async with asyncio.timeout(limit):
                if connection is None:
                    connection = await self._connected()
                connection.writer.write(data)
                await connection.writer.drain()
                while not reading.is_whole:
                    reading.feed(await connection.reader.read(_CHUNK))
        except TimeoutError:
            raise Lost(f"no answer from {self._place} within {limit:g}s", was_sent=connection is not None) from None
        except OSError as error:
            raise Lost(f"the connection to {self._place} broke: {error}", was_sent=True) from None
        finally:
            if connection is not None:
                self._put_back(connection, reading)
        return reading.answer

    def _put_back(self, connection: _Connection, reading: Reading) -> None:
        if reading.may_reuse and len(self._idle) < _MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.writer.close()

    async def _connected(self) -> _Connection:
        place = self._place
        try:
            return _Connection(*await asyncio.open_connection(place.host, place.port, ssl=self._context()))
        except TimeoutError:
            raise
        except OSError as error:
            raise Lost(f"no connection to {place}: {error}", was_sent=False) from None

    def _context(self) -> ssl.SSLContext | None:
        if self._place.is_secure and self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls if self._place.is_secure else None

    def _quiet(self) -> _Connection | None:
        """A connection that is open and unused; the server closes those that were idle for long."""
        while self._idle:
            connection = self._idle.pop()
            if not (connection.reader.at_eof() or connection.writer.is_closing()):
                return connection
            connection.writer.close()
        return None
