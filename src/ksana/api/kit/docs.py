"""`/openapi.json` and `/docs`: the description, and our own page that shows it without asking anyone else. Both are
also found where other servers have them."""

from __future__ import annotations

from importlib import resources
from typing import Final

from ksana.api.kit.call import Call, Reply
from ksana.api.kit.routes import PUBLIC, Handler, Route, Surface

_CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_DESCRIPTIONS: Final = ("/openapi.json", "/v3/api-docs")
# Relative, so that they hold under any prefix a proxy adds.
_PAGES: Final = {"/swagger-ui.html": "docs", "/swagger-ui/index.html": "../docs"}
_FILES: Final = (
    ("/docs", "index.html", "text/html; charset=utf-8"),
    ("/docs/docs.css", "docs.css", "text/css; charset=utf-8"),
    ("/docs/docs.js", "docs.js", "text/javascript; charset=utf-8"),
)


def docs_surface(description: bytes) -> Surface:
    """The routes that show an encoded OpenAPI description."""
    folder = resources.files("ksana.api.kit") / "docs_page"
    routes: list[Route[None, None]] = [_fixed(path, description, "application/json") for path in _DESCRIPTIONS]
    routes += [_moved(path, to) for path, to in _PAGES.items()]
    routes += [_fixed(path, (folder / name).read_bytes(), media_type) for path, name, media_type in _FILES]
    return Surface("docs", routes, strict_query=False)


def _fixed(path: str, content: bytes, media_type: str) -> Route[None, None]:
    reply = Reply(
        content,
        200,
        {"Cache-Control": "no-cache", "Content-Security-Policy": _CSP, "Referrer-Policy": "no-referrer"},
        media_type,
    )

    async def show(call: Call[None, None]) -> Reply:
        return reply

    handler: Handler[None, None] = show
    return Route("GET", path, handler, PUBLIC, media_type=media_type, hidden=True, name=path.strip("/"))


def _moved(path: str, to: str) -> Route[None, None]:
    reply = Reply(None, 302, {"Location": to})

    async def show(call: Call[None, None]) -> Reply:
        return reply

    handler: Handler[None, None] = show
    return Route("GET", path, handler, PUBLIC, hidden=True, name=path.strip("/"))
