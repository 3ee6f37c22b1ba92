"""Reads an answer into bounded memory, whatever it announces or sends."""

from __future__ import annotations

from pyreqwest.http import HeaderMap
from pyreqwest.response import Response

from ksana.targets.http.answers import Answer

_CHUNK = 64 * 1024
UNREADABLE = "(not text)"


async def read_answer(response: Response, most: int) -> Answer:
    """The answer with the first `most` bytes of its body. What is left unread costs the connection."""
    # Never `response.bytes()`: it reserves whatever Content-Length announces.
    reader = response.body_reader
    asked = min(_CHUNK, most + 1)
    first = await reader.read(asked)
    body = b"" if first is None else first.to_bytes()
    if len(body) == asked:
        kept = bytearray(body)
        while len(kept) <= most and (chunk := await reader.read(min(_CHUNK, most + 1 - len(kept)))):
            kept += chunk
        body = bytes(kept[:most])
        return Answer(response.status, headers_of(response.headers), body, len(kept) > most)
    return Answer(response.status, headers_of(response.headers), body, False)


def headers_of(headers: HeaderMap) -> dict[str, str]:
    """The headers as text, repeated ones joined, names in lower case."""
    try:
        found = headers.dict_multi_value()
    except ValueError:
        return _one_by_one(headers)
    return {name: value if isinstance(value, str) else ", ".join(value) for name, value in found.items()}


def _one_by_one(headers: HeaderMap) -> dict[str, str]:
    # One value in a foreign encoding must not hide the others.
    found: dict[str, str] = {}
    for name in headers.keys():  # noqa: SIM118 - the map yields names only through its view
        try:
            found[name] = ", ".join(headers.getall(name))
        except ValueError:
            found[name] = UNREADABLE
    return found
