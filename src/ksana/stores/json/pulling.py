"""Items of the queue: enqueued once, handed out to one worker at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from datetime import datetime
from heapq import merge
from itertools import islice

from ksana.domain.handing_out import HandingOut, Known, Pulled
from ksana.domain.items import Enqueued, Pull, pull_key
from ksana.domain.policies import Priority
from ksana.domain.runs import Run
from ksana.stores.json.governed_tables import Bucket
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


def pull(tx: Tx, pull: Pull) -> Pulled:
    tables, queue = tx.tables, pull.queue
    held, busy_until = len(tables.runs.handed_out[queue, None]), tables.buckets.busy_until(queue)
    handing = HandingOut(pull, tables.settings.get(queue), held, busy_until)
    due = merge(*(_due(tables, pull, priority, handing.full) for priority in Priority), key=_place(pull))
    while not handing.is_over and (page := list(islice(due, pull.limit))):
        handing.learn({subject: _known(tables, queue, subject) for subject in handing.unknown(page)})
        handing.offer(page)
    for run in handing.handed:
        tx.put(tables.runs, run.id, run)
    for governed in handing.objects.values():
        tx.put(tables.objects, (governed.type, governed.id), governed)
    for subject, until in handing.buckets.items():
        tx.put(tables.buckets, (queue, subject), Bucket(queue, subject, until))
    return Pulled(handing.handed, handing.refused, handing.blocked)


def _place(pull: Pull) -> Callable[[Run], tuple[datetime, int, int]]:
    return lambda run: pull_key(pull.order, run.due_at, run.priority, run.id)


def _due(tables: Tables, pull: Pull, priority: Priority, full: Set[str]) -> Iterator[Run]:
    """The due items of one priority, of the types that are wanted, one after the other; none of subjects that are full
    by then."""
    ready = tables.runs.ready[pull.queue, priority.value]
    for _, run_id in islice(ready, ready.through(pull.now)):
        run = tables.runs.rows[run_id]
        if (not pull.types or run.step in pull.types) and run.subject not in full:
            yield run


def _known(tables: Tables, queue: str, subject: str) -> Known:
    return Known(
        tables.objects.by_subject.get(subject),
        len(tables.runs.handed_out[queue, subject]),
        tables.buckets.busy_until(queue, subject),
    )
