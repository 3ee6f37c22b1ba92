"""One HTTP/1.1 connection, one exchange at a time, in bounded memory. Leaving an exchange closes the connection.

Written on the loop's transports rather than on an HTTP library because an attempt that is cancelled has to let go of
its connection at once, and one that fails has to know whether a byte of it was sent.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, cast

import httptools

from ksana.targets.http.answers import Answer
from ksana.targets.http.deadlines import Deadlines
from ksana.targets.http.known_heads import KnownHeads

_MOST_HEAD = 256 * 1024
# What may surround each byte of a chunked body: with one byte per chunk it is five, the rest is generosity.
_MOST_FRAMING = 16


class LostError(Exception):
    """The exchange ended without a whole answer; `partial` is what there was of it."""

    def __init__(self, detail: str, partial: Answer | None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.partial = partial


class LateError(LostError):
    """The time was up."""


class BrokenError(LostError):
    """The other side closed or reset the connection."""


class StoppedError(LostError):
    """This side gave up."""


class GarbledError(LostError):
    """The other side does not speak HTTP, or too much of it."""


Tell = Callable[[Answer | LostError], None]


class Connection(asyncio.Protocol):
    """A connection that is open, or was."""

    def __init__(self, deadlines: Deadlines, heads: KnownHeads) -> None:
        self.idle_since = 0.0
        self.is_lost = False
        self._loop = asyncio.get_running_loop()
        self._deadlines = deadlines
        self._heads = heads
        self._tell: Tell | None = None
        self._is_reusable = False
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no asyncio.Transport by inheritance.
        self._transport = cast(asyncio.Transport, transport)
        self._incoming = _incoming(transport.get_extra_info("socket").fileno())

    @property
    def is_reusable(self) -> bool:
        """Whether another exchange may begin, as far as this side has heard."""
        return self._is_reusable and not self.is_lost

    def is_quiet(self) -> bool:
        """Whether nothing has come in on an idle connection, not even its end, which the loop may not have seen yet."""
        return not self._incoming.poll(0)

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        self._is_reusable = False
        if self._tell is not None:
            self._fail(StoppedError("", self._partial()))
            self._conclude()
        self._transport.abort()

    def leave(self) -> None:
        """Close if an exchange is still under way; nothing is told of it any more."""
        if self._tell is not None:
            self._tell = None
            self._is_reusable = False
            self._deadlines.forget(self._alarm)
            self._transport.abort()

    async def exchange(self, request: bytes, *, is_head: bool, most: int, deadline: float) -> Answer:
        """Send a request and wait for its answer. LostError if there is none."""
        if self.is_lost:
            raise BrokenError("", None)
        waiter: asyncio.Future[Answer] = self._loop.create_future()
        self.ask(request, is_head, most, deadline, partial(_settle, waiter))
        try:
            return await waiter
        finally:
            # Only a caller that was cancelled leaves before the end.
            self.leave()

    def ask(self, request: bytes, is_head: bool, most: int, deadline: float, tell: Tell) -> None:
        """Send a request, and tell later, once, what came of it: an answer, of its body no more than `most` bytes, or
        how it was lost, at the latest at the loop's `deadline`. By then another exchange may begin, if any may."""
        self._is_head = is_head
        self._most = most
        self._received = 0
        self._kept = 0
        self._has_head = False
        self._is_done = False
        self._is_reusable = False
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._tell = tell
        self._alarm = self._deadlines.remember(deadline, self._expire)
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._tell is None:
            self.abort()
            return
        is_whole = not (self._received or self._is_head)
        if is_whole and (answer := self._heads.answer(data, self._most)) is not None:
            self._is_done = True
            self._said: Answer | LostError = answer
            self._is_reusable = not self._transport.get_write_buffer_size()
            self._conclude()
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._finish(reusable=False)
        except httptools.HttpParserError as error:
            self._fail(GarbledError(str(error), self._partial()))
        if not self._is_done and self._received > _MOST_HEAD + _MOST_FRAMING * self._kept:
            self._fail(GarbledError("it sends headers without end", self._partial()))
        if self._is_done:
            if is_whole and self._is_reusable and isinstance(self._said, Answer):
                self._heads.learn(data, self._said)
            self._conclude()

    def eof_received(self) -> None:
        # The transport closes now, but tells of it only on a later turn of the loop.
        self._is_reusable = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        if self._tell is None:
            return
        if exc is None and self._has_head and self._ends_with_connection():
            self._finish(reusable=False)
        else:
            self._fail(BrokenError(str(exc or ""), self._partial()))
        self._conclude()

    def on_message_begin(self) -> None:
        # A second answer to one request: whatever it is, the next request must not get it.
        if self._is_done:
            self._is_reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._status: int = self._parser.get_status_code()
        self._has_head = not _is_interim(self._status)
        if self._has_head and self._is_head:
            self._finish(reusable=self._parser.should_keep_alive())
            # The one that has read this head waits for the body it announces.
            self._parser = httptools.HttpResponseParser(self)

    def on_body(self, body: bytes) -> None:
        if self._is_done:
            self._is_reusable = False
            return
        self._body.append(body)
        self._kept += len(body)
        if self._kept > self._most:
            self._finish(reusable=False)

    def on_message_complete(self) -> None:
        if self._is_done:
            return
        if self._has_head:
            self._finish(reusable=self._parser.should_keep_alive())
        else:
            self._headers.clear()

    def _finish(self, *, reusable: bool) -> None:
        if self._is_done:
            return
        self._is_done = True
        # A request still being written when its answer is complete would run into the next one.
        self._is_reusable = reusable and not self._transport.get_write_buffer_size()
        self._said = self._answer()

    def _fail(self, error: LostError) -> None:
        if not self._is_done:
            self._is_done = True
            self._said = error

    def _expire(self) -> None:
        self._fail(LateError("", self._partial()))
        self._conclude()

    def _conclude(self) -> None:
        """Tell what came of it, when all that came with it was read: it may be that another exchange begins at once."""
        tell, self._tell = self._tell, None
        assert tell is not None
        self._deadlines.forget(self._alarm)
        # Out of time, garbled or at its end. Nothing more may come of this connection.
        if not self._is_reusable:
            self._transport.abort()
        tell(self._said)

    def _partial(self) -> Answer | None:
        return self._answer() if self._has_head else None

    def _answer(self) -> Answer:
        headers: dict[str, str] = {}
        repeated: dict[str, list[str]] = {}
        for raw_name, raw_value in self._headers:
            name = raw_name.decode("latin-1").lower()
            try:
                value = raw_value.decode()
            except UnicodeDecodeError:
                value = raw_value.decode("latin-1")
            if name in headers:
                repeated.setdefault(name, [headers[name]]).append(value)
            else:
                headers[name] = value
        for name, values in repeated.items():
            headers[name] = ", ".join(values)
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        is_longer = self._kept > self._most
        return Answer(self._status, headers, body[: self._most] if is_longer else body, is_longer)

    def _ends_with_connection(self) -> bool:
        return not any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in self._headers)


def _settle(waiter: asyncio.Future[Answer], said: Answer | LostError) -> None:
    if waiter.done():
        return
    if isinstance(said, LostError):
        waiter.set_exception(said)
    else:
        waiter.set_result(said)


class _Incoming(Protocol):
    """Whether there is something to read on a connection."""

    def poll(self, timeout: float, /) -> Sequence[object]: ...


class _Selected:
    """The same where there is no poll."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def poll(self, timeout: float, /) -> Sequence[object]:
        return select.select([self._fd], [], [], timeout)[0]


def _incoming(fd: int) -> _Incoming:
    if not hasattr(select, "poll"):  # Windows
        return _Selected(fd)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return poll


def _is_interim(status: int) -> bool:
    return status < 200 and status != 101
