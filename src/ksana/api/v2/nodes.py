"""What runs here: nodes, targets, version."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from ksana.api.kit import Call, Route, Scope, Timestamp, timestamp
from ksana.api.services import Services
from ksana.api.v2.run_shapes import ReasonInput
from ksana.domain.errors import NotFound
from ksana.domain.nodes import NodeInfo
from ksana.engine.acting import because
from ksana.engine.engine import Engine
from ksana.engine.holdings import held_by


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """A process that shares the work. One that is `draining` takes on nothing more, and `held` is how many runs it has
    still to end."""

    id: int
    name: str
    started_at: Timestamp
    lease_until: Timestamp
    is_alive: bool
    draining: bool
    held: int | None


class VersionView(msgspec.Struct, frozen=True):
    version: str


async def nodes(call: Call[None, None]) -> list[NodeView]:
    """The nodes of this store and their leases."""
    engine: Engine = call.services.engine
    return [await show_node(engine, node) for node in await engine.store.nodes()]


async def drain(call: Call[ReasonInput, None]) -> NodeView:
    """Have a node take on nothing more and end what it has. It learns of it with its next beat."""
    return await _told(call, is_draining=True)


async def resume(call: Call[ReasonInput, None]) -> NodeView:
    """Have a node that drains take on work again."""
    return await _told(call, is_draining=False)


async def _told(call: Call[ReasonInput, None], *, is_draining: bool) -> NodeView:
    engine: Engine = call.services.engine
    with because(call.body.reason):
        node = await engine.nodes.drain(call.number("id"), is_draining)
    return await show_node(engine, node)


async def show_node(engine: Engine, node: NodeInfo) -> NodeView:
    return NodeView(
        id=node.id,
        name=node.name,
        started_at=timestamp(node.started_at),
        lease_until=timestamp(node.lease_until),
        is_alive=node.lease_until > engine.clock.now(),
        draining=node.draining,
        held=len(await held_by(engine.store, node.id)) if node.draining else None,
    )


async def targets(call: Call[None, None]) -> list[str]:
    """The kinds of target installed on this node."""
    return sorted(call.services.engine.targets)


async def version(call: Call[None, None]) -> VersionView:
    services: Services = call.services
    return VersionView(services.version)


def routes() -> list[Route[Any, Any]]:
    one = "/api/v2/nodes/{id:int}"
    tells = partial(
        Route, scope=Scope.ADMIN, request=ReasonInput, response=NodeView, optional_body=True, errors=(NotFound,)
    )
    return [
        tells("POST", f"{one}/drain", drain, summary="Have a node take on nothing more", name="drain_node"),
        tells("POST", f"{one}/resume", resume, summary="Have a node work again", name="resume_node"),
        Route("GET", "/api/v2/nodes", nodes, Scope.JOB_READ, response=list[NodeView], summary="List nodes"),
        Route("GET", "/api/v2/targets", targets, Scope.JOB_READ, response=list[str], summary="List kinds of target"),
        Route("GET", "/api/v2/version", version, Scope.JOB_READ, response=VersionView, summary="The version"),
    ]
