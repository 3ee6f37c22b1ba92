"""What a handler is given and what it may give back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec
from starlette.types import Receive

from ksana.api.kit.etag import IfMatch, parse_if_match
from ksana.domain.errors import InvalidArgument
from ksana.domain.idempotency import IdempotencyClaim
from ksana.domain.keys import Scope, allows

B = TypeVar("B")
Q = TypeVar("Q")


class Principal(msgspec.Struct, frozen=True):
    """Who is calling. `key_id` is None while the API is open and on public routes."""

    name: str
    key_id: str | None
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        """Whether the caller holds a scope."""
        return allows(self.scopes, scope)


class Reply(msgspec.Struct, frozen=True):
    """An answer that needs more than a body. Bytes are sent as they are, anything else as JSON."""

    body: Any = None
    status: int | None = None
    headers: Mapping[str, str] = {}
    media_type: str = "application/json"


class Call(Generic[B, Q]):
    """One request, parsed: `body` and `query` have the types the route declares, or are None. `raw` is the body as it
    came."""

    __slots__ = (
        "_receive",
        "body",
        "headers",
        "idempotency",
        "path",
        "principal",
        "query",
        "raw",
        "request_id",
        "services",
    )

    def __init__(
        self,
        *,
        path: Mapping[str, str | int],
        query: Q,
        body: B,
        principal: Principal,
        request_id: str,
        headers: Mapping[bytes, bytes],
        services: Any,
        idempotency: IdempotencyClaim | None,
        raw: bytes = b"",
        receive: Receive | None = None,
    ) -> None:
        self.path = path
        self.query = query
        self.body = body
        self.principal = principal
        self.request_id = request_id
        self.headers = headers
        self.services = services
        self.idempotency = idempotency
        self.raw = raw
        self._receive = receive

    def text(self, name: str) -> str:
        """A path parameter declared as `{name}` or `{name:uuid}`."""
        value = self.path[name]
        assert isinstance(value, str)
        return value

    def number(self, name: str) -> int:
        """A path parameter declared as `{name:int}`."""
        value = self.path[name]
        assert isinstance(value, int)
        return value

    def header(self, name: str) -> str | None:
        """A request header."""
        value = self.headers.get(name.lower().encode())
        return None if value is None else value.decode("latin-1")

    async def hung_up(self) -> None:
        """Return once the caller has hung up. Only for routes that read a body: it must have been read whole."""
        if self._receive is None:
            await asyncio.Event().wait()
            return
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def if_match(self) -> IfMatch | None:
        """The If-Match condition, if there is one."""
        text = self.header("if-match")
        return None if text is None else parse_if_match(text)

    def expected_version(self, from_body: int | None = None) -> int | None:
        """The version the caller means to change, by If-Match or by the body; None if it does not say."""
        condition = self.if_match()
        from_header = condition.expected() if condition else None
        if from_header is not None and from_body is not None and from_header != from_body:
            raise InvalidArgument.of("version", f"says {from_body}, but If-Match says {from_header}; send one")
        return from_header if from_header is not None else from_body
