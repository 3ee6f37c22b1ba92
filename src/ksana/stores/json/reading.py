"""Reading runs and jobs: by id, by token, the newest, the fire log, gauges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

import msgspec

from ksana.domain.fire_log import line_of_gap, line_of_run
from ksana.domain.jobs import Job
from ksana.domain.queries import Counts, FireRecord
from ksana.domain.runs import Attempt, LastAttempt, Run
from ksana.domain.states import State
from ksana.stores.json.tables import Tables
from ksana.stores.json.turns import BY_PRIORITY


def jobs_by_id(tables: Tables, ids: Iterable[int]) -> list[Job]:
    rows = tables.jobs.rows
    return [rows[id] for id in dict.fromkeys(ids) if id in rows]


def runs_by_id(tables: Tables, ids: Iterable[int]) -> list[Run]:
    rows = tables.runs.rows
    return [rows[id] for id in dict.fromkeys(ids) if id in rows]


def run_by_token(tables: Tables, token: str) -> Run | None:
    run_id = tables.runs.by_token.get(token)
    return None if run_id is None else tables.runs.rows[run_id]


def last_runs(tables: Tables, job_ids: Iterable[int], states: Collection[State]) -> dict[int, Run]:
    found = ((job_id, last_run(tables, job_id, states)) for job_id in job_ids)
    return {job_id: run for job_id, run in found if run is not None}


def last_run(tables: Tables, job_id: int, states: Collection[State]) -> Run | None:
    """The newest run of a job in one of these states."""
    runs = tables.runs
    newest = max((made[-1] for state in states if (made := runs.in_state[job_id, state])), default=None)
    return None if newest is None else runs.rows[newest[1]]


def bounded(attempt: Attempt, most_bytes: int | None) -> LastAttempt:
    """An attempt without its bodies if they are larger than that."""
    exchange = attempt.exchange
    if exchange is None or most_bytes is None or len(exchange.request_body) + len(exchange.response_body) <= most_bytes:
        return LastAttempt(attempt)
    without = msgspec.structs.replace(exchange, request_body=b"", response_body=b"")
    return LastAttempt(msgspec.structs.replace(attempt, exchange=without), bodies_omitted=True)


def fire_log(tables: Tables, job_id: int, since: datetime, until: datetime, limit: int) -> list[FireRecord]:
    """A slot with a run shows what became of it; slots without one show as the gap they are part of."""
    slots = tables.runs.slots[job_id]
    first, last = slots.below((since, -1)), slots.below((until, -1))
    records = [line_of_run(tables.runs.rows[run_id]) for _, run_id in slots[max(first, last - limit) : last]]
    gaps = (tables.gaps.rows[key] for key in reversed(tables.gaps.of_job[job_id]))
    records += [line_of_gap(gap) for gap in gaps if gap.from_at < until and gap.to_at >= since]
    records.sort(key=lambda record: record.from_at, reverse=True)
    return records[:limit]


def next_fire_at(tables: Tables) -> datetime | None:
    return tables.jobs.due[0][0] if tables.jobs.due else None


def pauses(tables: Tables, limit: int) -> list[tuple[int, datetime]]:
    return [(job_id, until) for until, job_id in tables.jobs.pauses[:limit]]


def next_due_at(tables: Tables, queues: Sequence[str]) -> datetime | None:
    groups = (tables.runs.ready[queue, priority.value] for queue in queues for priority in BY_PRIORITY)
    return min((ready[0][0] for ready in groups if ready), default=None)


def counts(tables: Tables, now: datetime) -> Counts:
    runs = tables.runs
    ready = [runs.ready[group] for group in runs.ready.groups()]
    oldest = min((keys[0][0] for keys in ready), default=None)
    return Counts(
        jobs=dict(+tables.jobs.counted),
        unfinished={state: len(runs.unfinished[state]) for state in runs.unfinished.groups()},
        due=sum(keys.through(now) for keys in ready),
        oldest_due_at=oldest if oldest is not None and oldest <= now else None,
        dead_letters=len(runs.ended[State.DEAD_LETTER]),
    )
