"""Claiming: the next due runs, by priority, then due instant, then id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ksana.domain.claims import Claim
from ksana.domain.policies import Priority
from ksana.domain.times import to_micros
from ksana.stores.sql.rows import Row
from ksana.stores.sql.statements import CLAIM_RUNS, DUE_RUNS, DUE_RUNS_OF_HIGHEST
from ksana.stores.sql.tables import DUE_COLUMNS

if TYPE_CHECKING:
    from ksana.stores.sql.tx import Tx

BY_PRIORITY = sorted(Priority, reverse=True)

_ID = DUE_COLUMNS.names.index("id")
_PRIORITY = DUE_COLUMNS.names.index("priority")
_DUE_AT = DUE_COLUMNS.names.index("due_at")


async def claim_by_priority(tx: Tx, claim: Claim) -> list[Row]:
    """Look for runs of each priority in turn, then take what was found; answer the rows as they were before."""
    rows = await _due_below(tx, claim, BY_PRIORITY, [])
    return await _taken(tx, claim, rows)


async def claim_from_highest(tx: Tx, claim: Claim) -> list[Row]:
    """The same where nobody else claims meanwhile: what one look does not find is not there."""
    if len(set(claim.queues)) != 1:
        return await claim_by_priority(tx, claim)
    now = to_micros(claim.now)
    rows: list[Row] = list(await tx.rows(DUE_RUNS_OF_HIGHEST, queue=claim.queues[0], now=now, limit=claim.limit))
    if rows:
        found = rows[0][_PRIORITY]
        rows = await _due_below(tx, claim, [priority for priority in BY_PRIORITY if priority.value < found], rows)
    return await _taken(tx, claim, rows)


async def _due_below(tx: Tx, claim: Claim, priorities: Sequence[Priority], rows: list[Row]) -> list[Row]:
    for priority in priorities:
        if len(rows) < claim.limit:
            rows += await _due(tx, claim, priority, claim.limit - len(rows))
    return rows


async def _taken(tx: Tx, claim: Claim, rows: list[Row]) -> list[Row]:
    if rows:
        await tx.run(CLAIM_RUNS, node_id=claim.node_id, now=to_micros(claim.now), ids=[row[_ID] for row in rows])
    return rows


async def _due(tx: Tx, claim: Claim, priority: Priority, limit: int) -> list[Row]:
    """The next runs of one priority over all the queues: each queue has its own order in the index, merged here."""
    now = to_micros(claim.now)
    queues = dict.fromkeys(claim.queues)
    rows: list[Row] = []
    for queue in queues:
        rows += await tx.rows(DUE_RUNS, queue=queue, priority=priority.value, now=now, limit=limit)
    if len(queues) > 1:
        rows.sort(key=_due_order)
    return rows[:limit]


def _due_order(row: Row) -> tuple[int, int]:
    return row[_DUE_AT], row[_ID]


def claim_order(row: Row) -> tuple[int, int, int]:
    """Who goes first."""
    return -row[_PRIORITY], row[_DUE_AT], row[_ID]
