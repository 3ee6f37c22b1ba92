"""Nodes: the processes that share the work, each as long as its lease."""

from __future__ import annotations

from datetime import datetime

import msgspec


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A process that shares the work."""

    id: int
    name: str
    started_at: datetime
    lease_until: datetime


class Heartbeat(msgspec.Struct, frozen=True):
    """What a node hears back: whether it still holds its lease, and which of its runs somebody else has moved."""

    alive: bool
    taken: list[tuple[int, int]]
