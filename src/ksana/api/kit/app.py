"""The ASGI app of a route table: match, let in, parse, call, show. Every failure becomes the error body."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ksana.api.kit.body import DEFAULT_MAX_BODY, ClientGone, read_body, require_json
from ksana.api.kit.browsers import BrowserGuard
from ksana.api.kit.call import Call, Principal, Reply
from ksana.api.kit.docs import docs_surface
from ksana.api.kit.errors import (
    ErrorStyle,
    InvalidJson,
    MethodNotAllowed,
    PreconditionFailed,
    body_of,
    headers_of,
    status_of,
)
from ksana.api.kit.idempotency import Idempotency, IdempotencySource, claim_of, replay
from ksana.api.kit.keys import OPEN, UNKNOWN, KeyRing, require_scope
from ksana.api.kit.openapi import describe
from ksana.api.kit.query import NoQuery, QueryReader
from ksana.api.kit.request_ids import RequestIds, current_request_id
from ksana.api.kit.router import Endpoint, Params, RouteMiss, Router
from ksana.api.kit.routes import PUBLIC, Public, Route, RouteError, Surface, check, each
from ksana.api.kit.strict_json import JsonReader
from ksana.api.kit.wire import encode
from ksana.domain.errors import KsanaError, VersionConflict
from ksana.domain.idempotency import IdempotencyReplay
from ksana.engine.acting import acting
from ksana.engine.auditing import Actor

_log = logging.getLogger("ksana.api")

_ALWAYS: Final = ((b"x-content-type-options", b"nosniff"),)
_NO_STORE: Final = (b"cache-control", b"no-store")

Headers = Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class _Bound:
    """A route with what is worked out once: its readers."""

    route: Route[Any, Any]
    body: JsonReader[Any] | None
    query: QueryReader | None


class _Shown(NamedTuple):
    """An answer ready to be sent."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def build_app(
    surfaces: Sequence[Surface],
    services: object,
    *,
    keys: KeyRing | None = None,
    idempotency: IdempotencySource | None = None,
    title: str = "Ksana",
    version: str = "",
    max_body: int = DEFAULT_MAX_BODY,
    allowed_hosts: Collection[str] = (),
    allowed_origins: Collection[str] = (),
) -> ASGIApp:
    """The app of these surfaces plus `/openapi.json` and `/docs`; RouteError where the table is wrong.

    Without `keys` the API is open. `allowed_hosts` and `allowed_origins` are explained by BrowserGuard.
    """
    check(surfaces)
    if idempotency is None and any(route.creates for _, route in each(surfaces)):
        raise RouteError("a route creates things, so the app needs a source of idempotency records")
    router: Router[_Bound] = Router()
    description = describe(surfaces, title=title, version=version)
    for surface, route in each([*surfaces, docs_surface(encode(description))]):
        router.add(route.method, route.path, _bind(surface, route), surface.error_style)
    guard = BrowserGuard(allowed_hosts, allowed_origins)
    repeats = Idempotency(idempotency) if idempotency is not None else None
    return RequestIds(_App(router, services, keys, repeats, guard, max_body))


def _bind(surface: Surface, route: Route[Any, Any]) -> _Bound:
    reader: JsonReader[Any] | None = None
    if route.request is not None and not route.raw:
        reader = JsonReader(route.request, route.adapt)
    query = route.query or (NoQuery if surface.strict_query else None)
    return _Bound(route, reader, QueryReader(query) if query else None)


