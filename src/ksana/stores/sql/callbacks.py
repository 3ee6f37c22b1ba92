"""The ledger of callbacks, and how far runs have come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ksana.domain.callbacks import LEDGER_LENGTH, CallbackRecord, CallbackStatus, Heard, Progress
from ksana.domain.jobs import Job
from ksana.domain.moves import Move
from ksana.domain.runs import Attempt
from ksana.domain.times import from_micros, to_micros
from ksana.stores.sql.attempt_rows import attempt_to_row, exchange_to_row
from ksana.stores.sql.catalog import Catalog
from ksana.stores.sql.families import Families, move
from ksana.stores.sql.moving import prepare
from ksana.stores.sql.outbox import keep_alerts
from ksana.stores.sql.rows import Row, instant_or_none, micros_or_none, storable
from ksana.stores.sql.statements import RUNS_PRESENT, Statement
from ksana.stores.sql.tables import ATTEMPTS, EXCHANGES, Table
from ksana.stores.sql.tx import Tx

CALLBACKS = Table(
    "ksana_callbacks",
    (
        ("id", "int"),
        ("run_id", "int"),
        ("received_at", "int"),
        ("status", "text"),
        ("note", "text"),
        ("headers", "bytes"),
        ("body", "bytes"),
    ),
)
PROGRESS = Table(
    "ksana_progress",
    (
        ("run_id", "int"),
        ("attempt", "int"),
        ("millionths", "int"),
        ("message", "text"),
        ("reported_at", "int"),
        ("limit_at", "int"),
    ),
)

CALLBACKS_OF_RUN = Statement(
    f"SELECT {', '.join(CALLBACKS.names)} FROM ksana_callbacks WHERE run_id = :run_id ORDER BY id"
)
COUNT_CALLBACKS = Statement("SELECT COUNT(*) FROM ksana_callbacks WHERE run_id = :run_id")
LOCK_PROGRESS = Statement("SELECT run_id FROM ksana_progress {by_key} WHERE run_id IN (:ids*) {for_update}")
PROGRESS_OF_RUNS = Statement(f"SELECT {', '.join(PROGRESS.names)} FROM ksana_progress WHERE run_id IN (:ids*)")
DROP_CALLBACKS = Statement("DELETE FROM ksana_callbacks WHERE run_id IN (:ids*)")
DROP_PROGRESS = Statement("DELETE FROM ksana_progress WHERE run_id IN (:ids*)")

_MILLION = 1_000_000
_decode_headers = msgspec.json.Decoder(dict[str, str]).decode


async def hear(tx: Tx, catalog: Catalog, families: Families, heard: Heard) -> list[tuple[Move, Job | None]] | None:
    followed: list[tuple[Move, Job | None]] = []
    if heard.move is not None:
        lost, _, followed, _ = await move(tx, catalog, families, prepare([heard.move]), heard.hooks)
        if lost:
            return None
    if not heard.needs_room or await _has_room(tx, heard.record.run_id):
        await tx.insert(CALLBACKS, [callback_to_row(heard.record)])
    if heard.progress is not None:
        await _keep_progress(tx, heard.progress)
    if heard.alerts:
        await keep_alerts(tx, heard.alerts)
    return followed


async def _has_room(tx: Tx, run_id: int) -> bool:
    # Nothing is locked for it: callbacks of the very same moment may go a little beyond.
    [(kept,)] = await tx.rows(COUNT_CALLBACKS, run_id=run_id)
    return bool(kept < LEDGER_LENGTH)


async def _keep_progress(tx: Tx, progress: Progress) -> None:
    row = progress_to_row(progress)
    if await tx.insert_new(PROGRESS, [row]) == 0:
        await tx.rows(LOCK_PROGRESS, ids=[progress.run_id])
        await tx.update(PROGRESS, [row])


async def callbacks(tx: Tx, run_id: int) -> list[CallbackRecord]:
    return [callback_from_row(row) for row in await tx.rows(CALLBACKS_OF_RUN, run_id=run_id)]


async def progress(tx: Tx, run_ids: Iterable[int]) -> dict[int, Progress]:
    return {row[0]: progress_from_row(row) for row in await tx.rows(PROGRESS_OF_RUNS, ids=list(run_ids))}


async def add_attempts(tx: Tx, attempts: Sequence[Attempt]) -> None:
    present = {row[0] for row in await tx.rows(RUNS_PRESENT, ids=[attempt.run_id for attempt in attempts])}
    # One by one: whether its exchange is kept hangs on whether the attempt was new.
    for attempt in attempts:
        is_new = attempt.run_id in present and await tx.insert_new(ATTEMPTS, [attempt_to_row(attempt)])
        if is_new and attempt.exchange is not None:
            await tx.insert(EXCHANGES, [exchange_to_row(attempt, attempt.exchange)])


async def forget_callbacks(tx: Tx, run_ids: Sequence[int]) -> None:
    """Drop what was said of runs that are forgotten."""
    await tx.run(DROP_CALLBACKS, ids=run_ids)
    await tx.run(DROP_PROGRESS, ids=run_ids)


def callback_to_row(record: CallbackRecord) -> tuple[Any, ...]:
    headers = {storable(name): storable(value) for name, value in record.headers.items()}
    return (
        record.id,
        record.run_id,
        to_micros(record.received_at),
        record.status.value,
        storable(record.note),
        msgspec.json.encode(headers),
        record.body,
    )


def callback_from_row(row: Row) -> CallbackRecord:
    id, run_id, received_at, status, note, headers, body = row
    return CallbackRecord(
        id=id,
        run_id=run_id,
        received_at=from_micros(received_at),
        status=CallbackStatus(status),
        note=note,
        headers=_decode_headers(headers),
        body=bytes(body),
    )


def progress_to_row(progress: Progress) -> tuple[Any, ...]:
    return (
        progress.run_id,
        progress.attempt,
        None if progress.fraction is None else round(progress.fraction * _MILLION),
        storable(progress.message),
        to_micros(progress.reported_at),
        micros_or_none(progress.limit_at),
    )


def progress_from_row(row: Row) -> Progress:
    run_id, attempt, millionths, message, reported_at, limit_at = row
    return Progress(
        run_id=run_id,
        attempt=attempt,
        fraction=None if millionths is None else millionths / _MILLION,
        message=message,
        reported_at=from_micros(reported_at),
        limit_at=instant_or_none(limit_at),
    )
