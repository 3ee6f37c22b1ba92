"""Whole stores in and out, page by page, for copies between stores. A section is one line of `_rooms`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from ksana.domain.archive import Exported, Extent, Key, Section, Standing, key_at, key_of, place_of
from ksana.domain.audit import AuditEntry
from ksana.domain.callbacks import CallbackRecord
from ksana.domain.jobs import Job
from ksana.domain.runs import Attempt, Run
from ksana.domain.times import to_micros
from ksana.stores.json.governed_tables import length_of as weight_of_entry
from ksana.stores.json.moving import readable
from ksana.stores.json.table import Table
from ksana.stores.json.tables import Place, Tables, length_of
from ksana.stores.json.tx import Tx

_PAGE_BYTES = 8 << 20
"""Bodies may be megabytes: a page that would hold more than this ends early."""

_SEQUENCES = ("job", "run", "node", "callback", "audit")

ReadLine = Callable[[Place], Any]


class _Room(NamedTuple):
    """Where the things of a section are, and how a row's key is spelt for the world outside."""

    table: Table[Any, Any]
    spelt: Callable[[Any], Key]
    weight: Callable[[Any], int]


def _light(value: Any) -> int:
    return 0


def _rooms(tables: Tables) -> dict[Section, _Room]:
    return {
        Section.KEYS: _Room(tables.keys, lambda key: (key,), _light),
        Section.JOBS: _Room(tables.jobs, lambda key: (key,), _light),
        Section.RUNS: _Room(tables.runs, lambda key: (key,), lambda run: len(run.input or b"")),
        Section.ATTEMPTS: _Room(tables.attempts, lambda key: key, lambda place: place.length),
        Section.CALLBACKS: _Room(tables.callbacks, lambda key: (key[1],), lambda place: place.length),
        Section.PROGRESS: _Room(tables.progress, lambda key: (key,), _light),
        Section.KEPT: _Room(tables.kept, lambda key: (key,), length_of),
        Section.ALERTS: _Room(tables.alerts, lambda key: key, lambda alert: len(alert.body)),
        Section.GAPS: _Room(tables.gaps, lambda key: (key[0], to_micros(key[1]), key[2].value), _light),
        Section.MINUTES: _Room(tables.minutes, lambda key: (to_micros(key[0]), key[1], key[2].value), _light),
        Section.RECORDS: _Room(tables.answers, lambda key: key, lambda record: len(record.body)),
        Section.OBJECTS: _Room(tables.objects, lambda key: key, _light),
        Section.QUEUES: _Room(tables.settings, lambda key: (key,), _light),
        Section.AUDIT: _Room(tables.audit, lambda key: (key,), weight_of_entry),
    }


def extent(tables: Tables, section: Section) -> Extent:
    if section is Section.STANDING:
        return Extent(1, place_of(()))
    room = _rooms(tables)[section]
    last = max(map(room.spelt, room.table.rows), default=None)
    return Extent(len(room.table.rows), None if last is None else place_of(last))


def export(tables: Tables, read: ReadLine, section: Section, after: str | None, limit: int) -> Exported:
    if section is Section.STANDING:
        return Exported([standing(tables)] if after is None else [], None)
    room = _rooms(tables)[section]
    keys = sorted((room.spelt(key), key) for key in room.table.rows)
    start = 0 if after is None else bisect_right(keys, key_at(after), key=lambda pair: pair[0])
    items: list[Any] = []
    left = _PAGE_BYTES
    for _, key in keys[start : start + limit]:
        value = room.table.rows[key]
        left -= room.weight(value)
        if left < 0 and items:
            break
        items.append(read(value) if isinstance(value, Place) else value)
    is_end = start + len(items) == len(keys)
    return Exported(items, None if is_end or not items else place_of(key_of(section, items[-1])))


def standing(tables: Tables) -> Standing:
    stands = tables.stands
    return msgspec.structs.replace(stands, next_ids=dict.fromkeys(_SEQUENCES, 1) | stands.next_ids)


def restore(tx: Tx, section: Section, items: Sequence[Any]) -> int:
    match section:
        case Section.STANDING:
            return sum([_take_on(tx, one) for one in items])
        case Section.JOBS:
            return sum([_restore_job(tx, job) for job in items])
        case Section.RUNS:
            return sum([_restore_run(tx, run) for run in items])
        case Section.ATTEMPTS:
            return sum([_restore_attempt(tx, attempt) for attempt in items])
        case Section.CALLBACKS:
            return sum([_restore_callback(tx, record) for record in items])
        case Section.AUDIT:
            return sum([_restore_entry(tx, entry) for entry in items])
        case _:
            table = _rooms(tx.tables)[section].table
            return sum([_put_new(tx, table, _key(section, item), item) for item in items])


def _key(section: Section, item: Any) -> Any:
    match section:
        case Section.KEYS:
            return item.id
        case Section.PROGRESS | Section.KEPT:
            return item.run_id
        case Section.QUEUES:
            return item.queue
        case Section.GAPS:
            return item.job_id, item.from_at, item.reason
        case Section.MINUTES:
            return item.minute_at, item.kind, item.state
        case _:
            return key_of(section, item)


def _put_new(tx: Tx, table: Table[Any, Any], key: Any, value: Any) -> bool:
    if key in table.rows:
        return False
    tx.put(table, key, value)
    return True


def _take_on(tx: Tx, new: Standing) -> bool:
    before = tx.tables.stands
    next_ids = dict(before.next_ids)
    for name, next_id in new.next_ids.items():
        next_ids[name] = max(next_id, next_ids.get(name, 1))
    rolled = [at for at in (before.rolled_until, new.rolled_until) if at is not None]
    after = Standing(identity=new.identity, next_ids=next_ids, rolled_until=max(rolled, default=None))
    if standing(tx.tables) == msgspec.structs.replace(after, next_ids=dict.fromkeys(_SEQUENCES, 1) | next_ids):
        return False
    tx.stand(after)
    return True


def _restore_job(tx: Tx, job: Job) -> bool:
    jobs = tx.tables.jobs
    _pass_over(tx, "job", job.id)
    if job.ref and job.deleted_at is None and (job.surface, job.ref) in jobs.by_ref:
        return False
    return _put_new(tx, jobs, job.id, job)


def _restore_run(tx: Tx, run: Run) -> bool:
    runs = tx.tables.runs
    _pass_over(tx, "run", run.id)
    if run.node_id is not None:
        # A new node with the number of the one that held a run would keep it from ever being found as lapsed.
        _pass_over(tx, "node", run.node_id)
    if run.job_id is not None and run.slot_at is not None and runs.has_slot(run.job_id, run.slot_at):
        return False
    return _put_new(tx, runs, run.id, run)


def _restore_attempt(tx: Tx, attempt: Attempt) -> bool:
    return _put_new(tx, tx.tables.attempts, (attempt.run_id, attempt.epoch), readable(attempt))


def _restore_callback(tx: Tx, record: CallbackRecord) -> bool:
    _pass_over(tx, "callback", record.id)
    return _put_new(tx, tx.tables.callbacks, (record.run_id, record.id), record)


def _restore_entry(tx: Tx, entry: AuditEntry) -> bool:
    _pass_over(tx, "audit", entry.id)
    return _put_new(tx, tx.tables.audit, entry.id, entry)


def _pass_over(tx: Tx, sequence: str, id: int) -> None:
    """Have ids handed out above this one."""
    stands = tx.tables.stands
    if stands.next_ids.get(sequence, 1) <= id:
        tx.stand(msgspec.structs.replace(stands, next_ids={**stands.next_ids, sequence: id + 1}))
