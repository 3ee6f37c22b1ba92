"""Looks up where timers stand, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ksana.domain.fires import Lateness
from ksana.domain.jobs import Job
from ksana.domain.ports import Store
from ksana.domain.standing import RESULTS, Standing, is_spent, standing_of
from ksana.domain.states import State

_AT_ONCE: Final = 500
_DROPPED: Final = frozenset({State.SKIPPED})


async def standings(store: Store, jobs: Sequence[Job], now: datetime, lateness: Lateness) -> list[Standing]:
    """Where each of these timers stands."""
    found: list[Standing] = []
    for start in range(0, len(jobs), _AT_ONCE):
        found += await _some(store, jobs[start : start + _AT_ONCE], now, lateness)
    return found


async def _some(store: Store, jobs: Sequence[Job], now: datetime, lateness: Lateness) -> list[Standing]:
    last = await store.last_runs([job.id for job in jobs], RESULTS)
    if without := [job.id for job in jobs if job.id not in last]:
        last |= await store.last_runs(without, _DROPPED)
    spent = [job.id for job in jobs if job.id not in last and is_spent(job)]
    under_way = await store.last_runs(spent) if spent else {}
    untouched = set(spent) - under_way.keys()
    return [standing_of(job, last.get(job.id), job.id in untouched, now, lateness) for job in jobs]
