"""The overview: what needs somebody, what comes next, and how the last day went. Read from counts, from sums by the
minute and from short lists, so that it costs the same however much is stored."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import msgspec

from ksana.api.kit import Call, Route, Scope, Timestamp, timestamp
from ksana.api.services import Services
from ksana.api.v2.run_shapes import RunView
from ksana.api.v2.runs import shown_runs
from ksana.domain.ports import Store
from ksana.domain.queries import Counts, JobQuery, JobSort, Minute, QueueCounts, RunQuery, RunSort
from ksana.domain.runs import Run
from ksana.domain.states import FINAL, Reason, State

_DAY: Final = timedelta(days=1)
# What ended just now is part of the day, even at the stroke of a minute.
_TICK: Final = timedelta(microseconds=1)
_NEXT: Final = 5
_FAILURES: Final = 10
_SAMPLES: Final = 200
_FAILED: Final = frozenset({State.FAILED, State.TIMEOUT})

AttentionKind = Literal["failed", "dead_letter", "missed", "late_callback"]


class AttentionView(msgspec.Struct, frozen=True, kw_only=True):
    """Something a person should look at; `run_id` and `at` are of the newest."""

    kind: AttentionKind
    count: int
    text: str
    run_id: int | None
    job_id: int | None
    at: Timestamp | None


class NextView(msgspec.Struct, frozen=True):
    job_id: int
    name: str
    at: Timestamp


class RunningView(msgspec.Struct, frozen=True):
    """How many runs are under way on all nodes, how many of them here, and how many this node can have at once."""

    now: int
    here: int
    capacity: int


class StartDelayView(msgspec.Struct, frozen=True):
    """How late the newest runs began."""

    p50_ms: float | None
    p95_ms: float | None
    samples: int


class CallbacksView(msgspec.Struct, frozen=True):
    """How many runs wait for a callback, and how many gave up waiting in the last day."""

    waiting: int
    late: int


class QueuesView(msgspec.Struct, frozen=True):
    """All queues that are pulled from, together."""

    due: int
    lag_seconds: float
    held: int
    dead_letters: int


class JobsView(msgspec.Struct, frozen=True):
    total: int
    enabled: int
    paused: int


class OverviewView(msgspec.Struct, frozen=True, kw_only=True):
    """The state of everything in one answer. `day` counts the runs that ended in the last 24 hours by state, and those
    under way by theirs; parts of chains are counted, too."""

    now: Timestamp
    attention: list[AttentionView]
    next: list[NextView]
    running: RunningView
    day: dict[str, int]
    start_delay: StartDelayView
    callbacks: CallbacksView
    queues: QueuesView
    jobs: JobsView
    failures: list[RunView]
    is_empty: bool


async def overview(call: Call[None, None]) -> OverviewView:
    """What needs somebody, what comes next, and how the last day went."""
    services: Services = call.services
    engine = services.engine
    store, now = engine.store, engine.clock.now()
    since = now - _DAY
    counts, minutes, queues, jobs = await asyncio.gather(
        store.counts(now),
        store.minutes(since, now + _TICK),
        store.queue_counts(now),
        store.find_jobs(JobQuery(enabled=True, sort=JobSort.NEXT, limit=_NEXT)),
    )
    failed, late, newest = await asyncio.gather(
        _newest(store, _FAILED, since, _FAILURES),
        _late(store, since),
        store.find_runs(RunQuery(is_child=False, limit=_SAMPLES, counted=False)),
    )
    day = _day(counts, minutes)
    return OverviewView(
        now=timestamp(now),
        attention=await _attention(store, counts, day, failed, late, since),
        next=[NextView(job.id, job.name, timestamp(job.next_fire_at)) for job in jobs.items if job.next_fire_at],
        running=RunningView(counts.unfinished.get(State.RUNNING, 0), engine.executing, engine.options.workers),
        day={state.value.lower(): day[state] for state in State if state in FINAL or day[state]},
        start_delay=_start_delay(newest.items),
        callbacks=CallbacksView(counts.unfinished.get(State.CALLBACK_PENDING, 0), len(late)),
        queues=_queues(queues, now),
        jobs=_jobs(counts.jobs),
        failures=await shown_runs(services, failed),
        is_empty=not counts.jobs and not newest.items and not queues,
    )


async def _newest(store: Store, states: frozenset[State], since: datetime, limit: int) -> list[Run]:
    query = RunQuery(states=states, is_child=False, since=since, sort=RunSort.ENDED, limit=limit, counted=False)
    return (await store.find_runs(query)).items


async def _late(store: Store, since: datetime) -> list[Run]:
    """Runs that gave up waiting for their callback; more than a page of them is a page of them."""
    query = RunQuery(
        states=frozenset({State.TIMEOUT}),
        reasons=frozenset({Reason.CALLBACK_TIMEOUT}),
        since=since,
        sort=RunSort.ENDED,
        limit=_SAMPLES,
        counted=False,
    )
    return (await store.find_runs(query)).items


def _day(counts: Counts, minutes: Iterable[Minute]) -> Counter[State]:
    day = Counter(counts.unfinished)
    for minute in minutes:
        day[minute.state] += minute.count
    return day


async def _attention(
    store: Store, counts: Counts, day: Counter[State], failed: list[Run], late: list[Run], since: datetime
) -> list[AttentionView]:
    missed = await _newest(store, frozenset({State.MISSED}), since, 1) if day[State.MISSED] else []
    dead = frozenset({State.DEAD_LETTER})
    query = RunQuery(states=dead, limit=1, counted=False)
    buried = (await store.find_runs(query)).items if counts.dead_letters else []
    ids = {run.job_id for runs in (failed, buried, missed, late) for run in runs[:1] if run.job_id is not None}
    names = {job.id: job.name for job in await store.get_jobs(ids)} if ids else {}
    in_a_day = "in the last 24 hours"
    all_failed = sum(day[state] for state in _FAILED)
    found = [
        _asks("failed", all_failed, f"{_counted(all_failed, 'run')} failed {in_a_day}", failed, names),
        _asks("dead_letter", counts.dead_letters, f"{_counted(counts.dead_letters, 'dead letter')}", buried, names),
        _asks("missed", day[State.MISSED], f"{_counted(day[State.MISSED], 'run')} missed {in_a_day}", missed, names),
        _asks("late_callback", len(late), f"{_counted(len(late), 'callback')} did not come {in_a_day}", late, names),
    ]
    return [one for one in found if one.count]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _asks(kind: AttentionKind, count: int, text: str, runs: Sequence[Run], names: Mapping[int, str]) -> AttentionView:
    newest = runs[0] if runs else None
    name = None if newest is None or newest.job_id is None else names.get(newest.job_id)
    return AttentionView(
        kind=kind,
        count=count,
        text=text if name is None else f"{text}, the newest of {name}",
        run_id=None if newest is None else newest.id,
        job_id=None if newest is None else newest.job_id,
        at=None if newest is None else timestamp(newest.ended_at),
    )


def _start_delay(runs: Iterable[Run]) -> StartDelayView:
    # The due instant of a run that was tried again is that of its last attempt, not of its start.
    delays = sorted(
        (run.started_at - run.due_at).total_seconds() * 1000
        for run in runs
        if run.started_at is not None and run.attempt == 1 and run.started_at >= run.due_at
    )
    if not delays:
        return StartDelayView(None, None, 0)
    half, most = delays[(len(delays) - 1) // 2], delays[(len(delays) - 1) * 95 // 100]
    return StartDelayView(round(half, 3), round(most, 3), len(delays))


def _queues(queues: Sequence[QueueCounts], now: datetime) -> QueuesView:
    oldest = [queue.oldest_due_at for queue in queues if queue.oldest_due_at is not None]
    return QueuesView(
        due=sum(queue.due for queue in queues),
        lag_seconds=max(0.0, (now - min(oldest)).total_seconds()) if oldest else 0.0,
        held=sum(queue.running for queue in queues),
        dead_letters=sum(queue.dead_letters for queue in queues),
    )


def _jobs(counted: Mapping[tuple[str, bool], int]) -> JobsView:
    enabled = sum(count for (_, is_enabled), count in counted.items() if is_enabled)
    total = sum(counted.values())
    return JobsView(total, enabled, total - enabled)


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "GET", "/api/v2/overview", overview, Scope.RUN_READ, response=OverviewView, summary="Everything at a glance"
        )
    ]
