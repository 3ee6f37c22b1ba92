"""Requests as bytes and bytes as answers, whoever moves them. HTTP/1.1, one exchange at a time."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httptools

from ksana.client.talks import Answer, Lost, Request
from ksana.domain.errors import InvalidArgument

_UNSENDABLE: Final = re.compile(r"[\x00-\x1f\x7f]|[^\x00-\xff]")
_PORTS: Final = {"http": 80, "https": 443}


class Place(NamedTuple):
    """Where the server is."""

    scheme: str
    host: str
    port: int
    base: str

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def place_of(url: str) -> Place:
    """Read `http://host:port/base`."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidArgument.of("url", f"{url!r} is no address: {error}") from None
    if parts.scheme not in _PORTS or not host:
        raise InvalidArgument.of("url", f"{url!r} is no address of a server; write http://127.0.0.1:7100")
    if parts.query or parts.fragment or parts.username is not None:
        raise InvalidArgument.of("url", "ends with the path; give the key as key=…")
    return Place(parts.scheme, host, port or _PORTS[parts.scheme], parts.path.rstrip("/"))


def checked_header(value: str, field: str) -> str:
    """The value, if it is one line."""
    if _UNSENDABLE.search(value):
        raise InvalidArgument.of(field, "has a character that no header can have")
    return value


def encoded(request: Request, place: Place) -> bytes:
    """The request as it goes over the wire."""
    lines = [f"{request.method} {place.base}{request.target} HTTP/1.1", f"Host: {place}"]
    lines += [f"{name}: {checked_header(value, name)}" for name, value in request.headers.items()]
    body = request.body or b""
    if request.body is not None:
        lines.append("Content-Type: application/json")
    if request.method != "GET":
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class Reading:
    """An answer on its way in."""

    def __init__(self) -> None:
        self.is_whole = False
        self.may_reuse = False
        self.has_head = False
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """What came in; nothing means that the other side has closed. Lost if no answer can come of it."""
        if not data:
            self._end()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise Lost(f"the server does not speak HTTP: {error}", was_sent=True) from None

    @property
    def answer(self) -> Answer:
        return Answer(self._status, self._headers, b"".join(self._body))

    def taken(self) -> bytes:
        """What came of the body since the last time, for an answer that is read while it comes."""
        pieces, self._body = self._body, []
        return b"".join(pieces)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        self.has_head = self._status >= 200

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self.has_head:
            self.is_whole = True
            self.may_reuse = self._parser.should_keep_alive()
        else:
            self._headers.clear()

    def _end(self) -> None:
        lengths = ("content-length", "transfer-encoding")
        if not self.has_head or any(name in self._headers for name in lengths):
            raise Lost("the server broke the connection before it had answered", was_sent=True)
        self.is_whole = True
