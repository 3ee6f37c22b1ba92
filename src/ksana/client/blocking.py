"""The wire of programs that block. Threads may share it: each exchange has a connection to itself."""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Final, TypeVar

from ksana.client.calls import Call, Conversation, Pages, Pause
from ksana.client.errors import Unreachable
from ksana.client.http1 import Place, Reading, encoded
from ksana.client.talks import Answer, Lost, Manners, Request, error_of, made

T = TypeVar("T")

_CHUNK: Final = 64 * 1024
_MOST_IDLE: Final = 10


class BlockingWire:
    """Connections to one server, on sockets."""

    def __init__(
        self,
        place: Place,
        manners: Manners,
        timeout: float,
        tls: ssl.SSLContext | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.manners = manners
        self._place = place
        self._timeout = timeout
        self._tls = tls
        self._sleep = sleep
        self._idle: deque[socket.socket] = deque(maxlen=_MOST_IDLE)

    def make(self, described: Call[T] | Conversation[T]) -> T:
        """Have it done."""
        talk = made(described, self.manners)
        try:
            step = next(talk)
            while True:
                try:
                    heard = self._pause(step) if isinstance(step, Pause) else self._send(step)
                except Lost as lost:
                    step = talk.throw(lost)
                else:
                    step = talk.send(heard)
        except StopIteration as end:
            result: T = end.value
            return result

    def each(self, pages: Pages[T]) -> Iterator[T]:
        """Every item, page after page."""
        call: Call[list[T]] | None = pages.first
        while call is not None:
            items = self.make(call)
            yield from items
            call = pages.next(call, items)

    def pieces(self, call: Call[bytes], silence: float) -> Iterator[bytes]:
        """The body of an answer as it comes, which may take for ever; the end of the generator ends the connection.
        Unreachable once nothing has come for `silence` seconds: a server says now and then that it is still there."""
        headers = {**self.manners.headers, **call.headers}
        request = Request(call.method, call.target, headers, None, is_fresh=True, held_back=0)
        try:
            connection = self._connected()
        except Lost as lost:
            raise Unreachable(str(lost), maybe_done=False) from None
        reading = Reading()
        with closing(connection):
            try:
                connection.settimeout(silence)
                connection.sendall(encoded(request, self._place))
                while not reading.is_whole:
                    reading.feed(connection.recv(_CHUNK))
                    if reading.has_head and 200 <= reading.answer.status < 300:
                        yield reading.taken()
            except (Lost, OSError) as error:
                raise Unreachable(f"the stream from {self._place} broke: {error}", maybe_done=False) from None
        if not 200 <= reading.answer.status < 300:
            raise error_of(reading.answer)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _pause(self, pause: Pause) -> float:
        if pause.seconds > 0:
            self._sleep(pause.seconds)
        return time.monotonic()

    def _send(self, request: Request) -> Answer:
        data = encoded(request, self._place)
        limit = self._timeout + request.held_back
        deadline = time.monotonic() + limit
        connection = self._quiet() if not request.is_fresh else None
        if connection is None:
            connection = self._connected()
        reading = Reading()
        try:
            connection.settimeout(limit)
            connection.sendall(data)
            while not reading.is_whole:
                # Zero would mean not to wait at all, and not to say that time is up.
                connection.settimeout(max(deadline - time.monotonic(), 0.001))
                reading.feed(connection.recv(_CHUNK))
        except TimeoutError:
            raise Lost(f"no answer from {self._place} within {limit:g}s", was_sent=True) from None
        except OSError as error:
            raise Lost(f"the connection to {self._place} broke: {error}", was_sent=True) from None
        finally:
            if reading.may_reuse and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
            else:
                connection.close()
        return reading.answer

    def _connected(self) -> socket.socket:
        place = self._place
        try:
            plain = socket.create_connection((place.host, place.port), self._timeout)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not place.is_secure:
                return plain
            try:
                return self._context().wrap_socket(plain, server_hostname=place.host)
            except BaseException:
                plain.close()
                raise
        except OSError as error:
            raise Lost(f"no connection to {place}: {error}", was_sent=False) from None

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    def _quiet(self) -> socket.socket | None:
        """A connection that is open and unused; the server closes those that were idle for long."""
        with suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if not select.select([connection], [], [], 0)[0]:
                    return connection
                connection.close()
        return None
