"""Slots of jobs that let only so many runs go at a time: who waited longest goes first when one is free."""

from __future__ import annotations

from ksana.stores.sql.statements import (
    ADMIT_RUNS,
    ALL_WAITED_JOBS,
    HOLDING_RUNS,
    LOCK_CURSORS,
    WAITED_JOBS,
    WAITING_RUNS,
)
from ksana.stores.sql.tx import Tx

# A job whose limit was lifted while runs waited lets them all in, in steps of this many.
_EVERYBODY = 10_000


async def fill_slots(tx: Tx, job_ids: list[int]) -> int:
    """Let the longest-waiting runs of these jobs in, as far as their limits allow; answer how many."""
    # Firing holds the cursor while it counts; taking it here means whoever waits because of the run that just ended
    # is already visible, and whoever comes later sees the slot free. Nobody is left waiting for a slot that is free.
    limits = {row[0]: row[2] for row in await tx.rows(LOCK_CURSORS, ids=job_ids)}
    waited = [row[0] for row in await tx.rows(WAITED_JOBS, ids=job_ids)]
    if not waited:
        return 0
    holding: dict[int, int] = {row[0]: row[1] for row in await tx.rows(HOLDING_RUNS, ids=waited)}
    admitted: list[int] = []
    for job_id in waited:
        limit = limits.get(job_id)
        free = _EVERYBODY if limit is None else limit - holding.get(job_id, 0)
        if free > 0:
            admitted += [row[0] for row in await tx.rows(WAITING_RUNS, job_id=job_id, limit=free)]
    if admitted:
        await tx.run(ADMIT_RUNS, ids=admitted)
    return len(admitted)


async def admit_waiting(tx: Tx) -> int:
    """Let in whoever waits for a slot that is free."""
    waited = sorted({row[0] for row in await tx.rows(ALL_WAITED_JOBS)})
    return await fill_slots(tx, waited) if waited else 0
