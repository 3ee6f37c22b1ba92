"""The time line: what ran and what will, on one lane for each job, tag or kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from ksana.api.kit import Call, Route, Scope, Timestamp, timestamp
from ksana.api.services import Services
from ksana.api.v2.schedule_shapes import Instant, Problems
from ksana.api.v2.timeline_marks import Mark, Window, past_marks, planned_marks
from ksana.domain.errors import InvalidArgument
from ksana.domain.jobs import Job
from ksana.domain.ports import Store
from ksana.domain.queries import JobQuery, JobSort, RunQuery
from ksana.domain.runs import Run
from ksana.domain.states import FAILURES, State
from ksana.domain.times import UTC_MAX, UTC_MIN

_LONGEST: Final = timedelta(days=62)
# How much is read to find out which lanes there are, and for each of them.
_LOOKED_AT: Final = 1000
_JOBS_LOOKED_AT: Final = 200
_BAD_LOOKED_AT: Final = 100
_PER_LANE: Final = 200
_JOBS_PER_LANE: Final = 12


class Group(StrEnum):
    """What has a lane of its own."""

    JOB = "job"
    TAG = "tag"
    KIND = "kind"


class TimelineQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The stretch to show, from an hour ago to a quarter of an hour ahead unless said otherwise; `name` is any part of
    the names of the jobs to show."""

    since: Instant | None = None
    until: Instant | None = None
    group: Group = Group.JOB
    limit: Annotated[int, msgspec.Meta(ge=1, le=50)] = 20
    name: str = ""


class MarkView(msgspec.Struct, frozen=True, kw_only=True, rename={"from_at": "from", "to_at": "to"}):
    """Some runs beside each other, shown by the worst of them, or instants that are planned."""

    from_at: Timestamp
    to_at: Timestamp
    state: State
    count: int
    run_id: int | None
    planned: bool


class LaneView(msgspec.Struct, frozen=True, kw_only=True):
    """A lane. It is whole from `complete_since` on: of a busy lane only the newest runs are read, and before that
    instant only those that failed are shown."""

    key: str
    label: str
    job_id: int | None
    complete_since: Timestamp
    marks: list[MarkView]


class TimelineView(msgspec.Struct, frozen=True, kw_only=True):
    """Lanes by their label; `more` were left out."""

    since: Timestamp
    until: Timestamp
    now: Timestamp
    lanes: list[LaneView]
    more: int


class _Lane(msgspec.Struct):
    """What a lane is for, while it is being found out: its jobs, whether one of their runs failed, how recent it is."""

    key: str
    label: str
    job_id: int | None
    narrow: Callable[[RunQuery], RunQuery]
    jobs: dict[int, Job] = msgspec.field(default_factory=dict)
    is_bad: bool = False
    seen: int = 0


async def timeline(call: Call[None, TimelineQuery]) -> TimelineView:
    """What ran and what will. Runs count where they began; no mark reaches across now."""
    services: Services = call.services
    store, query = services.engine.store, call.query
    window = _window(query, services.engine.clock.now())
    found = await _lanes(store, query, window)
    # Lanes with failures come first, then those in which something happened last, then those that come next.
    ranked = sorted(found, key=lambda lane: (not lane.is_bad, -lane.seen))
    chosen = sorted(ranked[: query.limit], key=lambda lane: (lane.label.casefold(), lane.key))
    return TimelineView(
        since=timestamp(window.since),
        until=timestamp(window.until),
        now=timestamp(window.now),
        lanes=list(await asyncio.gather(*(_shown(store, lane, window, query.name) for lane in chosen))),
        more=len(ranked) - len(chosen),
    )


def _window(query: TimelineQuery, now: datetime) -> Window:
    problems = Problems()
    since = problems.instant(query.since, "since")
    until = problems.instant(query.until, "until")
    problems.raise_any()
    for name, at in (("since", since), ("until", until)):
        # Far enough from the ends of the calendar for all that is reckoned from here.
        if at is not None and not UTC_MIN + 2 * _LONGEST < at < UTC_MAX - 2 * _LONGEST:
            raise InvalidArgument.of(name, "is too far away; choose an instant nearer to now")
    since = since or (now if until is None else min(now, until)) - timedelta(hours=1)
    until = until or max(now, since) + timedelta(minutes=15)
    if until <= since:
        raise InvalidArgument.of("until", "must be after since")
    if until - since > _LONGEST:
        raise InvalidArgument.of("since", f"at most {_LONGEST.days} days before until")
    return Window(since, until, now)


