"""Health and version, as plain text."""

from __future__ import annotations

from typing import Any, Final

from ksana.api.kit import PUBLIC, Call, Reply, Route
from ksana.api.services import Services
from ksana.domain.errors import StoreUnavailable

_TEXT: Final = "text/plain; charset=utf-8"


async def healthz(call: Call[None, None]) -> Reply:
    """`ok`, or 503 while the store is out of reach."""
    services: Services = call.services
    await services.engine.check_store()
    return Reply(b"ok", media_type=_TEXT)


async def version(call: Call[None, None]) -> Reply:
    services: Services = call.services
    return Reply(f"v{services.version}".encode(), media_type=_TEXT)


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "GET",
            "/api/v1/healthz",
            healthz,
            PUBLIC,
            media_type="text/plain",
            summary="Is it well?",
            errors=(StoreUnavailable,),
        ),
        Route("GET", "/api/v1/version", version, PUBLIC, media_type="text/plain", summary="Which version is it?"),
    ]
