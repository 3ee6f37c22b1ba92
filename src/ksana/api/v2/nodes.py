"""What runs here: nodes, targets, version."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ksana.api.kit import Call, Route, Scope, Timestamp, timestamp
from ksana.api.services import Services
from ksana.domain.nodes import NodeInfo


class NodeView(msgspec.Struct, frozen=True):
    """A process that shares the work."""

    id: int
    name: str
    started_at: Timestamp
    lease_until: Timestamp
    is_alive: bool


class VersionView(msgspec.Struct, frozen=True):
    version: str


async def nodes(call: Call[None, None]) -> list[NodeView]:
    """The nodes of this store and their leases."""
    engine = call.services.engine
    now = engine.clock.now()
    return [show_node(node, now) for node in await engine.store.nodes()]


def show_node(node: NodeInfo, now: datetime) -> NodeView:
    is_alive = node.lease_until > now
    return NodeView(node.id, node.name, timestamp(node.started_at), timestamp(node.lease_until), is_alive)


async def targets(call: Call[None, None]) -> list[str]:
    """The kinds of target installed on this node."""
    return sorted(call.services.engine.targets)


async def version(call: Call[None, None]) -> VersionView:
    services: Services = call.services
    return VersionView(services.version)


def routes() -> list[Route[Any, Any]]:
    return [
        Route("GET", "/api/v2/nodes", nodes, Scope.JOB_READ, response=list[NodeView], summary="List nodes"),
        Route("GET", "/api/v2/targets", targets, Scope.JOB_READ, response=list[str], summary="List kinds of target"),
        Route("GET", "/api/v2/version", version, Scope.JOB_READ, response=VersionView, summary="The version"),
    ]
