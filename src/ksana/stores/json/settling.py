"""What belongs together, done in one step: moves, the objects that change with them, items that follow, the audit."""

from __future__ import annotations

from collections.abc import Sequence

from ksana.domain.changes import Overtaken, Settlement
from ksana.domain.moves import Move
from ksana.stores.json.audit import add_audit
from ksana.stores.json.families import Told, move
from ksana.stores.json.objects import put_object
from ksana.stores.json.outbox import keep_alerts
from ksana.stores.json.pulling import enqueue
from ksana.stores.json.tables import Tables
from ksana.stores.json.tx import Tx


def settle(tx: Tx, settlement: Settlement) -> Told:
    _refuse_late(tx.tables, settlement.moves)
    followed = move(tx, settlement.moves, settlement.hooks).followed
    keep_alerts(tx, settlement.alerts)
    for governed in settlement.objects:
        put_object(tx, governed)
    enqueue(tx, settlement.items)
    add_audit(tx, settlement.entries)
    return followed


def _refuse_late(tables: Tables, moves: Sequence[Move]) -> None:
    """Overtaken if one of the moves does not count; those of one run follow each other by epoch."""
    epochs: dict[int, int] = {}
    for one in sorted(moves, key=lambda move: move.epoch):
        run = tables.runs.get(one.run.id)
        if run is None or epochs.get(run.id, run.epoch) != one.epoch:
            raise Overtaken(f"run {one.run.id} has moved")
        epochs[run.id] = one.run.epoch
