"""What the store says a node holds. An answer that got lost may have claimed runs, or told of runs taken away; asking
again is how a node finds out, so that no run is held by a node that does not know of it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from ksana.domain.claims import Claimed
from ksana.domain.ports import Store
from ksana.domain.states import State

Key = tuple[int, int]
"""A run and its epoch: one moment of one holder."""

# Seen from the end of time every lease has lapsed, so whatever is held shows.
_END_OF_TIME = datetime(9999, 12, 31, tzinfo=UTC)
_MOST = 50_000


async def held_by(store: Store, node_id: int) -> list[Claimed]:
    """Every run that is RUNNING on this node, as far as the store knows."""
    found = await store.lapsed(_END_OF_TIME, _MOST)
    return [one for one in found if one.run.state is State.RUNNING and one.run.node_id == node_id]


async def moved_on(store: Store, keys: Collection[Key]) -> list[Key]:
    """Those of the given moments that are over: somebody has moved the run since."""
    if not keys:
        return []
    standing = {(run.id, run.epoch) for run in await store.get_runs([run_id for run_id, _ in keys])}
    return [key for key in keys if key not in standing]
