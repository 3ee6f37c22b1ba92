"""The head of a request as bytes: all of it at once, or from a stencil that was cut before there was an attempt."""

from __future__ import annotations

from collections.abc import Mapping

from ksana.targets.http.destinations import Destination

BODY_METHODS = ("POST", "PUT", "PATCH")

Headers = dict[str, str]


def head_of(method: str, to: Destination, headers: Mapping[str, str], body: bytes, has_host: bool) -> bytes:
    """The head as it goes over the wire; ValueError if a value would end its line early."""
    lines = _lines(method, to, headers, body, has_host)
    return _checked("".join([*lines, _END]), len(lines) + 1)


class Stencil:
    """The head of requests that differ in nothing but the values of a few headers."""

    def __init__(
        self,
        method: str,
        to: Destination,
        headers: Mapping[str, str],
        body: bytes,
        has_host: bool,
        left_open: tuple[str, ...],
    ) -> None:
        """`left_open` names the headers whose values are not known yet. ValueError if one that is known would end its
        line early."""
        lines = _lines(method, to, headers, body, has_host)
        self._before = _checked("".join(lines), len(lines))
        self._open = "".join([f"{name}: %s{_END}" for name in left_open]) + _END
        self._breaks = len(left_open) + 1

    def filled(self, values: tuple[str, ...]) -> bytes:
        """The head with these values; ValueError if one would end its line early."""
        return self._before + _checked(self._open % values, self._breaks)


_END = "\r\n"


def _lines(method: str, to: Destination, headers: Mapping[str, str], body: bytes, has_host: bool) -> list[str]:
    """The lines of a head, but for the empty one that ends it."""
    lines = [f"{method} {to.target} HTTP/1.1{_END}"]
    if not has_host:
        lines.append(f"Host: {to.host_header}{_END}")
    lines += [f"{name}: {value}{_END}" for name, value in headers.items()]
    # Some servers answer 411 if an expected body is not announced, even as empty.
    if body or method in BODY_METHODS:
        lines.append(f"Content-Length: {len(body)}{_END}")
    return lines


def _checked(head: str, breaks: int) -> bytes:
    # Every part has been checked where it came from; this is the last place where one line could become two.
    if head.count("\r") != breaks or head.count("\n") != breaks or "\0" in head:
        raise ValueError("a header has a line break or NUL in it")
    return head.encode()
