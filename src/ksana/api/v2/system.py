"""The system at a glance: this node, its store, the other nodes, and what an operator should look at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from ksana.api.kit import Call, Route, Scope, Timestamp, timestamp
from ksana.api.services import Services
from ksana.api.v2.nodes import NodeView, show_node
from ksana.domain.durations import format_duration
from ksana.domain.errors import StoreUnavailable
from ksana.domain.nodes import NodeInfo
from ksana.domain.queries import Counts

Level = Literal["ok", "warn", "bad"]

# How late slots may be fired and due runs begun before somebody should look.
_LATE: Final = timedelta(seconds=30)


class StoreView(msgspec.Struct, frozen=True, kw_only=True):
    """The store; its size is told of files only."""

    kind: str
    size_bytes: int | None
    ok: bool


class CheckView(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at, what was found and, if it is not well, what to do."""

    name: str
    level: Level
    text: str
    fix: str | None = None


class RetentionView(msgspec.Struct, frozen=True, kw_only=True):
    """How long finished runs are kept, null for ever, and how many of each job at least."""

    keep: str | None
    keep_last: int


class SystemView(msgspec.Struct, frozen=True, kw_only=True):
    """This node and what it stands on. `exposed` if it listens beyond this machine, `auth` if it takes a key."""

    version: str
    started_at: Timestamp | None
    uptime_seconds: float
    node_id: int | None
    store: StoreView
    nodes: list[NodeView]
    checks: list[CheckView]
    retention: RetentionView
    exposed: bool
    auth: bool


async def system(call: Call[None, None]) -> SystemView:
    """How this node, its store and the nodes beside it are."""
    services: Services = call.services
    engine = services.engine
    now, node, upkeep = engine.clock.now(), engine.node, engine.options.upkeep
    has_key = call.principal.key_id is not None
    checks = [check async for check in _store_checks(services, now)]
    is_reachable = checks[0].level == "ok"
    checks += _own_checks(services, has_key)
    return SystemView(
        version=services.version,
        started_at=None if node is None else timestamp(node.started_at),
        uptime_seconds=0.0 if node is None else (now - node.started_at).total_seconds(),
        node_id=None if node is None else node.id,
        store=StoreView(kind=services.store.kind, size_bytes=services.store.size(), ok=is_reachable),
        nodes=[await show_node(engine, one) for one in await engine.store.nodes()] if is_reachable else [],
        checks=checks,
        retention=RetentionView(
            keep=None if upkeep.retention is None else format_duration(upkeep.retention), keep_last=upkeep.keep_last
        ),
        exposed=services.is_exposed,
        auth=has_key,
    )


async def _store_checks(services: Services, now: datetime) -> AsyncIterator[CheckView]:
    """What only the store can tell; whether it can at all comes first."""
    engine = services.engine
    try:
        await engine.check_store()
        counts, next_fire_at = await engine.store.counts(now), await engine.store.next_fire_at()
        nodes = await engine.store.nodes()
    except StoreUnavailable as error:
        yield _check("store", "bad", error.message, "see that the store runs and can be reached; work goes on then")
        return
    yield _check("store", "ok", "the store answers")
    yield _firing(next_fire_at, now)
    yield _working(counts, now)
    yield _dead_letters(counts)
    yield _nodes(nodes, now)


def _own_checks(services: Services, has_key: bool) -> Iterator[CheckView]:
    """What is known without the store."""
    options = services.engine.options
    if services.is_exposed and not has_key:
        text = "anyone who reaches this server may run jobs: it listens beyond this machine and asks for no key"
        yield _check("access", "bad", text, "make a key with `ksana key create`")
    else:
        yield _check("access", "ok", "a key is asked for" if has_key else "only this machine can reach the server")
    host = urlsplit(options.callback_base).hostname or ""
    if services.is_exposed and _is_loopback(host):
        text = f"targets are told to call back at {host}, which other machines cannot reach"
        yield _check("callbacks", "warn", text, "set server.public_url to the address at which others reach it")
    if options.upkeep.retention is None:
        text = "finished runs are kept for ever, so the store only grows"
        yield _check("retention", "warn", text, "set storage.retention, for example to 30d")


def _firing(next_fire_at: datetime | None, now: datetime) -> CheckView:
    if next_fire_at is not None and now - next_fire_at > _LATE:
        text = f"a slot of {timestamp(next_fire_at)} has not been fired yet"
        return _check("firing", "bad", text, "see that a node is at work and that its clock is right")
    return _check("firing", "ok", "slots are fired in time")


def _working(counts: Counts, now: datetime) -> CheckView:
    oldest = counts.oldest_due_at
    if oldest is not None and now - oldest > _LATE:
        text = f"{counts.due} runs are due and wait for a free worker, the oldest since {timestamp(oldest)}"
        return _check("workers", "warn", text, "raise executor.worker_pool_size, or start another node")
    return _check("workers", "ok", "what is due is worked on")


def _dead_letters(counts: Counts) -> CheckView:
    if counts.dead_letters:
        text = f"{counts.dead_letters} dead letters wait for somebody to look at them"
        return _check("dead_letters", "warn", text, "put them back, or drop them")
    return _check("dead_letters", "ok", "there are no dead letters")


def _nodes(nodes: list[NodeInfo], now: datetime) -> CheckView:
    silent = [node for node in nodes if node.lease_until <= now]
    if silent:
        names = ", ".join(f"{node.name} (until {timestamp(node.lease_until)})" for node in silent[:5])
        text = f"{len(silent)} of {len(nodes)} nodes have not been heard of: {names}"
        return _check("nodes", "warn", text, "start them again; one that is gone for good is forgotten by itself")
    return _check("nodes", "ok", f"{len(nodes)} {'node is' if len(nodes) == 1 else 'nodes are'} at work")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check(name: str, level: Level, text: str, fix: str | None = None) -> CheckView:
    return CheckView(name=name, level=level, text=text, fix=fix)


def routes() -> list[Route[Any, Any]]:
    return [
        Route("GET", "/api/v2/system", system, Scope.JOB_READ, response=SystemView, summary="The system at a glance")
    ]
