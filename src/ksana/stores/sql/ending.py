"""Ending runs by as few changes as can be."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from ksana.stores.sql.statements import END_RUNS, END_RUNS_ALIKE, ENDED_AS_TOLD
from ksana.stores.sql.tx import Told, Tx

# How many runs are told alike, on average, for a statement for each such group to be worth it.
_ALIKE = 8


async def end(tx: Tx, told: Told, epoch: int, **values: Any) -> Collection[int]:
    """Those of the runs that were at this epoch, and have ended; or had, as it is told here."""
    if len(told) == 1 or len(set(map(id, told.values()))) * _ALIKE <= len(told):
        count = 0
        for said, ids in _by_what_is_told(told):
            count += await tx.run(END_RUNS_ALIKE, told=_text(said), ids=ids, epoch=epoch, **values)
    else:
        count = await tx.run(END_RUNS, told=_text(told), epoch=epoch, **values)
    if count == len(told):
        return told
    return [row[0] for row in await tx.rows(ENDED_AS_TOLD, told=_text(told), epoch=epoch)]


def _by_what_is_told(told: Told) -> Iterable[tuple[Any, list[int]]]:
    """Runs of which the very same value is told, together: a list of ids costs less than a list of values. SQLite even
    writes all rows to a table of its own first if each gets its value from a list."""
    groups: dict[int, tuple[Any, list[int]]] = {}
    for run_id, said in told.items():
        group = groups.get(id(said))
        if group is None:
            group = groups[id(said)] = (said, [])
        group[1].append(run_id)
    return groups.values()


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
