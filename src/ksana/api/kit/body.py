"""The body of a request: read in chunks up to a limit, taken as JSON if it says so or says nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from starlette.types import Receive

from ksana.api.kit.errors import PayloadTooLarge, UnsupportedMediaType
from ksana.domain.errors import InvalidArgument

DEFAULT_MAX_BODY: Final = 8 * 1024 * 1024
_JSON: Final = re.compile(rb'application/(?:[\w.!#$&^-]+\+)?json\s*(?:;\s*charset="?utf-?8"?\s*)?;?', re.IGNORECASE)


class ClientGone(Exception):
    """The caller hung up before its request was whole; there is nobody to answer."""


def require_json(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a body that says it is something else than plain UTF-8 JSON."""
    media = headers.get(b"content-type")
    if media is not None and media != b"application/json" and not _JSON.fullmatch(media.strip()):
        raise UnsupportedMediaType("send the body as Content-Type: application/json, in UTF-8")
    coding = headers.get(b"content-encoding")
    if coding is not None and coding.strip().lower() not in (b"", b"identity"):
        raise UnsupportedMediaType("send the body without Content-Encoding")


async def read_body(receive: Receive, headers: Mapping[bytes, bytes], limit: int) -> bytes:
    """The whole body; refused as soon as it is known to be too large."""
    announced = headers.get(b"content-length")
    if announced is not None:
        if not announced.isdigit():
            raise InvalidArgument.of("Content-Length", "must be a number of bytes")
        # The number of digits first: int() refuses absurdly long ones with an error of its own.
        if len(announced) > 15 or int(announced) > limit:
            raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return b"".join([*chunks, chunk]) if chunks else bytes(chunk)
        chunks.append(chunk)


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"the body is larger than {limit} bytes; send less at once")
