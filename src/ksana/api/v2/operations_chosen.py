"""Which jobs or runs an operation is for: those named, or those a filter finds when it begins."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Annotated, Final

import msgspec

from ksana.api.kit import Input, Scope
from ksana.api.v2.schedule_shapes import Instant, Problems
from ksana.domain.errors import InvalidArgument
from ksana.domain.items import KIND as ITEM
from ksana.domain.items import stored_queue
from ksana.domain.jobs import Job
from ksana.domain.ports import Store
from ksana.domain.queries import JobQuery, RunQuery
from ksana.domain.runs import Run
from ksana.domain.states import AT_REST, FAILURES, UNFINISHED, State

MOST: Final = 10_000
MOST_IDS: Final = 1000
MOST_PURGED: Final = 100_000
"""A queue can be longer than any list somebody would look through: a purge takes the oldest so many at once."""
SAMPLE: Final = 10
_PAGE: Final = 1000

Id = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


class Action(StrEnum):
    """What can be done to many at once: the first five to jobs, the others to runs."""

    PAUSE = "pause"
    RESUME = "resume"
    RUN = "run"
    DELETE = "delete"
    TAG = "tag"
    CANCEL = "cancel"
    RETRY = "retry"
    REDRIVE = "redrive"
    PURGE = "purge"

    @property
    def is_for_jobs(self) -> bool:
        return self not in _OF_RUNS


SCOPES: Final = {
    Action.PAUSE: Scope.JOB_WRITE,
    Action.RESUME: Scope.JOB_WRITE,
    Action.DELETE: Scope.JOB_WRITE,
    Action.TAG: Scope.JOB_WRITE,
    Action.RUN: Scope.RUN_WRITE,
    Action.CANCEL: Scope.RUN_CONTROL,
    Action.RETRY: Scope.RUN_CONTROL,
    Action.REDRIVE: Scope.QUEUE_WRITE,
    Action.PURGE: Scope.QUEUE_WRITE,
}

# The runs an action can be meant for, where the filter does not say which states.
_OF_RUNS: Final = {
    Action.CANCEL: UNFINISHED,
    Action.RETRY: FAILURES,
    Action.REDRIVE: frozenset({State.DEAD_LETTER}),
    Action.PURGE: AT_REST,
}

PURGEABLE: Final = AT_REST | {State.RUNNING, State.DEAD_LETTER}
"""States of items that a purge may be asked to take along."""


class Filter(Input, frozen=True):
    """The same names as in the query of the list: of jobs `name`, `surface`, `kind`, `tag` and `enabled`; of runs those
    of `/api/v2/runs`, and `queue` and `error` of `/scheduler/dead-letters`. `{}` is all of them."""

    name: str = ""
    surface: str | None = None
    kind: str | None = None
    tag: str | None = None
    enabled: bool | None = None
    job_id: Id | None = None
    parent_id: Id | None = None
    children: bool = False
    state: list[State] = msgspec.field(default_factory=list)
    since: Instant | None = None
    until: Instant | None = None
    queue: str | None = None
    error: str = ""


class Chosen(msgspec.Struct, frozen=True):
    """What an operation is for: the ids, the first few to show, and how many there are in all."""

    ids: list[int]
    sample: Sequence[Job | Run]
    total: int

    @classmethod
    def of(cls, found: Sequence[Job | Run]) -> Chosen:
        return cls([one.id for one in found], found[:SAMPLE], len(found))


_JOBS_ONLY: Final = ("enabled",)
_RUNS_ONLY: Final = ("job_id", "parent_id", "children", "state", "since", "until", "queue", "error")
_BLANK: Final = Filter()


async def chosen(store: Store, action: Action, ids: Sequence[int] | None, filter: Filter | None) -> Chosen:
    """The jobs or runs an operation is for, each once. Named ones that do not exist are left out."""
    if ids is not None:
        there = await _named(store, action, ids)
        return Chosen.of([there[id] for id in dict.fromkeys(ids) if id in there])
    assert filter is not None
    if action.is_for_jobs:
        _refuse(filter, _RUNS_ONLY, f"is for runs, and {action} is done to jobs")
        return Chosen.of(await _jobs(store, filter))
    _refuse(filter, _JOBS_ONLY, f"is for jobs, and {action} is done to runs")
    return await _runs(store, _run_query(action, filter), is_cut=action is Action.PURGE)


async def _named(store: Store, action: Action, ids: Sequence[int]) -> dict[int, Job | Run]:
    found: dict[int, Job | Run] = {}
    for start in range(0, len(ids), _PAGE):
        some = ids[start : start + _PAGE]
        if action.is_for_jobs:
            found |= {job.id: job for job in await store.get_jobs(some) if job.deleted_at is None}
        else:
            found |= {run.id: run for run in await store.get_runs(some)}
    return found


def _refuse(filter: Filter, names: Collection[str], why: str) -> None:
    problems = Problems()
    for name in names:
        if getattr(filter, name) != getattr(_BLANK, name):
            problems.add(f"filter.{name}", why)
    problems.raise_any()


async def _jobs(store: Store, filter: Filter) -> list[Job]:
    found: list[Job] = []
    while True:
        query = JobQuery(
            surface=filter.surface,
            name=filter.name,
            kind=filter.kind,
            tag=filter.tag,
            enabled=filter.enabled,
            offset=len(found),
            limit=_PAGE,
        )
        page = await store.find_jobs(query)
        _refuse_too_many(page.total)
        found += page.items
        if len(page.items) < _PAGE:
            return found


def _run_query(action: Action, filter: Filter) -> RunQuery:
    problems = Problems()
    fitting = _OF_RUNS[action]
    states = frozenset(filter.state) or fitting
    if action is Action.REDRIVE and not states <= fitting:
        problems.add("filter.state", f"only a {State.DEAD_LETTER} can be put back; leave the state out")
    is_purge = action is Action.PURGE
    if is_purge and not filter.queue:
        problems.add("filter.queue", "say which queue to purge")
    if is_purge and not states <= PURGEABLE:
        problems.add("filter.state", f"only these can be purged: {', '.join(sorted(PURGEABLE))}")
    query = RunQuery(
        surface=filter.surface,
        job_id=filter.job_id,
        job_name=filter.name,
        parent_id=filter.parent_id,
        is_child=None if is_purge or filter.children or filter.parent_id is not None else False,
        states=states,
        kind=ITEM if is_purge else filter.kind,
        tag=filter.tag,
        queue=None if filter.queue is None else stored_queue(filter.queue),
        error=filter.error,
        since=problems.instant(filter.since, "filter.since"),
        until=problems.instant(filter.until, "filter.until"),
        # What has waited longest comes first.
        descending=False,
        limit=_PAGE,
    )
    problems.raise_any()
    return query


async def _runs(store: Store, query: RunQuery, *, is_cut: bool) -> Chosen:
    """What the query finds, the oldest first; where there are too many, the first of them or a refusal. Only ids are
    kept of most: items may be large."""
    first = await store.find_runs(query)
    if not is_cut:
        _refuse_too_many(first.total)
    ids, page = [run.id for run in first.items], first
    while len(page.items) == _PAGE and len(ids) < MOST_PURGED:
        page = await store.find_runs(msgspec.structs.replace(query, after_id=ids[-1], counted=False))
        ids += [run.id for run in page.items]
    return Chosen(ids, first.items[:SAMPLE], first.total)


def _refuse_too_many(total: int) -> None:
    if total > MOST:
        raise InvalidArgument.of("filter", f"finds {total:,}, and one operation takes at most {MOST:,}; narrow it down")
