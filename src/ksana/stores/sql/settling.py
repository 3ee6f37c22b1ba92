"""Settling: moves with the objects, items and entries of the audit that go with them, all or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from ksana.domain.changes import Overtaken, Settlement
from ksana.domain.jobs import Job
from ksana.domain.moves import Move
from ksana.stores.sql.audit import add_audit
from ksana.stores.sql.catalog import Catalog
from ksana.stores.sql.families import Families, move
from ksana.stores.sql.moving import Moves, prepare
from ksana.stores.sql.objects import change_objects
from ksana.stores.sql.outbox import keep_alerts
from ksana.stores.sql.pulling import enqueue
from ksana.stores.sql.tx import Tx


def in_rounds(moves: Sequence[Move]) -> list[Moves]:
    """Moves as they are going to be written: each round has one of every run at most, so that whoever loses shows."""
    rounds: list[list[Move]] = []
    made: dict[int, int] = {}
    for one in sorted(moves, key=lambda move: move.epoch):
        place = made.get(one.run.id, 0)
        made[one.run.id] = place + 1
        if place == len(rounds):
            rounds.append([])
        rounds[place].append(one)
    return [prepare(each) for each in rounds]


async def settle(
    tx: Tx, catalog: Catalog, families: Families, rounds: Sequence[Moves], settlement: Settlement
) -> list[tuple[Move, Job | None]]:
    followed: list[tuple[Move, Job | None]] = []
    # Runs are locked before objects, as a pull does it.
    for moves in rounds:
        moved = await move(tx, catalog, families, moves, settlement.hooks)
        if moved.lost:
            raise Overtaken(f"somebody else has moved {', '.join(f'run {run_id}' for run_id in sorted(moved.lost))}")
        followed += moved.followed
    if settlement.objects:
        await change_objects(tx, settlement.objects)
    if settlement.alerts:
        await keep_alerts(tx, settlement.alerts)
    if settlement.items:
        await enqueue(tx, settlement.items)
    await add_audit(tx, settlement.entries)
    return followed
