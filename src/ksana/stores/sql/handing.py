"""Handing over: steps that waited are let in and claimed at once, by whoever ended what they waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ksana.domain.claims import Claim
from ksana.domain.times import to_micros
from ksana.stores.sql.claiming import claim_order
from ksana.stores.sql.kept import keep
from ksana.stores.sql.rows import Row
from ksana.stores.sql.statements import (
    ADMIT_STEPS,
    HAND_OVER_STEPS,
    LOCK_CHAINS,
    MOVE_RUNS,
    PASS_STEPS,
    REPLACE_STAMP,
    RUNS_BY_ID,
    SET_STAMPS,
)
from ksana.stores.sql.tables import ATTEMPTS
from ksana.stores.sql.tx import Ended, Relay, Relayed, Tx


def handed_to(claim: Claim, due_at: int) -> dict[str, Any]:
    return {"queues": claim.queues, "due_at": due_at, "node_id": claim.node_id, "now": to_micros(claim.now)}


async def hand_over(tx: Tx, run_ids: Sequence[int], due_at: int, claim: Claim) -> list[Row]:
    """Let steps in and claim them, where a change can tell what it found."""
    rows: list[Row] = [*await tx.rows(HAND_OVER_STEPS, ids=run_ids, **handed_to(claim, due_at))]
    if len(rows) > 1:
        rows.sort(key=claim_order)
    return rows


async def stamp_chains(tx: Tx, run_ids: Sequence[int], stamp: int) -> list[tuple[Any, ...]]:
    """Lock chains, tell how they were stamped and stamp them anew, in two steps."""
    found = await tx.rows(LOCK_CHAINS, ids=run_ids)
    if found:
        await tx.run(SET_STAMPS, ids=run_ids, stamp=stamp)
    return found


async def pass_steps(tx: Tx, run_ids: Sequence[int], now: int) -> list[Row]:
    """Steps that do nothing are done; answer their rows."""
    await tx.run(PASS_STEPS, passes=run_ids, due_at=now)
    return [*await tx.rows(RUNS_BY_ID, ids=run_ids)]


async def _end(tx: Tx, ended: Ended) -> bool:
    if ended.attempt is None:
        is_won = bool(await tx.end(ended.told, ended.epoch, **ended.values))
    else:
        unchanged = {"due_at": None, "deadline_at": None, "began_at": None}
        is_won = bool(await tx.swap(MOVE_RUNS, ids=list(ended.told), epoch=ended.epoch, **unchanged, **ended.values))
        if is_won:
            await tx.insert(ATTEMPTS, [tuple(ended.attempt)])
    if is_won and ended.kept is not None:
        await keep(tx, [tuple(ended.kept)])
    return is_won


async def pass_on(tx: Tx, relay: Relay) -> Relayed | None:
    """The steps of a relay one after the other, inside a transaction."""
    if not await tx.run(REPLACE_STAMP, run_id=relay.parent_id, known_stamp=relay.known_stamp, stamp=relay.stamp):
        return None
    if not await _end(tx, relay.ended):
        return None
    due_at = relay.ended.values["ended_at"]
    passed = await pass_steps(tx, relay.passes, due_at) if relay.passes else []
    rows = await tx.hand_over(relay.heirs, due_at, relay.claim)
    if len(rows) < len(relay.heirs):
        await tx.run(ADMIT_STEPS, ids=relay.heirs, now=due_at)
    return Relayed(rows, passed)
