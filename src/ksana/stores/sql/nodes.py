"""Nodes and their leases. A node's runs are its own as long as its one lease: one small write keeps them all."""

from __future__ import annotations

from datetime import datetime, timedelta

from ksana.domain.claims import Claimed
from ksana.domain.nodes import Heartbeat, NodeInfo
from ksana.domain.times import from_micros, to_micros
from ksana.stores.sql.catalog import Catalog
from ksana.stores.sql.run_rows import run_from_row
from ksana.stores.sql.sequences import reserve
from ksana.stores.sql.statements import (
    ADD_NODE,
    ALL_NODES,
    DROP_NODE,
    EXTEND_LEASE,
    FORGET_HEARD,
    FORGET_TAKEN,
    FORGET_UNHEARD,
    HELD_NODES,
    IS_DRAINING,
    LAPSED_NODES,
    LIVE_NODES,
    PAST_DEADLINE,
    RUNS_OF_NODES,
    SET_DRAINING,
    TAKEN_RUNS,
)
from ksana.stores.sql.turns import with_jobs
from ksana.stores.sql.tx import Tx


async def join(tx: Tx, name: str, now: datetime, lease: timedelta) -> NodeInfo:
    [id] = await reserve(tx, "node", 1)
    node = NodeInfo(id=id, name=name, started_at=now, lease_until=now + lease)
    await tx.run(ADD_NODE, id=id, name=name, started_at=to_micros(now), lease_until=to_micros(node.lease_until))
    return node


async def beat(tx: Tx, node_id: int, now: datetime, lease: timedelta) -> Heartbeat:
    await tx.run(EXTEND_LEASE, id=node_id, until=to_micros(now + lease))
    found = await tx.rows(IS_DRAINING, id=node_id)
    taken = [(row[0], row[1]) for row in await tx.rows(TAKEN_RUNS, node_id=node_id)]
    # Only what was read goes: somebody may be taking the next run at this very moment.
    for epoch in {epoch for _, epoch in taken}:
        heard = [run_id for run_id, at in taken if at == epoch]
        await tx.run(FORGET_HEARD, node_id=node_id, epoch=epoch, run_ids=heard)
    return Heartbeat(bool(found), taken, bool(found and found[0][0]))


async def set_draining(tx: Tx, node_id: int, is_draining: bool) -> bool:
    # Setting what is set already changes no row on some databases, and is no sign that there is no node.
    await tx.run(SET_DRAINING, id=node_id, draining=int(is_draining))
    return bool(await tx.rows(IS_DRAINING, id=node_id))


async def leave(tx: Tx, node_id: int) -> None:
    await tx.run(DROP_NODE, id=node_id)
    await tx.run(FORGET_TAKEN, node_id=node_id)


async def all_nodes(tx: Tx) -> list[NodeInfo]:
    return [
        NodeInfo(
            id=id,
            name=name,
            started_at=from_micros(started_at),
            lease_until=from_micros(lease_until),
            draining=bool(draining),
        )
        for id, name, started_at, lease_until, draining in await tx.rows(ALL_NODES)
    ]


async def lapsed(tx: Tx, catalog: Catalog, now: datetime, limit: int) -> list[Claimed]:
    at = to_micros(now)
    holders = {row[0] for row in await tx.rows(HELD_NODES)}
    holders -= {row[0] for row in await tx.rows(LIVE_NODES, now=at)} if holders else set()
    rows = await tx.rows(RUNS_OF_NODES, node_ids=sorted(holders), limit=limit) if holders else []
    if len(rows) < limit:
        rows += await tx.rows(PAST_DEADLINE, now=at, limit=limit)
    found = {row[0]: row for row in rows}
    runs = [run_from_row(row) for row in found.values()][:limit]
    return await with_jobs(tx, catalog, runs)


async def forget_lapsed_nodes(tx: Tx, now: datetime) -> None:
    """Drop nodes whose lease lapsed and that hold nothing any more."""
    holders = {row[0] for row in await tx.rows(HELD_NODES)}
    for (node_id,) in await tx.rows(LAPSED_NODES, now=to_micros(now)):
        if node_id not in holders:
            await leave(tx, node_id)
    await tx.run(FORGET_UNHEARD)