async def _lanes(store: Store, query: TimelineQuery, window: Window) -> list[_Lane]:
    """The lanes there are, from what ran in the window and from the jobs that come next."""
    base = _base(query.name, window)
    newest, bad, coming = await asyncio.gather(
        store.find_runs(msgspec.structs.replace(base, limit=_LOOKED_AT)),
        store.find_runs(msgspec.structs.replace(base, limit=_BAD_LOOKED_AT, states=FAILURES)),
        store.find_jobs(JobQuery(name=query.name, enabled=True, sort=JobSort.NEXT, limit=_JOBS_LOOKED_AT)),
    )
    jobs = {job.id: job for job in coming.items}
    # Among very many runs of a few, or items of a queue, those of the others would not be found.
    last = [] if query.group is Group.KIND else list((await store.last_runs(jobs)).values())
    ran = {run.job_id for run in [*newest.items, *bad.items] if run.job_id is not None}
    if unknown := [job_id for job_id in ran if job_id not in jobs]:
        jobs |= {job.id: job for job in await store.get_jobs(unknown)}
    lanes: dict[str, _Lane] = {}
    for rank, job in enumerate(coming.items):
        if job.next_fire_at is not None and window.now <= job.next_fire_at < window.until:
            for lane in _of_job(lanes, query.group, job):
                # What is only planned comes after all that ran.
                lane.seen = lane.seen or -rank
    recent = [run for run in last if window.since <= (run.ended_at or run.due_at) < window.until]
    for run in [*newest.items, *recent]:
        for lane in _of_run(lanes, query.group, run, jobs):
            lane.seen = max(lane.seen, run.id)
    for run in bad.items:
        for lane in _of_run(lanes, query.group, run, jobs):
            lane.is_bad = True
    return list(lanes.values())


def _base(name: str, window: Window) -> RunQuery:
    # What is due later is not part of the past, but what is under way is, and its due instant is behind it.
    until = min(window.until, window.now + timedelta(microseconds=1))
    return RunQuery(job_name=name, is_child=False, since=window.since, until=until, counted=False)


def _of_job(lanes: dict[str, _Lane], group: Group, job: Job) -> Iterable[_Lane]:
    found = []
    for key in _keys(group, job):
        lane = lanes.setdefault(key, _new_lane(group, key, job))
        if len(lane.jobs) < _JOBS_PER_LANE:
            lane.jobs[job.id] = job
        found.append(lane)
    return found


def _of_run(lanes: dict[str, _Lane], group: Group, run: Run, jobs: dict[int, Job]) -> Iterable[_Lane]:
    job = None if run.job_id is None else jobs.get(run.job_id)
    if job is not None:
        return _of_job(lanes, group, job)
    # An item of the queue has a kind, but neither a job nor tags.
    return [lanes.setdefault(run.kind, _of_kind(run.kind))] if group is Group.KIND else []


def _keys(group: Group, job: Job) -> list[str]:
    match group:
        case Group.JOB:
            return [str(job.id)]
        case Group.TAG:
            return list(job.tags)
        case Group.KIND:
            return [job.target.kind]


def _new_lane(group: Group, key: str, job: Job) -> _Lane:
    match group:
        case Group.JOB:
            return _Lane(
                key, job.name, job.id, lambda query: msgspec.structs.replace(query, job_id=job.id, job_name="")
            )
        case Group.TAG:
            return _Lane(key, key, None, lambda query: msgspec.structs.replace(query, tag=key))
        case Group.KIND:
            return _of_kind(key)


def _of_kind(kind: str) -> _Lane:
    return _Lane(kind, kind, None, lambda query: msgspec.structs.replace(query, kind=kind))


async def _shown(store: Store, lane: _Lane, window: Window, name: str) -> LaneView:
    query = msgspec.structs.replace(lane.narrow(_base(name, window)), limit=_PER_LANE)
    runs = (await store.find_runs(query)).items
    complete_since = window.since
    if len(runs) == _PER_LANE:
        complete_since = max(window.since, min(run.ended_at or run.due_at for run in runs))
        older = msgspec.structs.replace(query, states=FAILURES, until=complete_since)
        runs = runs + (await store.find_runs(older)).items
    marks = [_show(mark, planned=False) for mark in past_marks(runs, window)]
    alive = [job for job in lane.jobs.values() if job.deleted_at is None]
    marks += [_show(mark, planned=True) for mark in planned_marks(alive, window)]
    return LaneView(
        key=lane.key,
        label=lane.label,
        job_id=lane.job_id,
        complete_since=timestamp(complete_since),
        marks=marks,
    )


def _show(mark: Mark, planned: bool) -> MarkView:
    return MarkView(
        from_at=timestamp(mark.from_at),
        to_at=timestamp(mark.to_at),
        state=mark.state,
        count=mark.count,
        run_id=mark.run_id,
        planned=planned,
    )


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "GET",
            "/api/v2/timeline",
            timeline,
            Scope.RUN_READ,
            query=TimelineQuery,
            response=TimelineView,
            summary="What ran and what will",
        )
    ]
