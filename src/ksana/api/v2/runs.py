"""Runs: list, get, attempts, cancel, retry, counts by the minute."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import msgspec

from ksana.api.kit import Call, Page, PageQuery, Route, Scope, page_of
from ksana.api.kit.paging import Order, parse_sort
from ksana.api.services import Services
from ksana.api.tokens import may_see_tokens, without_token
from ksana.api.v2.run_shapes import (
    AttemptView,
    CallbackView,
    MinuteView,
    ReasonInput,
    RunView,
    show_attempt,
    show_callback,
    show_minute,
    show_run,
)
from ksana.api.v2.schedule_shapes import Instant, Problems
from ksana.domain.errors import InvalidArgument, InvalidState, NotFound
from ksana.domain.queries import RunQuery, RunSort
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.domain.times import UTC_MIN
from ksana.engine.acting import because

_LONGEST_CHART = timedelta(days=31)
_DEFAULT_CHART = timedelta(hours=1)


class JobRunsQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs. `since` and `until` bound when it ended, or is due while it has not. `error` is any part of the
    error, as it is written. `before_id` continues a list.
    Runs that are parts of others are left out unless `children` or `parent_id` asks for them."""

    parent_id: int | None = None
    children: bool = False
    surface: str | None = None
    state: list[State] = msgspec.field(default_factory=list)
    kind: str | None = None
    tag: str | None = None
    name: str = ""
    error: str = ""
    since: Instant | None = None
    until: Instant | None = None
    before_id: int | None = None


class RunsQuery(JobRunsQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs, of all jobs or of one."""

    job_id: int | None = None


class MinutesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The stretch to count; the last hour unless said otherwise."""

    since: Instant | None = None
    until: Instant | None = None


async def list_runs(call: Call[None, RunsQuery]) -> Page[RunView]:
    return await _page(call.services, call.query, call.query.job_id)


async def list_job_runs(call: Call[None, JobRunsQuery]) -> Page[RunView]:
    job = await call.services.engine.jobs.get(call.number("id"))
    return await _page(call.services, call.query, job.id)


async def _page(services: Services, query: JobRunsQuery, job_id: int | None) -> Page[RunView]:
    page = await services.engine.store.find_runs(run_query(query, job_id))
    return page_of(await shown_runs(services, page.items), page.total, query)


def run_query(query: JobRunsQuery, job_id: int | None) -> RunQuery:
    """What the query of the list asks the store for."""
    problems = Problems()
    order = parse_sort(query.sort, [sort.value for sort in RunSort], Order("id", descending=True))
    wanted = RunQuery(
        surface=query.surface,
        job_id=job_id,
        job_name=query.name,
        parent_id=query.parent_id,
        is_child=None if query.children or query.parent_id is not None else False,
        states=frozenset(query.state),
        kind=query.kind,
        tag=query.tag,
        error=query.error,
        since=problems.instant(query.since, "since"),
        until=problems.instant(query.until, "until"),
        before_id=query.before_id,
        sort=RunSort(order.field),
        descending=order.descending,
        offset=query.offset,
        limit=query.page_size,
    )
    problems.raise_any()
    return wanted


async def get(call: Call[None, None]) -> RunView:
    return await shown_run(call.services, await call.services.engine.runs.get(call.number("id")))


async def attempts(call: Call[None, None]) -> list[AttemptView]:
    """Every try at a run, oldest first, with what was sent and received."""
    engine = call.services.engine
    run = await engine.runs.get(call.number("id"))
    made = await engine.store.attempts(run.id)
    if run.callback_token is not None and not may_see_tokens(call):
        made = [without_token(attempt, run.callback_token) for attempt in made]
    return [show_attempt(attempt) for attempt in made]


async def callbacks(call: Call[None, None]) -> list[CallbackView]:
    """Every callback that came for a run, oldest first, whether it counted or not."""
    engine = call.services.engine
    run = await engine.runs.get(call.number("id"))
    return [show_callback(record) for record in await engine.store.callbacks(run.id)]


async def cancel(call: Call[ReasonInput, None]) -> RunView:
    """End a run that is not over yet. A chain is asked to stop, which takes a moment."""
    engine = call.services.engine
    run = await engine.runs.get(call.number("id"))
    if run.state.is_final:
        raise InvalidState(f"run {run.id} is {run.state}; there is nothing to cancel")
    with because(call.body.reason):
        canceled = await engine.chains.cancel(run.id)
    return await shown_run(call.services, canceled)


async def retry(call: Call[ReasonInput, None]) -> RunView:
    """Try a run again that has ended without success; of a chain all steps that did, and with a step its chain."""
    with because(call.body.reason):
        again = await call.services.engine.chains.rerun(call.number("id"))
    return await shown_run(call.services, again)


async def minutes(call: Call[None, MinutesQuery]) -> list[MinuteView]:
    """How many runs ended in each minute, by state and kind."""
    services: Services = call.services
    problems = Problems()
    now = services.engine.clock.now()
    until = problems.instant(call.query.until, "until") or now
    since = problems.instant(call.query.since, "since") or max(until, UTC_MIN + _DEFAULT_CHART) - _DEFAULT_CHART
    problems.raise_any()
    if until - since > _LONGEST_CHART:
        raise InvalidArgument.of("since", f"at most {_LONGEST_CHART.days} days before until")
    return [show_minute(minute) for minute in await services.engine.store.minutes(since, until)]


async def shown_run(services: Services, run: Run) -> RunView:
    """A run as it is shown."""
    [view] = await shown_runs(services, [run])
    return view


async def shown_runs(services: Services, runs: list[Run]) -> list[RunView]:
    """Runs as they are shown, each with the name of its job."""
    ids = {run.job_id for run in runs if run.job_id is not None}
    jobs = {job.id: job for job in await services.engine.store.get_jobs(ids)} if ids else {}
    progress = await services.engine.store.progress([run.id for run in runs]) if runs else {}
    return [show_run(run, None if run.job_id is None else jobs.get(run.job_id), progress.get(run.id)) for run in runs]


def routes() -> list[Route[Any, Any]]:
    every, one = "/api/v2/runs", "/api/v2/runs/{id:int}"
    reads = partial(Route, scope=Scope.RUN_READ)
    reads_one = partial(reads, errors=(NotFound,))
    controls = partial(
        Route,
        scope=Scope.RUN_CONTROL,
        request=ReasonInput,
        response=RunView,
        optional_body=True,
        errors=(NotFound, InvalidState),
    )
    return [
        reads("GET", every, list_runs, query=RunsQuery, response=Page[RunView], summary="List runs"),
        reads_one(
            "GET",
            "/api/v2/jobs/{id:int}/runs",
            list_job_runs,
            query=JobRunsQuery,
            response=Page[RunView],
            summary="List the runs of a job",
        ),
        reads_one("GET", one, get, response=RunView, summary="Get a run", name="get_run"),
        reads_one("GET", one + "/attempts", attempts, response=list[AttemptView], summary="The attempts of a run"),
        reads_one("GET", one + "/callbacks", callbacks, response=list[CallbackView], summary="The callbacks of a run"),
        controls("POST", one + "/cancel", cancel, summary="Cancel a run"),
        controls("POST", one + "/retry", retry, summary="Try a run again"),
        reads(
            "GET",
            "/api/v2/minutes",
            minutes,
            query=MinutesQuery,
            response=list[MinuteView],
            summary="Runs ended by the minute",
        ),
    ]
