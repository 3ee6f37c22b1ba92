"""Reads the answers of one connection, one after the other, in bounded memory."""

from __future__ import annotations

import httptools

from ksana.targets.http.answers import Answer

_MOST_HEAD = 256 * 1024
# What may surround each byte of a chunked body: with one byte per chunk it is five, the rest is generosity.
_MOST_FRAMING = 16


class AnswerReader:
    """What there is of the answer so far. The methods named `on_` are the parser's."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self.keeps_open = False
        """Whether another answer may follow the one that is complete."""

    def expect(self, is_head: bool, most: int) -> None:
        """The next bytes begin an answer, of whose body no more than so many bytes are wanted."""
        self._is_head = is_head
        self._most = most
        self._received = 0
        self._kept = 0
        self._has_head = False
        self._is_done = False
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []

    def feed(self, data: bytes) -> Answer | None:
        """The answer, if it is complete with these bytes. ValueError if this is no proper HTTP, or too much of it."""
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._finish(keeps_open=False)
        except httptools.HttpParserError as error:
            if not self._is_done:
                raise ValueError(str(error)) from None
            self.keeps_open = False
        if self._is_done:
            return self._answer()
        if self._received > _MOST_HEAD + _MOST_FRAMING * self._kept:
            raise ValueError("it sends headers without end")
        return None

    def partial(self) -> Answer | None:
        """What there is of it, if there is a head at least."""
        return self._answer() if self._has_head else None

    @property
    def ends_with_connection(self) -> bool:
        """Whether nothing but the end of the connection says where the body ends."""
        return not any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in self._headers)

    def on_message_begin(self) -> None:
        # A second answer to one request: whatever it is, the next request must not get it.
        if self._is_done:
            self.keeps_open = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._status: int = self._parser.get_status_code()
        self._has_head = not _is_interim(self._status)
        if self._has_head and self._is_head:
            self._finish(keeps_open=self._parser.should_keep_alive())
            # The one that has read this head waits for the body it announces.
            self._parser = httptools.HttpResponseParser(self)

    def on_body(self, body: bytes) -> None:
        if self._is_done:
            self.keeps_open = False
            return
        self._body.append(body)
        self._kept += len(body)
        if self._kept > self._most:
            self._finish(keeps_open=False)

    def on_message_complete(self) -> None:
        if self._is_done:
            return
        if self._has_head:
            self._finish(keeps_open=self._parser.should_keep_alive())
        else:
            self._headers.clear()

    def _finish(self, *, keeps_open: bool) -> None:
        if not self._is_done:
            self._is_done = True
            self.keeps_open = keeps_open

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


def _is_interim(status: int) -> bool:
    return status < 200 and status != 101
