"""Timers: create, list, get, change, delete, run now, pause, resume, history."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from ksana.api.jobs.reading import read_change, read_new_job
from ksana.api.jobs.shapes import JobShape, RunsQuery
from ksana.api.jobs.standing import standings
from ksana.api.jobs.views import JobView, RunView, Triggered, show_job, show_run, show_triggered
from ksana.api.jobs.words import SURFACE, in_these_words
from ksana.api.kit import Call, Reply, Route, Scope, encode, etag
from ksana.api.services import Services
from ksana.domain.errors import AlreadyExists, NotFound, VersionConflict
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.jobs import Job, JobSpec
from ksana.domain.queries import JobQuery, RunQuery
from ksana.domain.runs import Run
from ksana.domain.standing import standing_of

# The document has no pages; whoever has more jobs than this has other worries.
_ALL: Final = 2**31 - 1


async def create(call: Call[JobShape, None]) -> Reply:
    """Store a job and plan its first fire. An `id` may be given; else it is made."""
    services: Services = call.services
    engine = services.engine
    now = engine.clock.now()
    claim = call.idempotency

    def shown(job: Job) -> JobView:
        return show_job(job, standing_of(job, None, False, now, engine.options.lateness))

    def answer(job: Job) -> IdempotencyRecord:
        assert claim is not None
        return claim.answered(201, encode(shown(job)), now)

    with in_these_words():
        spec = read_new_job(call.body, services.defaults, now, engine.jobs.checked)
        job = await engine.jobs.create(SURFACE, spec, answer if claim else None)
    return Reply(shown(job), 201, {"ETag": etag(job.version), "Location": f"/jobs/{job.ref}"})


async def list_jobs(call: Call[None, None]) -> list[JobView]:
    """Every job of this surface, oldest first."""
    engine = call.services.engine
    page = await engine.store.find_jobs(JobQuery(surface=SURFACE, limit=_ALL))
    found = await standings(engine.store, page.items, engine.clock.now(), engine.options.lateness)
    return [show_job(job, standing) for job, standing in zip(page.items, found, strict=True)]


async def get(call: Call[None, None]) -> Reply:
    return await _shown(call.services, await _found(call))


async def change(call: Call[JobShape, None]) -> Reply:
    """Change what is said, and leave the rest. Only `schedule` and `enabled` move the next fire."""
    services: Services = call.services
    verbs, now = services.engine.jobs, services.engine.clock.now()

    def edit(job: Job) -> JobSpec:
        return read_change(call.body, job, services.defaults, now, verbs.checked)

    job = await _found(call)
    with in_these_words():
        return await _shown(services, await verbs.change(job.id, edit, call.expected_version()))


async def delete(call: Call[None, None]) -> Reply:
    """Delete a job: it never fires again, what is under way may finish."""
    job = await _found(call)
    await call.services.engine.jobs.delete(job.id, call.expected_version())
    return Reply(status=204)


async def run_now(call: Call[None, None]) -> Triggered:
    """Run a job at once, whatever else of it is running; its schedule stays as it is."""
    engine = call.services.engine
    claim = call.idempotency
    now = engine.clock.now()
    job = await _found(call)

    def answer(run: Run) -> IdempotencyRecord:
        assert claim is not None
        return claim.answered(200, encode(show_triggered(run, job)), now)

    run = await engine.runs.trigger(job.id, None, answer if claim else None, apart=True)
    return show_triggered(run, job)


async def pause(call: Call[None, None]) -> Reply:
    """Switch a job off: nothing is planned any more, what has not started is canceled."""
    return await _switched(call, call.services.engine.jobs.pause)


async def resume(call: Call[None, None]) -> Reply:
    """Switch a job on: it goes on with its next fire, nothing is made up for."""
    return await _switched(call, call.services.engine.jobs.resume)


async def list_runs(call: Call[None, RunsQuery]) -> list[RunView]:
    """What became of its fires, newest first: done, failed, dropped, missed, under way."""
    job = await _found(call)
    query = RunQuery(job_id=job.id, limit=call.query.limit, before_id=call.query.before)
    page = await call.services.engine.store.find_runs(query)
    return [show_run(run, job) for run in page.items]


async def _found(call: Call[Any, Any]) -> Job:
    """The job a path names, if this surface made it."""
    ref = call.text("id")
    services: Services = call.services
    page = await services.engine.store.find_jobs(JobQuery(surface=SURFACE, ref=ref, limit=1))
    if not page.items:
        raise NotFound(f'there is no job "{ref}"')
    return page.items[0]


async def _switched(call: Call[Any, Any], verb: Callable[[int, int | None], Awaitable[Job]]) -> Reply:
    job = await _found(call)
    return await _shown(call.services, await verb(job.id, call.expected_version()))


async def _shown(services: Services, job: Job) -> Reply:
    engine = services.engine
    [standing] = await standings(engine.store, [job], engine.clock.now(), engine.options.lateness)
    return Reply(show_job(job, standing), headers={"ETag": etag(job.version)})


def routes() -> list[Route[Any, Any]]:
    every, one = "/jobs", "/jobs/{id}"
    reads = partial(Route, scope=Scope.JOB_READ)
    changes = partial(Route, scope=Scope.JOB_WRITE, versioned=True, errors=(NotFound, VersionConflict))
    return [
        Route(
            "POST",
            every,
            create,
            Scope.JOB_WRITE,
            request=JobShape,
            response=JobView,
            status=201,
            creates=True,
            summary="Create a timer",
            errors=(AlreadyExists,),
        ),
        reads("GET", every, list_jobs, response=list[JobView], summary="List the timers", name="list"),
        reads("GET", one, get, response=JobView, summary="Get a timer", errors=(NotFound,)),
        changes("PATCH", one, change, request=JobShape, response=JobView, summary="Change a timer"),
        changes("DELETE", one, delete, status=204, summary="Delete a timer"),
        Route(
            "POST",
            one + "/run-now",
            run_now,
            Scope.RUN_WRITE,
            response=Triggered,
            creates=True,
            summary="Run a timer now",
            errors=(NotFound,),
        ),
        changes("POST", one + "/pause", pause, response=JobView, summary="Pause a timer"),
        changes("POST", one + "/resume", resume, response=JobView, summary="Resume a timer"),
        Route(
            "GET",
            one + "/runs",
            list_runs,
            Scope.RUN_READ,
            query=RunsQuery,
            response=list[RunView],
            summary="The runs of a timer",
            errors=(NotFound,),
            name="runs",
        ),
    ]
