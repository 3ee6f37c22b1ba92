"""Calls that this client has no word for: any path of the server, and whatever JSON it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ksana.client.asking import written
from ksana.client.calls import Call, Repeat, query_of

_SAFE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})


def ask(
    method: str,
    path: str,
    body: Any = None,
    *,
    query: Mapping[str, str | int | bool | None] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Call[Any]:
    """Make a request and give its JSON, or its text if it is none. What is not sure to be done once is not repeated."""
    method = method.upper()
    return Call(
        method=method,
        path=path,
        decode=_read,
        query=query_of(**(query or {})),
        body=None if body is None else msgspec.json.encode(written(body)),
        headers=headers or {},
        repeat=Repeat.ALWAYS if method in _SAFE else Repeat.IF_NOT_DONE,
    )


def _read(data: bytes) -> Any:
    if not data:
        return None
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return data.decode("utf-8", "replace")