class _App:
    def __init__(
        self,
        router: Router[_Bound],
        services: object,
        keys: KeyRing | None,
        idempotency: Idempotency | None,
        guard: BrowserGuard,
        max_body: int,
    ) -> None:
        self._router = router
        self._services = services
        self._keys = keys
        self._idempotency = idempotency
        self._guard = guard
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003})
            return
        style = ErrorStyle.TEXT
        try:
            match = self._router.find(_raw_path(scope))
            style = match.endpoint.style
            answer = await self._answer(scope, receive, match.endpoint, match.params)
            shown = answer if isinstance(answer, Response) else _shown(answer)
        except RouteMiss as miss:
            shown = _failure(miss.error, miss.style)
        except KsanaError as error:
            shown = _failure(error, style)
        except ClientGone:
            return
        except Exception:
            _log.exception("%s %s failed, request %s", scope["method"], scope["path"], current_request_id())
            shown = _failure(KsanaError(""), style)
        if _log.isEnabledFor(logging.DEBUG):
            # The query is left out: secrets are put there, too.
            status = shown.status_code if isinstance(shown, Response) else shown.status
            _log.debug("%s %s was answered with %d", scope["method"], scope["path"], status)
        if isinstance(shown, Response):
            for name, value in (*_ALWAYS, _NO_STORE):
                shown.headers.setdefault(name.decode(), value.decode())
            await shown(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": shown.status, "headers": shown.headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else shown.body})

    async def _answer(
        self, scope: Scope, receive: Receive, endpoint: Endpoint[_Bound], params: Params
    ) -> Reply | Response:
        method = scope["method"]
        bound = endpoint.methods.get("GET" if method == "HEAD" else method)
        if bound is None:
            if method == "OPTIONS":
                return Reply(status=204, headers={"Allow": endpoint.allow})
            raise MethodNotAllowed(method, endpoint.allow)
        headers: Headers = dict(scope["headers"])
        route = bound.route
        self._guard.check_origin(method, headers)
        principal = await self._let_in(route, headers)
        raw, body = await self._read(bound, receive, headers)
        query = bound.query.read(scope["query_string"]) if bound.query else None
        call: Call[Any, Any] = Call(
            path=params,
            query=query,
            body=body,
            principal=principal,
            request_id=current_request_id(),
            headers=headers,
            services=self._services,
            idempotency=claim_of(headers, method, scope["path"], raw, principal) if route.creates else None,
            raw=raw,
            receive=receive,
        )
        if route.method == "GET" or route.scope is PUBLIC:
            return await self._run(route, call)
        with acting(Actor(principal.name, request_id=call.request_id)):
            return await self._run(route, call)

    async def _let_in(self, route: Route[Any, Any], headers: Headers) -> Principal:
        if route.scope is PUBLIC:
            return UNKNOWN
        if self._keys is None or await self._keys.is_open():
            self._guard.check_host(headers)
            return OPEN
        principal = await self._keys.principal(headers)
        assert route.scope is not None
        assert not isinstance(route.scope, Public)
        if not any(principal.may(scope) for scope in route.or_scopes):
            require_scope(principal, route.scope)
        return principal

    async def _read(self, bound: _Bound, receive: Receive, headers: Headers) -> tuple[bytes, Any]:
        route = bound.route
        if bound.body is None and not route.raw and not route.creates:
            return b"", None
        raw = await read_body(receive, headers, self._max_body)
        if bound.body is None:
            return raw, raw if route.raw else None
        if not raw:
            if not route.optional_body:
                raise InvalidJson("a body is required; send a JSON object")
            return raw, bound.body.read(b"{}")
        require_json(headers)
        return raw, bound.body.read(raw)

    async def _run(self, route: Route[Any, Any], call: Call[Any, Any]) -> Reply | Response:
        claim = call.idempotency
        if claim is None:
            return await _handled(route, call)
        assert self._idempotency is not None
        with self._idempotency.running(claim):
            earlier = await self._idempotency.earlier(claim)
            if earlier is not None:
                return earlier
            try:
                return await _handled(route, call)
            except IdempotencyReplay as lost:
                return replay(claim, lost.record)


async def _handled(route: Route[Any, Any], call: Call[Any, Any]) -> Reply | Response:
    try:
        result = await route.handler(call)
    except VersionConflict as error:
        if b"if-match" in call.headers:
            raise PreconditionFailed(error.message) from error
        raise
    if isinstance(result, Response):
        return result
    if not isinstance(result, Reply):
        return Reply(result, route.status, media_type=route.media_type)
    return result if result.status else Reply(result.body, route.status, result.headers, result.media_type)


def _failure(error: KsanaError, style: ErrorStyle) -> _Shown:
    return _shown(Reply(body_of(error, style, current_request_id()), status_of(error), headers_of(error)))


def _shown(reply: Reply) -> _Shown:
    """A reply as bytes. Done before anything is sent, so that one that cannot be shown is still answered."""
    body = reply.body if isinstance(reply.body, bytes) else b"" if reply.body is None else encode(reply.body)
    headers = list(_ALWAYS)
    if reply.headers:
        headers += [(name.lower().encode(), _header_value(value)) for name, value in reply.headers.items()]
    if "Cache-Control" not in reply.headers:
        headers.append(_NO_STORE)
    if body:
        headers.append((b"content-type", reply.media_type.encode()))
    if body or reply.status != 204:
        headers.append((b"content-length", b"%d" % len(body)))
    return _Shown(reply.status or 200, headers, body)


def _header_value(value: str) -> bytes:
    # A line break would let whoever chose the value write headers of their own.
    if any(mark in value for mark in "\r\n\0"):
        raise ValueError("a header value holds a control character")
    return value.encode("latin-1")


def _raw_path(scope: Scope) -> str:
    raw = scope.get("raw_path")
    # Servers give the path undecoded in raw_path; without it an encoded slash cannot be told from a real one.
    path: str = raw.decode("latin-1") if raw is not None else scope["path"]
    root: str = scope.get("root_path", "")
    return path.removeprefix(root) if root else path


async def _live(receive: Receive, send: Send) -> None:
    # The server's life belongs to the process that embeds it; a foreign ASGI server only wants to hear yes.
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
