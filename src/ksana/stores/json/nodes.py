"""Nodes and their leases. They live in this one process, so they are kept in memory and end with it."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from ksana.domain.claims import Claimed
from ksana.domain.nodes import Heartbeat, NodeInfo
from ksana.stores.json.sequences import reserve
from ksana.stores.json.tables import Tables
from ksana.stores.json.turns import with_jobs
from ksana.stores.json.tx import Tx


def join(tx: Tx, name: str, now: datetime, lease: timedelta) -> NodeInfo:
    # The id is written down though the node is not: runs that a vanished node held still carry its number.
    [id] = reserve(tx, "node", 1)
    node = NodeInfo(id=id, name=name, started_at=now, lease_until=now + lease)
    tx.put(tx.tables.nodes, id, node)
    return node


def beat(tx: Tx, node_id: int, now: datetime, lease: timedelta) -> Heartbeat:
    tables = tx.tables
    node = tables.nodes.get(node_id)
    if node is not None:
        tx.put(tables.nodes, node_id, msgspec.structs.replace(node, lease_until=now + lease))
    taken = tables.taken.get(node_id) or frozenset()
    tx.drop(tables.taken, node_id)
    return Heartbeat(node is not None, sorted(taken), node is not None and node.draining)


def set_draining(tx: Tx, node_id: int, is_draining: bool) -> bool:
    node = tx.tables.nodes.get(node_id)
    if node is None:
        return False
    tx.put(tx.tables.nodes, node_id, msgspec.structs.replace(node, draining=is_draining))
    return True


def leave(tx: Tx, node_id: int) -> None:
    tx.drop(tx.tables.nodes, node_id)
    tx.drop(tx.tables.taken, node_id)


def all_nodes(tables: Tables) -> list[NodeInfo]:
    return [node for _, node in sorted(tables.nodes.rows.items())]


def lapsed(tables: Tables, now: datetime, limit: int) -> list[Claimed]:
    runs = tables.runs
    live = {node.id for node in tables.nodes.rows.values() if node.lease_until > now}
    found: list[int] = []
    for node_id in sorted(set(runs.held.groups()) - live):
        found += runs.held[node_id][: limit - len(found)]
    found += [run_id for _, run_id in runs.deadlines[: min(limit, runs.deadlines.through(now))]]
    return with_jobs(tables, [runs.rows[run_id] for run_id in dict.fromkeys(found)][:limit])


def forget_lapsed_nodes(tx: Tx, now: datetime) -> None:
    """Drop nodes whose lease lapsed and that hold nothing any more, and news for nodes that are gone."""
    tables = tx.tables
    for node in all_nodes(tables):
        if node.lease_until <= now and not tables.runs.held[node.id]:
            leave(tx, node.id)
    for node_id in set(tables.taken.rows) - set(tables.nodes.rows):
        tx.drop(tables.taken, node_id)
