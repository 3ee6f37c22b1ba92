"""Firing just as foreseen: where nobody else writes meanwhile, cursors that stand are found by moving them, and runs
that differ in nothing but their job are born of one statement. If anything is not as it was foreseen, nothing is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ksana.domain.foresight import Births
from ksana.domain.times import to_micros
from ksana.stores.sql.firing import active_runs
from ksana.stores.sql.statements import Statement
from ksana.stores.sql.tables import FRESH_RUNS
from ksana.stores.sql.tx import Tx

# How many are alike, on average, for a statement for each kind to be worth it.
_ALIKE = 8
_NO_LIMIT = -1

_ID, _JOB_ID, *_COMMON = FRESH_RUNS.names
_AT_BIRTH = ("created_at", "started_at")
_KNOWN = tuple(name for name in _COMMON if name not in _AT_BIRTH)

MOVE_STANDING_CURSORS = Statement(
    # The sign keeps SQLite from finding rows by the very index it rewrites.
    "UPDATE ksana_cursors {by_key} SET next_slot_at = :next_slot_at, next_fire_at = :next_fire_at"
    " WHERE job_id IN (:ids*) AND version = :version AND COALESCE(slot_limit, -1) = :slot_limit"
    " AND next_slot_at = :slot_at AND +next_fire_at = :fire_at"
)
ADD_RUNS_ALIKE = Statement(
    f"INSERT INTO ksana_runs ({_ID}, {_JOB_ID}, {', '.join(_COMMON)})"
    f" SELECT born.key, born.value, {', '.join(f':{name}' for name in _COMMON)} FROM {{each_born}}"
    " WHERE TRUE ON CONFLICT DO NOTHING"
)


class NotAsForeseenError(Exception):
    """Something has come in between."""


Cursor = tuple[Any, ...]
Row = tuple[Any, ...]


class Alike(NamedTuple):
    """Prospects by what they have in common: cursors that go from one place to one other, and the kinds of runs, of
    which each prospect has one, by its number, for a run that waits and one that is claimed at birth."""

    moves: list[tuple[dict[str, Any], list[int]]]
    limits: dict[int, int]
    kinds: list[dict[str, Any]]
    jobs: list[int]
    scheduled: list[int]
    claimed: list[int]


class Born(NamedTuple):
    """So many runs of one kind; `values` has their ids, each with its job, as JSON."""

    size: int
    values: dict[str, Any]


def alike(
    cursors: dict[int, Cursor],
    moves: Sequence[tuple[int, int | None, int | None]],
    scheduled: Sequence[Row],
    claimed: Sequence[Row],
) -> Alike | None:
    """What prospects have in common, from their fresh rows; None if that is too little."""
    places: dict[Cursor, list[int]] = {}
    for job_id, *place in moves:
        places.setdefault((*cursors[job_id][1:], *place), []).append(job_id)
    kinds: dict[Row, int] = {}
    waiting = [_kind_of(row, kinds) for row in scheduled]
    taken = [_kind_of(row, kinds) for row in claimed]
    if _ALIKE * max(len(places), len(kinds)) > len(moves):
        return None
    return Alike(
        [(_said_of(place), ids) for place, ids in places.items()],
        {job_id: cursor[2] for job_id, cursor in cursors.items() if cursor[2] is not None},
        [dict(zip(_KNOWN, kind, strict=True)) for kind in kinds],
        [job_id for job_id, _, _ in moves],
        waiting,
        taken,
    )


_PLACES = [place for place, name in enumerate(FRESH_RUNS.names) if name in _KNOWN]


def _kind_of(row: Row, kinds: dict[Row, int]) -> int:
    return kinds.setdefault(tuple([row[place] for place in _PLACES]), len(kinds))


def _said_of(place: Cursor) -> dict[str, Any]:
    version, limit, slot_at, fire_at, next_slot_at, next_fire_at = place
    return {
        "version": version,
        "slot_limit": _NO_LIMIT if limit is None else limit,
        "slot_at": slot_at,
        "fire_at": fire_at,
        "next_slot_at": next_slot_at,
        "next_fire_at": next_fire_at,
    }


def born_of(alike: Alike, births: Births, claims: int) -> list[Born]:
    """The runs that come of the prospects, if all of them stand; as many of the first as said are claimed."""
    now = to_micros(births.now)
    found: dict[tuple[int, bool], dict[int, int]] = {}
    parts = ((True, slice(claims), alike.claimed), (False, slice(claims, None), alike.scheduled))
    for is_claimed, part, kinds in parts:
        for run_id, job_id, kind in zip(births.ids[part], alike.jobs[part], kinds[part], strict=True):
            jobs = found.get((kind, is_claimed))
            if jobs is None:
                jobs = found[kind, is_claimed] = {}
            jobs[run_id] = job_id
    born: list[Born] = []
    for (kind, is_claimed), jobs in found.items():
        told = {"born": _encode(jobs).decode(), "created_at": now, "started_at": now if is_claimed else None}
        born.append(Born(len(jobs), {**alike.kinds[kind], **told}))
    return born


_encode = msgspec.json.Encoder().encode


async def fire(tx: Tx, alike: Alike, born: Sequence[Born]) -> None:
    """Store all of it, or raise NotAsForeseenError for the step to be undone."""
    # First what is most often not as foreseen, so that there is nothing to undo.
    active = await active_runs(tx, list(alike.limits))
    if any(count >= alike.limits[job_id] for job_id, count in active.items()):
        raise NotAsForeseenError
    for place, ids in alike.moves:
        if await tx.run(MOVE_STANDING_CURSORS, ids=ids, **place) < len(ids):
            raise NotAsForeseenError
    for size, values in born:
        if await tx.run(ADD_RUNS_ALIKE, **values) < size:
            raise NotAsForeseenError
