"""`/openapi.json` and `/docs`: the description, and our own page that shows it without asking anyone else."""

from __future__ import annotations

from importlib import resources
from typing import Final

from ksana.api.kit.call import Call, Reply
from ksana.api.kit.routes import PUBLIC, Handler, Route, Surface

_CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FILES: Final = (
    ("/docs", "index.html", "text/html; charset=utf-8"),
    ("/docs/docs.css", "docs.css", "text/css; charset=utf-8"),
    ("/docs/docs.js", "docs.js", "text/javascript; charset=utf-8"),
)


def docs_surface(description: bytes) -> Surface:
    """The routes that show an encoded OpenAPI description."""
    folder = resources.files("ksana.api.kit") / "docs_page"
    routes: list[Route[None, None]] = [_fixed("/openapi.json", description, "application/json")]
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
