"""Forgetting and summing up, in chunks small enough that nobody waits for them."""

from __future__ import annotations

from datetime import datetime
from itertools import chain

from ksana.domain.queries import Minute
from ksana.domain.retention import Retention
from ksana.domain.states import FINAL, State
from ksana.domain.times import to_micros
from ksana.stores.sql.callbacks import forget_callbacks
from ksana.stores.sql.kept import forget_kept
from ksana.stores.sql.nodes import forget_lapsed_nodes
from ksana.stores.sql.rows import minute_from_row
from ksana.stores.sql.statements import (
    CHILD_STATES,
    DROP_ALERTS,
    DROP_ANSWERS,
    DROP_ATTEMPTS,
    DROP_BUCKETS,
    DROP_CHAINS,
    DROP_ENTRIES,
    DROP_EXCHANGES,
    DROP_GAPS,
    DROP_RUNS,
    ENDED_BY_MINUTE,
    FIRST_ENDED,
    LOCK_ROLLED,
    OLD_RUNS,
    ROLLED_MINUTES,
    ROLLED_UNTIL,
    SET_ROLLED,
)
from ksana.stores.sql.tables import MINUTES
from ksana.stores.sql.tx import Tx

_MINUTE = 60_000_000
_MINUTES_PER_STEP = 60

# Dead letters wait for a person; they are never forgotten, nor is the chain one of them is a step of.
_PRUNABLE = sorted(FINAL - {State.DEAD_LETTER})

# Alerts that are still to be delivered have no end, and so no age.
_DROP_OLD = (DROP_ALERTS, DROP_GAPS, DROP_ANSWERS, DROP_ENTRIES)


async def prune(tx: Tx, retention: Retention) -> int:
    gone: list[list[int]] = []
    for state in _PRUNABLE:
        gone += await _old_families(tx, state, retention, retention.limit - len(gone))
    if gone:
        await _forget(tx, sorted(chain.from_iterable(gone)))
    before, limit = to_micros(retention.before), retention.limit
    went = [
        len(gone),
        *[await tx.run(statement, before=before, limit=limit) for statement in _DROP_OLD],
        # A bucket that is not there is as free as one that is no longer busy.
        await tx.run(DROP_BUCKETS, before=to_micros(retention.now) + 1, limit=limit),
    ]
    await forget_lapsed_nodes(tx, retention.now)
    return max(went)


async def _old_families(tx: Tx, state: State, retention: Retention, limit: int) -> list[list[int]]:
    """At most `limit` runs of a state that may be forgotten, each with all that descend from it."""
    families: list[list[int]] = []
    passed = 0
    before, keep = to_micros(retention.before), retention.keep_last
    while (left := limit - len(families)) > 0:
        rows = await tx.rows(OLD_RUNS, state=state.value, before=before, keep=keep, limit=left, passed=passed)
        passed += len(rows)
        families += await _without_dead_letters(tx, [row[0] for row in rows])
        if len(rows) < left:
            break
    return families


async def _without_dead_letters(tx: Tx, roots: list[int]) -> list[list[int]]:
    """The families of these runs, but for those in which a dead letter waits."""
    families = {root: [root] for root in roots}
    root_of = {root: root for root in roots}
    generation = roots
    while generation:
        children = await tx.rows(CHILD_STATES, ids=generation)
        for id, parent_id, state in children:
            root = root_of[id] = root_of[parent_id]
            if state == State.DEAD_LETTER.value:
                families.pop(root, None)
            if root in families:
                families[root].append(id)
        generation = [id for id, _, _ in children]
    return list(families.values())


async def _forget(tx: Tx, ids: list[int]) -> None:
    """Drop runs with all that hangs on them."""
    for statement in (DROP_EXCHANGES, DROP_ATTEMPTS, DROP_RUNS, DROP_CHAINS):
        await tx.run(statement, ids=ids)
    await forget_callbacks(tx, ids)
    await forget_kept(tx, ids)


async def roll_up(tx: Tx, until: datetime) -> int:
    end = to_micros(until) // _MINUTE * _MINUTE
    # The row is locked, so two nodes never sum the same minute.
    [(rolled,)] = await tx.rows(LOCK_ROLLED)
    first = await _first_ended(tx, rolled)
    if rolled >= end or (rolled == 0 and first is None):
        return 0
    # Minutes in which nothing ended are stepped over at once, however many there are.
    start = end if first is None else min(end, first // _MINUTE * _MINUTE)
    stop = min(end, start + _MINUTES_PER_STEP * _MINUTE)
    if rows := await _summed(tx, start, stop):
        await tx.insert_new(MINUTES, rows)
    await tx.run(SET_ROLLED, until=stop)
    return int(stop - (rolled or start)) // _MINUTE


async def _first_ended(tx: Tx, since: int) -> int | None:
    found = [row[0] for state in FINAL for row in await tx.rows(FIRST_ENDED, state=state.value, since=since)]
    return min(found, default=None)


async def _summed(tx: Tx, since: int, until: int) -> list[tuple[int, str, str, int, int, int]]:
    return [
        (minute_at, kind, state.value, count, int(busy) // 1000, int(late) // 1000)
        for state in sorted(FINAL)
        for minute_at, kind, count, busy, late in await tx.rows(
            ENDED_BY_MINUTE, state=state.value, since=since, until=until
        )
    ]


async def minutes(tx: Tx, since: datetime, until: datetime) -> list[Minute]:
    start, end = to_micros(since) // _MINUTE * _MINUTE, -(-to_micros(until) // _MINUTE) * _MINUTE
    [(rolled,)] = await tx.rows(ROLLED_UNTIL)
    rows = await tx.rows(ROLLED_MINUTES, since=start, until=min(end, max(rolled, start)))
    rows += sorted(await _summed(tx, max(start, rolled), end))
    return [minute_from_row(row) for row in rows]
