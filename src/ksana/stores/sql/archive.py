"""Whole stores in and out, page by page, for copies between stores. A section is one line of `_ROOMS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from ksana.domain.archive import Exported, Extent, Key, Section, Standing, key_at, key_of, place_of
from ksana.domain.callbacks import CallbackRecord
from ksana.domain.jobs import Job
from ksana.domain.runs import Attempt, Run
from ksana.domain.times import from_micros
from ksana.stores.sql import callbacks, outbox, rows
from ksana.stores.sql.jobs import tag_jobs
from ksana.stores.sql.statements import (
    ALL_SEQUENCES,
    ATTEMPTS,
    ATTEMPTS_PRESENT,
    CURSORS,
    EXCHANGES,
    GAPS,
    IDEMPOTENCY,
    JOBS,
    JOBS_PRESENT,
    KEYS,
    MINUTES,
    RAISE_ROLLED,
    RAISE_SEQUENCE,
    READ_IDENTITY,
    ROLLED_UNTIL,
    RUNS,
    RUNS_PRESENT,
    SEQUENCES,
    TAKE_IDENTITY,
    WALK_ATTEMPTS,
    WALK_JOBS,
    Leg,
    Table,
    Walk,
    walk,
)
from ksana.stores.sql.tx import Tx

_PAGE_BYTES = 8 << 20
"""Bodies may be megabytes: a page that would hold more than this ends early."""


async def extent(tx: Tx, section: Section) -> Extent:
    if section is Section.STANDING:
        return Extent(1, place_of(()))
    walk = _ROOMS[section].walk
    [(count,)] = await tx.rows(walk.size)
    last = await tx.rows(walk.last)
    return Extent(count, place_of(tuple(last[0])) if last else None)


async def export(tx: Tx, section: Section, after: str | None, limit: int) -> Exported:
    if section is Section.STANDING:
        return Exported([await _standing(tx)] if after is None else [], None)
    room = _ROOMS[section]
    found, is_end = await _read_on(tx, room.walk, None if after is None else key_at(after), limit)
    items = [room.from_row(row) for row in found]
    return Exported(items, None if is_end else place_of(key_of(section, items[-1])))


async def _read_on(tx: Tx, walk: Walk, after: Key | None, limit: int) -> tuple[list[rows.Row], bool]:
    """The next rows of a walk, and whether there are no more."""
    legs: tuple[Leg, ...] = (walk.start,) if after is None else walk.onward
    keys = {f"key{depth}": value for depth, value in enumerate(after or ())}
    found: list[rows.Row] = []
    left = _PAGE_BYTES
    for leg in legs:
        weights = [int(weight) for (weight,) in await tx.rows(leg.weigh, **keys, limit=limit - len(found))]
        fitting = 0
        for weight in weights:
            if left < weight and (found or fitting):
                break
            left -= weight
            fitting += 1
        if fitting:
            found += await tx.rows(leg.read, **keys, limit=fitting)
        if fitting < len(weights) or len(found) == limit:
            return found, False
    return found, True


async def restore(tx: Tx, section: Section, items: Sequence[Any]) -> int:
    if section is Section.STANDING:
        return sum([await _take_on(tx, standing) for standing in items])
    return await _ROOMS[section].restore(tx, items) if items else 0


async def _standing(tx: Tx) -> Standing:
    [(identity,)] = await tx.rows(READ_IDENTITY)
    [(rolled,)] = await tx.rows(ROLLED_UNTIL)
    return Standing(
        identity=identity,
        next_ids=dict([tuple(row) for row in await tx.rows(ALL_SEQUENCES)]),
        rolled_until=from_micros(rolled) if rolled else None,
    )


async def _take_on(tx: Tx, standing: Standing) -> int:
    before = await _standing(tx)
    await tx.run(TAKE_IDENTITY, value=standing.identity)
    for name, next_id in standing.next_ids.items():
        if name in before.next_ids:
            await tx.run(RAISE_SEQUENCE, name=name, next_id=next_id)
        else:
            await tx.insert_new(SEQUENCES, [(name, next_id)])
    if standing.rolled_until is not None:
        await tx.run(RAISE_ROLLED, until=rows.micros_or_none(standing.rolled_until))
    return int(await _standing(tx) != before)


async def _restore_jobs(tx: Tx, jobs: Sequence[Job]) -> int:
    ids = [job.id for job in jobs]
    await _pass_over(tx, "job", ids)
    present = await _present(tx, ids)
    await tx.insert_new(JOBS, [rows.job_to_row(job) for job in jobs if job.id not in present])
    # One whose ref is taken here did not get in, and a cursor without its job would come due for ever.
    added = await _present(tx, ids) - present
    new = [job for job in jobs if job.id in added]
    await tx.insert(CURSORS, [rows.cursor_to_row(job) for job in new])
    await tag_jobs(tx, [job for job in new if job.deleted_at is None])
    return len(new)


async def _present(tx: Tx, ids: list[int]) -> set[int]:
    return {row[0] for row in await tx.rows(JOBS_PRESENT, ids=ids)}


async def _restore_runs(tx: Tx, runs: Sequence[Run]) -> int:
    ids = [run.id for run in runs]
    await _pass_over(tx, "run", ids)
    # A new node with the number of the one that held a run would keep it from ever being found as lapsed.
    await _pass_over(tx, "node", [run.node_id for run in runs if run.node_id is not None])
    present = {row[0] for row in await tx.rows(RUNS_PRESENT, ids=ids)}
    return await tx.insert_new(RUNS, [rows.run_to_row(run) for run in runs if run.id not in present])


async def _restore_attempts(tx: Tx, attempts: Sequence[Attempt]) -> int:
    run_ids = sorted({attempt.run_id for attempt in attempts})
    present = {tuple(row) for row in await tx.rows(ATTEMPTS_PRESENT, ids=run_ids)}
    new = [attempt for attempt in attempts if (attempt.run_id, attempt.epoch) not in present]
    added = await tx.insert_new(ATTEMPTS, [rows.attempt_to_row(attempt) for attempt in new])
    exchanges = [rows.exchange_to_row(attempt, attempt.exchange) for attempt in new if attempt.exchange is not None]
    await tx.insert_new(EXCHANGES, exchanges)
    return added


async def _restore_callbacks(tx: Tx, records: Sequence[CallbackRecord]) -> int:
    await _pass_over(tx, "callback", [record.id for record in records])
    return await tx.insert_new(callbacks.CALLBACKS, [callbacks.callback_to_row(record) for record in records])


async def _pass_over(tx: Tx, sequence: str, ids: Sequence[int]) -> None:
    """Have ids handed out above these, and nobody else restore things of this kind meanwhile."""
    if ids:
        await tx.run(RAISE_SEQUENCE, name=sequence, next_id=max(ids) + 1)


class _Room(NamedTuple):
    """How one section is walked through, read and filled."""

    walk: Walk
    from_row: Callable[[rows.Row], Any]
    restore: Callable[[Tx, Sequence[Any]], Awaitable[int]]


def _plain(
    table: Table,
    *keys: str,
    from_row: Callable[[rows.Row], Any],
    to_row: Callable[[Any], tuple[Any, ...]],
    large: tuple[str, ...] = (),
) -> _Room:
    """A section that is one table, with nothing beside it."""

    async def restore(tx: Tx, items: Sequence[Any]) -> int:
        return await tx.insert_new(table, [to_row(item) for item in items])

    return _Room(walk(table, *keys, large=large), from_row, restore)


_ROOMS: dict[Section, _Room] = {
    Section.KEYS: _plain(KEYS, "id", from_row=rows.key_from_row, to_row=rows.key_to_row),
    Section.JOBS: _Room(WALK_JOBS, rows.job_from_row, _restore_jobs),
    Section.RUNS: _Room(walk(RUNS, "id", large=("input",)), rows.run_from_row, _restore_runs),
    Section.ATTEMPTS: _Room(WALK_ATTEMPTS, rows.attempt_from_row, _restore_attempts),
    Section.CALLBACKS: _Room(
        walk(callbacks.CALLBACKS, "id", large=("body",)), callbacks.callback_from_row, _restore_callbacks
    ),
    Section.PROGRESS: _plain(
        callbacks.PROGRESS, "run_id", from_row=callbacks.progress_from_row, to_row=callbacks.progress_to_row
    ),
    Section.ALERTS: _plain(
        outbox.ALERTS,
        "run_id",
        "epoch",
        "hook",
        from_row=outbox.alert_from_row,
        to_row=outbox.alert_to_row,
        large=("body",),
    ),
    Section.GAPS: _plain(GAPS, "job_id", "from_at", "reason", from_row=rows.gap_from_row, to_row=rows.gap_to_row),
    Section.MINUTES: _plain(
        MINUTES, "minute_at", "kind", "state", from_row=rows.minute_from_row, to_row=rows.minute_to_row
    ),
    Section.RECORDS: _plain(
        IDEMPOTENCY,
        "scope",
        "idem_key",
        from_row=rows.record_from_row,
        to_row=rows.record_to_row,
        large=("body",),
    ),
}
