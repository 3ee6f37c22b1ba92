"""Items of the queue: enqueued once, handed out to one worker at a time."""

from __future__ import annotations

from collections.abc import Sequence

from ksana.domain.items import Enqueued, Pull, first_of, pulled
from ksana.domain.policies import Priority
from ksana.domain.runs import Run
from ksana.stores.json.tables import Tables
from ksana.stores.json.tx import Tx


def enqueue(tx: Tx, items: Sequence[Enqueued]) -> list[int]:
    return [_stands_for(tx, item) for item in items]


def _stands_for(tx: Tx, item: Enqueued) -> int:
    """The run that stands for an item: its own, unless its key was used."""
    run, record = item.run, item.record
    if record is not None:
        key = (record.scope, record.key)
        earlier = tx.tables.answers.get(key)
        if earlier is not None:
            return int(earlier.body)
        tx.put(tx.tables.answers, key, record)
    tx.put(tx.tables.runs, run.id, run)
    return run.id


def pull(tx: Tx, pull: Pull) -> list[Run]:
    due = [run for priority in Priority for run in _due(tx.tables, pull, priority)]
    chosen = [pulled(run, pull) for run in first_of(due, pull)]
    for run in chosen:
        tx.put(tx.tables.runs, run.id, run)
    return chosen


def _due(tables: Tables, pull: Pull, priority: Priority) -> list[Run]:
    """The next due items of one priority, of the types that are wanted."""
    ready = tables.runs.ready[pull.queue, priority.value]
    found: list[Run] = []
    for _, run_id in ready[: ready.through(pull.now)]:
        run = tables.runs.rows[run_id]
        if not pull.types or run.step in pull.types:
            found.append(run)
            if len(found) == pull.limit:
                break
    return found
