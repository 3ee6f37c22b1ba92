"""Forgetting and summing up, in steps small enough that nobody waits for them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ksana.domain.queries import Minute
from ksana.domain.retention import Retention
from ksana.domain.runs import Run
from ksana.domain.states import FINAL, State
from ksana.domain.times import EPOCH
from ksana.stores.json.nodes import forget_lapsed_nodes
from ksana.stores.json.ordered import K, Ordered
from ksana.stores.json.table import Table
from ksana.stores.json.tables import MinuteKey, Tables
from ksana.stores.json.tx import Tx

_MINUTE = timedelta(minutes=1)
_STEP = 60 * _MINUTE
_TICK = timedelta(microseconds=1)
_MILLI = timedelta(milliseconds=1)
_NONE = timedelta(0)

# Dead letters wait for a person; they are never forgotten, nor is the chain one of them is a step of.
_PRUNABLE = sorted(FINAL - {State.DEAD_LETTER})


def prune(tx: Tx, retention: Retention) -> int:
    tables = tx.tables
    gone: list[int] = []
    for state in _PRUNABLE:
        gone += _old_runs(tables, state, retention, retention.limit - len(gone))
    for run_id in gone:
        for member in _family(tables, run_id):
            _forget(tx, member)
    last, limit = retention.before - _TICK, retention.limit
    went = [
        len(gone),
        # Alerts that are still to be delivered have no end, and so no age.
        _forget_oldest(tx, tables.alerts, tables.alerts.ended, last, limit),
        _forget_oldest(tx, tables.audit, tables.audit.made, last, limit),
        _forget_oldest(tx, tables.gaps, tables.gaps.recorded, last, limit),
        _forget_oldest(tx, tables.answers, tables.answers.created, last, limit),
        _forget_oldest(tx, tables.buckets, tables.buckets.busy, retention.now, limit),
    ]
    forget_lapsed_nodes(tx, retention.now)
    return max(went)


def _forget_oldest(
    tx: Tx, table: Table[K, Any], by_age: Ordered[tuple[datetime, K]], last: datetime, limit: int
) -> int:
    """Drop at most `limit` of those that are as old as `last`."""
    oldest = by_age[: min(by_age.through(last), limit)]
    for _, key in oldest:
        tx.drop(table, key)
    return len(oldest)


def _family(tables: Tables, run_id: int) -> list[int]:
    """A run and all that descend from it."""
    found = [run_id]
    for member in found:
        found += tables.runs.children[member]
    return found


def _forget(tx: Tx, run_id: int) -> None:
    """Drop a run with all that was said of it."""
    tables = tx.tables
    for epoch in list(tables.attempts.of_run[run_id]):
        tx.drop(tables.attempts, (run_id, epoch))
    for number in list(tables.callbacks.of_run[run_id]):
        tx.drop(tables.callbacks, (run_id, number))
    tx.drop(tables.progress, run_id)
    tx.drop(tables.kept, run_id)
    tx.drop(tables.runs, run_id)


def _old_runs(tables: Tables, state: State, retention: Retention, limit: int) -> list[int]:
    """At most `limit` runs of a state that ended long enough ago and are not among the newest of their job. A child
    goes with its parent and never before."""
    found: list[int] = []
    for ended_at, run_id in tables.runs.ended[state]:
        if len(found) >= limit or ended_at >= retention.before:
            break
        if tables.runs.rows[run_id].parent_id is None and not _is_kept(tables, run_id, retention.keep_last):
            found.append(run_id)
    return found


def _is_kept(tables: Tables, run_id: int, count: int) -> bool:
    return _is_among_newest(tables, run_id, count) or any(
        tables.runs.rows[member].state is State.DEAD_LETTER for member in _family(tables, run_id)
    )


def _is_among_newest(tables: Tables, run_id: int, count: int) -> bool:
    job_id = tables.runs.rows[run_id].job_id
    if job_id is None:
        return False
    ids = tables.runs.of_job[job_id]
    return len(ids) <= count or run_id > ids[-1 - count]


def roll_up(tx: Tx, until: datetime) -> int:
    tables = tx.tables
    end = _minute(until)
    rolled = tables.stands.rolled_until
    first = _first_ended(tables, rolled or EPOCH)
    if (rolled is not None and rolled >= end) or (rolled is None and first is None):
        return 0
    # Minutes in which nothing ended are stepped over at once, however many there are.
    start = end if first is None else min(end, _minute(first))
    stop = min(end, start + _STEP)
    for minute in _summed(tables, start, stop):
        key = (minute.minute_at, minute.kind, minute.state)
        if key not in tables.minutes.rows:
            tx.put(tables.minutes, key, minute)
    count = (stop - (rolled or start)) // _MINUTE
    if rolled is not None or count:
        tx.stand(msgspec.structs.replace(tables.stands, rolled_until=stop))
    return count


def _minute(instant: datetime) -> datetime:
    return instant.replace(second=0, microsecond=0)


def _first_ended(tables: Tables, since: datetime) -> datetime | None:
    found = (keys[at][0] for keys in _ended(tables) if (at := keys.below((since, -1))) < len(keys))
    return min(found, default=None)


def _ended(tables: Tables) -> Iterator[Ordered[tuple[datetime, int]]]:
    return (tables.runs.ended[state] for state in tables.runs.ended.groups() if state in FINAL)


def _summed(tables: Tables, since: datetime, until: datetime) -> list[Minute]:
    """What ended in [since, until), by minute, kind and state."""
    sums: dict[MinuteKey, list[Run]] = {}
    for keys in _ended(tables):
        for ended_at, run_id in keys[keys.below((since, -1)) : keys.below((until, -1))]:
            run = tables.runs.rows[run_id]
            sums.setdefault((_minute(ended_at), run.kind, run.state), []).append(run)
    return [
        Minute(
            minute_at=minute_at,
            kind=kind,
            state=state,
            count=len(runs),
            busy_ms=sum((_busy(run) for run in runs), _NONE) // _MILLI,
            late_ms=sum((_late(run) for run in runs), _NONE) // _MILLI,
        )
        for (minute_at, kind, state), runs in sorted(sums.items())
    ]


def _busy(run: Run) -> timedelta:
    return _NONE if run.started_at is None or run.ended_at is None else run.ended_at - run.started_at


def _late(run: Run) -> timedelta:
    return _NONE if run.started_at is None else max(_NONE, run.started_at - run.due_at)


def minutes(tables: Tables, since: datetime, until: datetime) -> list[Minute]:
    start, end = _minute(since), _minute(until + _MINUTE - _TICK)
    rolled = tables.stands.rolled_until
    first_open = start if rolled is None else max(start, rolled)
    keys = tables.minutes.keys
    kept = keys[keys.below((start,)) : keys.below((min(end, first_open),))]
    return [tables.minutes.rows[key] for key in kept] + _summed(tables, first_open, end)
