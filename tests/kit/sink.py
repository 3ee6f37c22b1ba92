"""An HTTP server in the test's own loop that records every request and answers as it is told, well or badly.

Nothing here waits for a while: a delayed answer waits for an event the test sets, and a test waits for the
sink with `wait_for`, which fails at its deadline and says what had arrived.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import cast
from urllib.parse import unquote, urlsplit

import httptools
import msgspec

DEADLINE = 10.0

_PHRASES = {
    200: "OK",
    202: "Accepted",
    204: "No Content",
    302: "Found",
    404: "Not Found",
    429: "Too Many Requests",
}


class Request(msgspec.Struct, frozen=True):
    """A request as it came in."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    connection: int
    """Which connection brought it, counted from 1: equal numbers mean that one was reused."""

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> str:
        return urlsplit(self.target).query

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def json(self) -> object:
        return msgspec.json.decode(self.body)


class Reply(msgspec.Struct, frozen=True):
    """An ordinary answer; `after` holds it back until the test sets the event."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}
    after: asyncio.Event | None = None
    close: bool = False
    """Close the connection afterwards, unannounced, as a server does whose keep-alive ran out."""


class Hang(msgspec.Struct, frozen=True):
    """Read the request and never answer."""


class Drip(msgspec.Struct, frozen=True):
    """Answer with a body in pieces, each sent when `next_piece` is set (it is cleared again); then hang."""

    pieces: Sequence[bytes]
    next_piece: asyncio.Event | None = None
    status: int = 200
    announced_length: int = 1_000_000


class Flood(msgspec.Struct, frozen=True):
    """Answer with a body without end, as fast as the caller takes it."""

    status: int = 200
    piece: bytes = b"x" * 65_536


class Drop(msgspec.Struct, frozen=True):
    """Close the connection without an answer; `abort` resets it instead."""

    abort: bool = False


class Raw(msgspec.Struct, frozen=True):
    """Send these bytes, whatever they are, and close."""

    data: bytes = b"\x00\xffthis is no HTTP\r\n\r\n"


Behaviour = Reply | Hang | Drip | Flood | Drop | Raw
Answer = Behaviour | Callable[[Request], Behaviour]


class Sink:
    """The server: `async with Sink() as sink`, then `sink.url`, `sink.on(...)`, `await sink.wait_for(n)`."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.replied: list[Request] = []
        self.accepted = 0
        """How many connections have been opened so far."""
        self.open: set[_Connection] = set()
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._answers: dict[str, list[Answer]] = {}
        self._default: Answer = Reply()
        self._waiters: set[asyncio.Event] = set()

    async def __aenter__(self) -> "Sink":
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self.open):
            connection.abort()
        await self.wait_until(lambda: not self.open, "every connection to close")
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def count(self) -> int:
        return len(self.requests)

    def on(self, path: str, *answers: Answer) -> str:
        """Answer this path with these, one after the other, the last for ever; give its URL."""
        self._answers[path] = list(answers)
        return self.url + path

    def otherwise(self, answer: Answer) -> None:
        """Answer every other path with this; an empty 200 unless told."""
        self._default = answer

    def to(self, path: str) -> list[Request]:
        """The requests this path has had."""
        return [request for request in self.requests if request.path == path]

    async def wait_for(self, count: int, timeout: float = DEADLINE, path: str | None = None) -> list[Request]:
        """Wait until there have been so many requests, to this path if given, and give them."""

        def seen() -> list[Request]:
            return self.requests if path is None else self.to(path)

        await self.wait_until(lambda: len(seen()) >= count, f"{count} requests to {path or 'any path'}", timeout)
        return list(seen())

    async def wait_until(self, is_so: Callable[[], bool], what: str, timeout: float = DEADLINE) -> None:
        """Wait until something about the sink is so; asked again at every request, reply, connect and disconnect."""
        changed = asyncio.Event()
        self._waiters.add(changed)
        try:
            async with asyncio.timeout(timeout):
                while not is_so():
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            seen = [f"{request.method} {request.target}" for request in self.requests]
            raise AssertionError(
                f"waited {timeout:g} s for {what}; requests: {seen}, open connections: {len(self.open)}"
            ) from None
        finally:
            self._waiters.discard(changed)

    def _answer_to(self, request: Request) -> Behaviour:
        answers = self._answers.get(request.path)
        if not answers:
            return _behaviour(self._default, request)
        return _behaviour(answers.pop(0) if len(answers) > 1 else answers[0], request)

    def _note(self) -> None:
        for waiter in self._waiters:
            waiter.set()


