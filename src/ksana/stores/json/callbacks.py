"""The ledger of callbacks, and how far runs have come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ksana.domain.callbacks import LEDGER_LENGTH, CallbackRecord, Heard, Progress
from ksana.domain.jobs import Job
from ksana.domain.moves import Move, storable
from ksana.domain.runs import Attempt
from ksana.stores.json.families import move
from ksana.stores.json.moving import readable, readable_headers
from ksana.stores.json.outbox import keep_alerts
from ksana.stores.json.tables import Tables
from ksana.stores.json.tx import Tx

_replace = msgspec.structs.replace


def hear(tx: Tx, heard: Heard) -> list[tuple[Move, Job | None]] | None:
    lost, _, followed = move(tx, [] if heard.move is None else [heard.move], heard.hooks)
    if lost:
        return None
    if not heard.needs_room or len(tx.tables.callbacks.of_run[heard.record.run_id]) < LEDGER_LENGTH:
        keep_callback(tx, heard.record)
    if heard.progress is not None:
        progress = _replace(heard.progress, message=storable(heard.progress.message))
        tx.put(tx.tables.progress, progress.run_id, progress)
    keep_alerts(tx, heard.alerts)
    return followed


def keep_callback(tx: Tx, record: CallbackRecord) -> None:
    kept = _replace(record, note=storable(record.note), headers=readable_headers(record.headers))
    tx.put(tx.tables.callbacks, (record.run_id, record.id), kept)


def progress(tables: Tables, run_ids: Iterable[int]) -> dict[int, Progress]:
    rows = tables.progress.rows
    return {run_id: rows[run_id] for run_id in run_ids if run_id in rows}


def add_attempts(tx: Tx, attempts: Sequence[Attempt]) -> None:
    tables = tx.tables
    for attempt in attempts:
        key = (attempt.run_id, attempt.epoch)
        if attempt.run_id in tables.runs.rows and key not in tables.attempts.rows:
            tx.put(tables.attempts, key, readable(attempt))
