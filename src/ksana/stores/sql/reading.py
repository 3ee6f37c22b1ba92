"""Looking things up: runs, attempts, the fire log, gauges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from ksana.domain.jobs import Job
from ksana.domain.queries import Counts, FireRecord
from ksana.domain.runs import Attempt, LastAttempt, Run
from ksana.domain.states import Reason, State
from ksana.domain.times import from_micros, to_micros
from ksana.stores.sql.attempt_rows import attempt_from_row, attempt_row_from_last
from ksana.stores.sql.claiming import BY_PRIORITY
from ksana.stores.sql.job_rows import job_from_row
from ksana.stores.sql.rows import Row, instant_or_none
from ksana.stores.sql.run_rows import run_from_row, runs_from_rows
from ksana.stores.sql.statements import (
    ATTEMPTS_OF_RUN,
    COUNT_DEAD,
    COUNT_DUE,
    COUNT_JOBS,
    COUNT_UNFINISHED,
    FIRED_SLOTS,
    GAPS_OF_JOB,
    JOBS_BY_ID,
    LAST_ATTEMPT_OF_RUN,
    LAST_RUN_IDS,
    LAST_RUN_IDS_IN,
    NEWEST_ATTEMPTS,
    NEWEST_ATTEMPTS_TOLD,
    NEXT_DUE,
    NEXT_FIRE,
    PAUSES,
    RUN_BY_TOKEN,
    RUNS_BY_ID,
)
from ksana.stores.sql.tx import Tx

# Databases sum lengths in 32 bits.
_ANY_SIZE = 2**31 - 1


async def jobs_by_id(tx: Tx, ids: Iterable[int]) -> list[Job]:
    return [job_from_row(row) for row in await tx.rows(JOBS_BY_ID, ids=list(ids))]


async def runs_by_id(tx: Tx, ids: Iterable[int]) -> list[Run]:
    return runs_from_rows(await tx.rows(RUNS_BY_ID, ids=list(ids)))


async def run_by_token(tx: Tx, token: str) -> Run | None:
    rows = await tx.rows(RUN_BY_TOKEN, token=token)
    return run_from_row(rows[0]) if rows else None


async def last_runs(tx: Tx, job_ids: Iterable[int], states: Collection[State]) -> dict[int, Run]:
    if len(states) == len(State):
        rows = await tx.rows(LAST_RUN_IDS, ids=list(job_ids))
    else:
        rows = await tx.rows(LAST_RUN_IDS_IN, ids=list(job_ids), states=sorted(states))
    ids = {run_id for row in rows for run_id in row if run_id is not None}
    runs = await runs_by_id(tx, ids) if ids else []
    # Of the highest id and the latest slot of a job, whichever was made last.
    runs.sort(key=lambda run: (run.created_at, run.id))
    return {run.job_id: run for run in runs if run.job_id is not None}


async def attempts(tx: Tx, run_id: int) -> list[Attempt]:
    rows = [tuple(row) for row in await tx.rows(ATTEMPTS_OF_RUN, run_id=run_id)]
    rows += [attempt_row_from_last(row) for row in await tx.rows(LAST_ATTEMPT_OF_RUN, run_id=run_id)]
    return [attempt_from_row(row) for row in rows]


async def last_attempts(tx: Tx, run_ids: Iterable[int], most_bytes: int | None) -> dict[int, LastAttempt]:
    wanted = {"ids": list(run_ids), "most_bytes": _ANY_SIZE if most_bytes is None else most_bytes}
    rows = [tuple(row) for row in await tx.rows(NEWEST_ATTEMPTS, **wanted)]
    # Where the run's own row tells of an attempt, that one is the newest.
    rows += [attempt_row_from_last(row) for row in await tx.rows(NEWEST_ATTEMPTS_TOLD, **wanted)]
    return {row[0]: LastAttempt(attempt_from_row(row), _is_without_bodies(row)) for row in rows}


def _is_without_bodies(row: Row) -> bool:
    head, request_body, _ = row[-3:]
    return head is not None and request_body is None


async def fire_log(tx: Tx, job_id: int, since: datetime, until: datetime, limit: int) -> list[FireRecord]:
    """A slot with a run shows what became of it; slots without one show as the gap they are part of."""
    window = {"job_id": job_id, "since": to_micros(since), "until": to_micros(until), "limit": limit}
    records = [
        FireRecord(
            job_id=job_id,
            from_at=from_micros(slot_at),
            to_at=from_micros(slot_at),
            count=1,
            decision=_decision(State(state)),
            reason=None if reason is None else Reason(reason),
            run_id=run_id,
            recorded_at=from_micros(created_at),
        )
        for job_id, slot_at, state, reason, run_id, created_at in await tx.rows(FIRED_SLOTS, **window)
    ]
    records += [
        FireRecord(
            job_id=job_id,
            from_at=from_micros(from_at),
            to_at=from_micros(to_at),
            count=slots,
            decision="left_out",
            reason=Reason(reason),
            run_id=None,
            recorded_at=from_micros(recorded_at),
        )
        for job_id, from_at, to_at, slots, reason, recorded_at in await tx.rows(GAPS_OF_JOB, **window)
    ]
    records.sort(key=lambda record: record.from_at, reverse=True)
    return records[:limit]


def _decision(state: State) -> str:
    return {State.SKIPPED: "skipped", State.MISSED: "missed"}.get(state, "fired")


async def next_fire_at(tx: Tx) -> datetime | None:
    rows = await tx.rows(NEXT_FIRE)
    return from_micros(rows[0][0]) if rows else None


async def pauses(tx: Tx, limit: int) -> list[tuple[int, datetime]]:
    return [(job_id, from_micros(until)) for job_id, until in await tx.rows(PAUSES, limit=limit)]


async def next_due_at(tx: Tx, queues: Sequence[str]) -> datetime | None:
    found: list[int] = []
    for queue in queues:
        for priority in BY_PRIORITY:
            found += [row[0] for row in await tx.rows(NEXT_DUE, queue=queue, priority=priority.value)]
    return from_micros(min(found)) if found else None


async def counts(tx: Tx, now: datetime) -> Counts:
    [(due, oldest)] = await tx.rows(COUNT_DUE, now=to_micros(now))
    [(dead,)] = await tx.rows(COUNT_DEAD)
    return Counts(
        jobs={(surface, bool(enabled)): count for surface, enabled, count in await tx.rows(COUNT_JOBS)},
        unfinished={State(state): count for state, count in await tx.rows(COUNT_UNFINISHED)},
        due=due,
        oldest_due_at=instant_or_none(oldest),
        dead_letters=dead,
    )