class _Connection(asyncio.Protocol):
    """One connection; requests are answered in the order in which they came, as pipelining asks."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._parser = httptools.HttpRequestParser(self)
        self._requests: asyncio.Queue[Request] = asyncio.Queue()
        self._writable = asyncio.Event()
        self._writable.set()
        self._start_over()

    def abort(self) -> None:
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._sink.accepted += 1
        self._number = self._sink.accepted
        self._sink.open.add(self)
        self._sink._note()
        self._answering = asyncio.get_running_loop().create_task(self._answer_all())

    def connection_lost(self, exc: Exception | None) -> None:
        self._answering.cancel()
        self._sink.open.discard(self)
        self._sink._note()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.abort()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        request = Request(
            method=self._parser.get_method().decode("ascii"),
            target=self._target.decode("latin-1"),
            headers=tuple(self._headers),
            body=b"".join(self._body),
            connection=self._number,
        )
        self._start_over()
        self._sink.requests.append(request)
        self._requests.put_nowait(request)
        self._sink._note()

    def _start_over(self) -> None:
        self._target = b""
        self._headers: list[tuple[str, str]] = []
        self._body: list[bytes] = []

    async def _answer_all(self) -> None:
        while True:
            request = await self._requests.get()
            match self._sink._answer_to(request):
                case Reply() as reply:
                    await self._reply(request, reply)
                case Drip() as drip:
                    await self._drip(drip)
                case Flood() as flood:
                    await self._flood(flood)
                case Raw(data):
                    self._transport.write(data)
                    self._transport.close()
                case Drop(abort):
                    self._transport.abort() if abort else self._transport.close()
                case Hang():
                    await asyncio.Event().wait()

    async def _reply(self, request: Request, reply: Reply) -> None:
        if reply.after is not None:
            await reply.after.wait()
        body = b"" if request.method == "HEAD" or reply.status in (204, 304) else reply.body
        headers = dict(reply.headers)
        if reply.status not in (204, 304) and not _names(headers) & {"content-length", "transfer-encoding"}:
            headers["Content-Length"] = str(len(reply.body))
        self._transport.write(_head(reply.status, headers) + body)
        self._sink.replied.append(request)
        self._sink._note()
        asked_to_close = (request.header("Connection") or "").lower() == "close"
        announced = any(k.lower() == "connection" and v.lower() == "close" for k, v in headers.items())
        if reply.close or asked_to_close or announced:
            self._transport.close()

    async def _drip(self, drip: Drip) -> None:
        self._transport.write(_head(drip.status, {"Content-Length": str(drip.announced_length)}))
        for piece in drip.pieces:
            if drip.next_piece is not None:
                await drip.next_piece.wait()
                drip.next_piece.clear()
            self._transport.write(piece)
        await asyncio.Event().wait()

    async def _flood(self, flood: Flood) -> None:
        self._transport.write(_head(flood.status, {"Transfer-Encoding": "chunked"}))
        piece = b"%x\r\n%b\r\n" % (len(flood.piece), flood.piece)
        while True:
            await self._writable.wait()
            self._transport.write(piece)
            # A caller that reads as fast as we write would otherwise never get the loop back.
            await asyncio.sleep(0)


def _behaviour(answer: Answer, request: Request) -> Behaviour:
    return answer if isinstance(answer, Behaviour) else answer(request)


def _names(headers: Mapping[str, str]) -> set[str]:
    return {name.lower() for name in headers}


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {_PHRASES.get(status, 'Status')}",
        *(f"{k}: {v}" for k, v in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
