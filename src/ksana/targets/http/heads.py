"""A request as bytes."""

from __future__ import annotations

from ksana.targets.http.plans import BODY_METHODS, Headers, Request


def encoded(request: Request, headers: Headers) -> bytes:
    """The request as it goes over the wire; ValueError if a value would end its line early."""
    lines = [f"{request.method} {request.to.target} HTTP/1.1"]
    if not request.has_host:
        lines.append(f"Host: {request.to.host_header}")
    lines += [f"{name}: {value}" for name, value in headers]
    # Some servers answer 411 if an expected body is not announced, even as empty.
    if request.body or request.method in BODY_METHODS:
        lines.append(f"Content-Length: {len(request.body)}")
    head = "\r\n".join(lines)
    # Every part has been checked where it came from; this is the last place where one line could become two.
    breaks = len(lines) - 1
    if head.count("\r") != breaks or head.count("\n") != breaks or "\0" in head:
        raise ValueError("a header has a line break or NUL in it")
    return head.encode() + b"\r\n\r\n" + request.body
