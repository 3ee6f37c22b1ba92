"""Who calls: the name of the key and what it may do, so that a page need not offer what would be refused."""

from __future__ import annotations

from typing import Any

import msgspec

from ksana.api.kit import Call, Route, Scope


class CallerView(msgspec.Struct, frozen=True):
    """The name of the key, or `loopback` while no key was ever made; every scope it has, implied ones too."""

    name: str
    scopes: list[Scope]


async def caller(call: Call[None, None]) -> CallerView:
    """Whose key this is and what it may do."""
    return CallerView(call.principal.name, [scope for scope in Scope if call.principal.may(scope)])


def routes() -> list[Route[Any, Any]]:
    # Whoever may look at anything may ask what else there is for them.
    readers = (Scope.RUN_READ, Scope.CHAIN_READ, Scope.QUEUE_READ)
    summary = "Whose key this is"
    return [
        Route("GET", "/api/v2/caller", caller, Scope.JOB_READ, or_scopes=readers, response=CallerView, summary=summary),
    ]
