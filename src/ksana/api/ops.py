"""The surface for operators and their machines: health, readiness, metrics, and a guide for language models."""

from __future__ import annotations

from importlib import resources
from typing import Any

import msgspec

from ksana.api.kit import PUBLIC, Call, Reply, Route, Surface
from ksana.api.kit.errors import ErrorBody, headers_of, status_of
from ksana.api.services import Services
from ksana.domain.errors import NotFound, StoreUnavailable


class Health(msgspec.Struct, frozen=True):
    """Whether the process, its store and its loops are well."""

    status: str
    store: str
    version: str


class Unwell(ErrorBody, frozen=True, kw_only=True):
    """The error body, with what Health and Ready would have said."""

    status: str
    store: str
    version: str


class Ready(msgspec.Struct, frozen=True):
    """Whether this node can take requests and fire jobs now."""

    ready: bool
    store: str
    executing: int


async def health(call: Call[None, None]) -> Reply:
    """Well, or 503 while the store is out of reach."""
    services: Services = call.services
    unwell = await _unwell(services, call.request_id)
    return unwell or Reply(Health("ok", "up", services.version))


async def alive(call: Call[None, None]) -> Reply:
    """The process lives; the store does not matter here, or an outage of the store would restart every node."""
    return Reply(b"ok\n", 200, media_type="text/plain; charset=utf-8")


async def ready(call: Call[None, None]) -> Reply:
    """Ready, or 503 while the store is out of reach."""
    services: Services = call.services
    unwell = await _unwell(services, call.request_id)
    return unwell or Reply(Ready(True, "up", services.engine.executing))


async def metrics(call: Call[None, None]) -> Reply:
    services: Services = call.services
    if services.metrics is None:
        raise NotFound("metrics are switched off; set metrics.enabled: true")
    body, media_type = await services.metrics()
    return Reply(body, 200, media_type=media_type)


async def llms(call: Call[None, None]) -> Reply:
    """What a language model should know before it calls anything here."""
    text = (resources.files("ksana.api") / "llms.txt").read_bytes()
    return Reply(text, 200, {"Cache-Control": "no-cache"}, "text/plain; charset=utf-8")


async def _unwell(services: Services, request_id: str) -> Reply | None:
    try:
        await services.engine.check_store()
    except StoreUnavailable as error:
        body = Unwell(
            error=error.message,
            code=error.code,
            message=error.message,
            request_id=request_id,
            status="degraded",
            store="down",
            version=services.version,
        )
        return Reply(body, status_of(error), headers_of(error))
    return None


def surface() -> Surface:
    """The routes of this surface."""
    routes: list[Route[Any, Any]] = [
        Route("GET", "/health", health, PUBLIC, response=Health, summary="Is it well?", errors=(StoreUnavailable,)),
        Route("GET", "/healthz", alive, PUBLIC, media_type="text/plain", summary="Is the process alive?"),
        Route("GET", "/readyz", ready, PUBLIC, response=Ready, summary="Can it serve?", errors=(StoreUnavailable,)),
        Route(
            "GET",
            "/metrics",
            metrics,
            PUBLIC,
            media_type="text/plain",
            summary="Prometheus metrics",
            errors=(NotFound,),
        ),
        Route("GET", "/llms.txt", llms, PUBLIC, media_type="text/plain", hidden=True),
    ]
    return Surface("ops", routes, summary="Health and metrics", strict_query=False)
