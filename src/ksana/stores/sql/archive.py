"""Whole stores in and out, page by page, for copies between stores. A section is one line of `_ROOMS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from ksana.domain.archive import Exported, Extent, Key, Section, Standing, key_at, key_of, place_of
from ksana.domain.audit import AuditEntry
from ksana.domain.callbacks import CallbackRecord
from ksana.domain.jobs import Job
from ksana.domain.runs import Attempt, Run
from ksana.domain.times import from_micros
from ksana.stores.sql import attempt_rows, callbacks, governed_rows, job_rows, kept, outbox, rows, run_rows
from ksana.stores.sql.audit import add_audit
from ksana.stores.sql.governed_statements import AUDIT, OBJECTS, QUEUES
from ksana.stores.sql.jobs import tag_jobs
from ksana.stores.sql.statements import (
    ALL_SEQUENCES,
    ATTEMPTS_PRESENT,
    JOBS_PRESENT,
    LAST_ATTEMPT_OF_RUN,
    LAST_ATTEMPTS_OF_RUNS,
    RAISE_ROLLED,
    RAISE_SEQUENCE,
    READ_IDENTITY,
    ROLLED_UNTIL,
    RUNS_PRESENT,
    TAKE_IDENTITY,
)
from ksana.stores.sql.tables import (
    ATTEMPTS,
    CHAINS,
    CURSORS,
    EXCHANGES,
    GAPS,
    IDEMPOTENCY,
    JOBS,
    KEPT,
    KEYS,
    MINUTES,
    RUNS,
    SEQUENCES,
    Table,
)
from ksana.stores.sql.tx import Tx
from ksana.stores.sql.walks import WALK_ATTEMPTS, WALK_JOBS, WALK_LAST_ATTEMPTS, Leg, Walk, walk

_PAGE_BYTES = 8 << 20
"""Bodies may be megabytes: a page that would hold more than this ends early."""


async def extent(tx: Tx, section: Section) -> Extent:
    if section is Section.STANDING:
        return Extent(1, place_of(()))
    return await _ROOMS[section].extent(tx)


async def _extent(tx: Tx, walk: Walk) -> Extent:
    [(count,)] = await tx.rows(walk.size)
    last = await tx.rows(walk.last)
    return Extent(count, place_of(tuple(last[0])) if last else None)


async def export(tx: Tx, section: Section, after: str | None, limit: int) -> Exported:
    if section is Section.STANDING:
        return Exported([await _standing(tx)] if after is None else [], None)
    room = _ROOMS[section]
    found, is_end = await room.read_on(tx, None if after is None else key_at(after), limit)
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


async def _attempts_extent(tx: Tx) -> Extent:
    apart, told = await _extent(tx, WALK_ATTEMPTS), await _extent(tx, WALK_LAST_ATTEMPTS)
    keys = [key_at(apart.last)] if apart.last is not None else []
    if told.last is not None:
        [run_id] = key_at(told.last)
        keys += [_attempt_key(row) for row in await _told_of(tx, run_id)]
    return Extent(apart.count + told.count, place_of(max(keys)) if keys else None)


async def _attempts_on(tx: Tx, after: Key | None, limit: int) -> tuple[list[rows.Row], bool]:
    """Attempts with rows of their own, and those which the rows of their runs tell of, in one order."""
    apart, is_apart_end = await _read_on(tx, WALK_ATTEMPTS, after, limit)
    told, is_told_end = await _read_on(tx, WALK_LAST_ATTEMPTS, after if after is None else after[:1], limit)
    last: list[rows.Row] = [attempt_rows.attempt_row_from_last(row) for row in told]
    # Each reaches only so far; what lies behind the nearer end may be incomplete.
    ends = [_attempt_key(page[-1]) for page, is_end in ((apart, is_apart_end), (last, is_told_end)) if not is_end]
    if after is not None:
        last += [row for row in await _told_of(tx, after[0]) if _attempt_key(row) > after]
    found = sorted([*apart, *last], key=_attempt_key)
    found = [row for row in found if all(_attempt_key(row) <= end for end in ends)]
    return found[:limit], is_apart_end and is_told_end and len(found) <= limit


async def _told_of(tx: Tx, run_id: Any) -> list[rows.Row]:
    return [attempt_rows.attempt_row_from_last(row) for row in await tx.rows(LAST_ATTEMPT_OF_RUN, run_id=run_id)]


def _attempt_key(row: rows.Row) -> Key:
    return (row[0], row[1])


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
    await tx.insert_new(JOBS, [job_rows.job_to_row(job) for job in jobs if job.id not in present])
    # One whose ref is taken here did not get in, and a cursor without its job would come due for ever.
    added = await _present(tx, ids) - present
    new = [job for job in jobs if job.id in added]
    await tx.insert(CURSORS, [job_rows.cursor_to_row(job) for job in new])
    await tag_jobs(tx, [job for job in new if job.deleted_at is None])
    return len(new)


async def _present(tx: Tx, ids: list[int]) -> set[int]:
    return {row[0] for row in await tx.rows(JOBS_PRESENT, ids=ids)}


async def _restore_runs(tx: Tx, runs: Sequence[Run]) -> int:
    ids = [run.id for run in runs]
    await _pass_over(tx, "run", ids)
    # A new node with the number of the one that held a run would keep it from ever being found as lapsed.
    await _pass_over(tx, "node", [run.node_id for run in runs if run.node_id is not None])
    if parents := sorted({run.parent_id for run in runs if run.parent_id is not None}):
        await tx.insert_new(CHAINS, [(parent_id, 0) for parent_id in parents])
    present = {row[0] for row in await tx.rows(RUNS_PRESENT, ids=ids)}
    return await tx.insert_new(RUNS, [run_rows.run_to_row(run) for run in runs if run.id not in present])


async def _restore_attempts(tx: Tx, attempts: Sequence[Attempt]) -> int:
    run_ids = sorted({attempt.run_id for attempt in attempts})
    present = {_attempt_key(row) for row in await tx.rows(ATTEMPTS_PRESENT, ids=run_ids)}
    told = await tx.rows(LAST_ATTEMPTS_OF_RUNS, ids=run_ids)
    present.update(_attempt_key(attempt_rows.attempt_row_from_last(row)) for row in told)
    new = [attempt for attempt in attempts if (attempt.run_id, attempt.epoch) not in present]
    added = await tx.insert_new(ATTEMPTS, [attempt_rows.attempt_to_row(attempt) for attempt in new])
    exchanges = [
        attempt_rows.exchange_to_row(attempt, attempt.exchange) for attempt in new if attempt.exchange is not None
    ]
    await tx.insert_new(EXCHANGES, exchanges)
    return added


async def _restore_callbacks(tx: Tx, records: Sequence[CallbackRecord]) -> int:
    await _pass_over(tx, "callback", [record.id for record in records])
    return await tx.insert_new(callbacks.CALLBACKS, [callbacks.callback_to_row(record) for record in records])


async def _restore_audit(tx: Tx, entries: Sequence[AuditEntry]) -> int:
    await _pass_over(tx, "audit", [entry.id for entry in entries])
    return await add_audit(tx, entries)


async def _pass_over(tx: Tx, sequence: str, ids: Sequence[int]) -> None:
    """Have ids handed out above these, and nobody else restore things of this kind meanwhile."""
    if ids:
        await tx.run(RAISE_SEQUENCE, name=sequence, next_id=max(ids) + 1)


class _Room(NamedTuple):
    """How one section is measured, read and filled."""

    extent: Callable[[Tx], Awaitable[Extent]]
    read_on: Callable[[Tx, Key | None, int], Awaitable[tuple[list[rows.Row], bool]]]
    from_row: Callable[[rows.Row], Any]
    restore: Callable[[Tx, Sequence[Any]], Awaitable[int]]


def _walked(
    walk: Walk, from_row: Callable[[rows.Row], Any], restore: Callable[[Tx, Sequence[Any]], Awaitable[int]]
) -> _Room:
    """A section that one walk leads through."""
    return _Room(
        lambda tx: _extent(tx, walk), lambda tx, after, limit: _read_on(tx, walk, after, limit), from_row, restore
    )


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

    return _walked(walk(table, *keys, large=large), from_row, restore)


_ROOMS: dict[Section, _Room] = {
    Section.KEYS: _plain(KEYS, "id", from_row=rows.key_from_row, to_row=rows.key_to_row),
    Section.JOBS: _walked(WALK_JOBS, job_rows.job_from_row, _restore_jobs),
    Section.RUNS: _walked(walk(RUNS, "id", large=("input",)), run_rows.run_from_row, _restore_runs),
    Section.ATTEMPTS: _Room(_attempts_extent, _attempts_on, attempt_rows.attempt_from_row, _restore_attempts),
    Section.CALLBACKS: _walked(
        walk(callbacks.CALLBACKS, "id", large=("body",)), callbacks.callback_from_row, _restore_callbacks
    ),
    Section.PROGRESS: _plain(
        callbacks.PROGRESS, "run_id", from_row=callbacks.progress_from_row, to_row=callbacks.progress_to_row
    ),
    Section.KEPT: _plain(
        KEPT, "run_id", from_row=kept.kept_from_row, to_row=kept.kept_to_row, large=("artifact", "checkpoint")
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
    Section.OBJECTS: _plain(
        OBJECTS,
        "type",
        "id",
        from_row=governed_rows.object_from_row,
        to_row=governed_rows.object_to_row,
        large=("body",),
    ),
    Section.QUEUES: _plain(
        QUEUES, "queue", from_row=governed_rows.settings_from_row, to_row=governed_rows.settings_to_row
    ),
    Section.AUDIT: _walked(
        walk(AUDIT, "id", large=("value_before", "value_after")), governed_rows.entry_from_row, _restore_audit
    ),
}
