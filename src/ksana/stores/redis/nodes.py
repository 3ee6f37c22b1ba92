"""Nodes and their leases."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from ksana.domain.nodes import Heartbeat, NodeInfo
from ksana.domain.runs import Run
from ksana.domain.times import from_micros, to_micros
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import BEAT, LAPSED, LEAVE, TELL_NODE
from ksana.stores.redis.values import fitting, packed_instant, runs_from_reply, unpacked_instant


class _Told(msgspec.Struct, array_like=True, frozen=True):
    """A node without its lease, which stands in front."""

    name: str
    started_at: int
    draining: bool = False


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Told).decode


async def join(link: Link, id: int, name: str, now: datetime, lease: timedelta) -> NodeInfo:
    with fitting():
        value = packed_instant(now + lease) + _encode(_Told(name, to_micros(now)))
    await link.ask("HSET", link.key("nodes"), id, value)
    return NodeInfo(id=id, name=name, started_at=now, lease_until=now + lease)


async def beat(link: Link, node_id: int, now: datetime, lease: timedelta) -> Heartbeat:
    told, taken = await link.run(BEAT, node_id, packed_instant(now + lease))
    heard = (pair.split(b":") for pair in taken)
    moved = sorted((int(run_id), int(epoch)) for run_id, epoch in heard)
    return Heartbeat(told is not None, moved, told is not None and _decode(told).draining)


async def set_draining(link: Link, node_id: int, is_draining: bool) -> bool:
    value = await link.ask("HGET", link.key("nodes"), node_id)
    if value is None:
        return False
    # Nothing but this changes what stands behind the lease.
    told = msgspec.structs.replace(_decode(value[8:]), draining=is_draining)
    return bool(await link.run(TELL_NODE, node_id, _encode(told)))


async def leave(link: Link, node_id: int) -> None:
    await link.run(LEAVE, node_id)


async def all_nodes(link: Link) -> list[NodeInfo]:
    reply: dict[bytes, bytes] = await link.ask("HGETALL", link.key("nodes"))
    return sorted((_node(int(id), value) for id, value in reply.items()), key=lambda node: node.id)


def _node(id: int, value: bytes) -> NodeInfo:
    told, lease_until = _decode(value[8:]), unpacked_instant(value[:8])
    assert lease_until is not None
    return NodeInfo(
        id=id,
        name=told.name,
        started_at=from_micros(told.started_at),
        lease_until=lease_until,
        draining=told.draining,
    )


async def lapsed(link: Link, now: datetime, limit: int) -> list[Run]:
    return runs_from_reply(await link.run(LAPSED, to_micros(now), limit))
