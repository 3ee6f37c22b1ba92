"""Nodes: the processes that share the work, each as long as its lease."""

from __future__ import annotations

from datetime import datetime

import msgspec


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A process that shares the work. One that is draining ends what it has, and takes on nothing more."""

    id: int
    name: str
    started_at: datetime
    lease_until: datetime
    draining: bool = False


class Heartbeat(msgspec.Struct, frozen=True):
    """What a node hears back: whether it still holds its lease, which of its runs somebody else has moved, and whether
    it is to drain."""

    alive: bool
    taken: list[tuple[int, int]]
    draining: bool = False
