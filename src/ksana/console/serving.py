"""Serves the console in front of an ASGI app: `/console/…` is ours, `/` leads browsers there, the rest is the app's.

Every place of the console is the same page; which one is shown is decided in the browser. Assets carry a hash in their
name and may be kept for ever, the page may not.
"""

from __future__ import annotations

import html
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ksana.console.files import assets, page

_PLACE: Final = "/console/"
_ASSETS: Final = "/console/assets/"
_BASE: Final = '<base href="/console/" />'
# Whatever the API answers is shown by scripts of ours; should some of it slip through as markup, it can do nothing.
_CSP: Final = (
    "default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'"
)
_ALWAYS: Final = {
    "Content-Security-Policy": _CSP,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_FOR_EVER: Final = "public, max-age=31536000, immutable"


class Console:
    """An app with the console in front of it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _answer(scope) if scope["type"] == "http" else None
        await (answer or self._app)(scope, receive, send)


def _answer(scope: Scope) -> Response | None:
    root: str = scope.get("root_path", "")
    path: str = scope["path"].removeprefix(root)
    headers = Headers(scope=scope)
    if path == "/":
        # Machines that ask for the root get what the API has to say; only people are led on.
        wants_page = "text/html" in headers.get("accept", "")
        return _moved(root) if wants_page and scope["method"] == "GET" else None
    if path == _PLACE.rstrip("/"):
        return _moved(root)
    if not path.startswith(_PLACE):
        return None
    if scope["method"] not in ("GET", "HEAD"):
        return PlainTextResponse("the console only answers GET\n", 405, {"Allow": "GET, HEAD"})
    if path.startswith(_ASSETS):
        return _asset(path.removeprefix(_ASSETS), headers)
    shown = page().replace(_BASE, f'<base href="{html.escape(root)}/console/" />')
    return Response(shown, headers={**_ALWAYS, "Cache-Control": "no-cache"}, media_type="text/html")


def _moved(root: str) -> Response:
    return RedirectResponse(f"{root}{_PLACE}", 302, {"Cache-Control": "no-store", "Vary": "Accept"})


def _asset(name: str, headers: Headers) -> Response:
    file = assets().get(name)
    if file is None:
        # Happens after an upgrade, to a page that was loaded before it.
        return PlainTextResponse("no such file; reload the page\n", 404, {"Cache-Control": "no-store"})
    kept = {**_ALWAYS, "Cache-Control": _FOR_EVER, "Content-Type": file.media_type, "Vary": "Accept-Encoding"}
    if "gzip" in headers.get("accept-encoding", ""):
        return Response(file.gzipped, headers={**kept, "Content-Encoding": "gzip"})
    return Response(file.plain, headers=kept)
