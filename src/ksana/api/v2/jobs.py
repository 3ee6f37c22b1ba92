"""Jobs: create, list, get, change, delete, pause, resume, run now, fire log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

import msgspec

from ksana.api.kit import Call, Page, PageQuery, Reply, Route, Scope, encode, etag, page_of
from ksana.api.kit.paging import Order, parse_sort
from ksana.api.services import Services
from ksana.api.v2.job_reading import read_change, read_new_job, read_until
from ksana.api.v2.job_shapes import JobInput, JobPatch, JobView, PauseInput, show_job
from ksana.api.v2.run_shapes import FireView, ReasonInput, RunView, TriggerInput, show_fire, show_run
from ksana.api.v2.schedule_shapes import Instant, Problems
from ksana.domain.errors import AlreadyExists, ConcurrencyLimit, InvalidArgument, NotFound, Problem, VersionConflict
from ksana.domain.idempotency import IdempotencyClaim, IdempotencyRecord
from ksana.domain.jobs import Job, JobSpec
from ksana.domain.queries import JobQuery, JobSort
from ksana.domain.runs import Run
from ksana.engine.acting import because

SURFACE = "v2"


class JobsQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs; `name` matches any part of the name."""

    name: str = ""
    surface: str | None = None
    kind: str | None = None
    tag: str | None = None
    enabled: bool | None = None


class FiresQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The stretch of the fire log to show; the last day and the next minute unless said otherwise."""

    since: Instant | None = None
    until: Instant | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100


async def create(call: Call[JobInput, None]) -> Reply:
    """Store a job and plan its first slot."""
    services: Services = call.services
    engine = services.engine
    now = engine.clock.now()
    claim = call.idempotency

    def answer(job: Job) -> IdempotencyRecord:
        assert claim is not None
        return claim.answered(201, encode(show_job(job)), now)

    with _naming_config_fields():
        spec = read_new_job(call.body, services.defaults, now, engine.jobs.checked)
        job = await engine.jobs.create(SURFACE, spec, answer if claim else None)
    return _shown(job, status=201, headers={"Location": f"/api/v2/jobs/{job.id}"})


async def list_jobs(call: Call[None, JobsQuery]) -> Page[JobView]:
    query = call.query
    order = parse_sort(query.sort, [sort.value for sort in JobSort], Order("id", descending=False))
    store = call.services.engine.store
    page = await store.find_jobs(
        JobQuery(
            surface=query.surface,
            name=query.name,
            kind=query.kind,
            tag=query.tag,
            enabled=query.enabled,
            sort=JobSort(order.field),
            descending=order.descending,
            offset=query.offset,
            limit=query.page_size,
        )
    )
    last = await store.last_runs(job.id for job in page.items)
    return page_of([show_job(job, last.get(job.id)) for job in page.items], page.total, query)


async def get(call: Call[None, None]) -> Reply:
    services: Services = call.services
    return await _with_last_run(services, await services.engine.jobs.get(call.number("id")))


async def change(call: Call[JobPatch, None]) -> Reply:
    """Change a job. Send its version in If-Match or in the body to be sure that nobody else changed it first."""
    services: Services = call.services
    verbs, body, now = services.engine.jobs, call.body, services.engine.clock.now()
    version = call.expected_version(body.version)

    def edit(job: Job) -> JobSpec:
        return read_change(body, job, services.defaults, now, verbs.checked)

    with _naming_config_fields():
        job = await verbs.change(call.number("id"), edit, version)
    return await _with_last_run(services, job)


async def delete(call: Call[None, None]) -> Reply:
    """Delete a job: nothing of it starts any more, what is under way may finish."""
    await call.services.engine.jobs.delete(call.number("id"), call.expected_version())
    return Reply(status=204)


async def pause(call: Call[PauseInput, None]) -> Reply:
    """Plan no more slots and cancel what has not started, until somebody resumes the job or the given instant does. A
    job that is paused is told anew until when: without `until` it stays paused, whatever end was said before."""
    services: Services = call.services
    body, verbs = call.body, services.engine.jobs
    until = read_until(body.until, services.engine.clock.now())
    with because(body.reason):
        job = await verbs.pause(call.number("id"), call.expected_version(), until=until, reason=body.reason)
    return await _with_last_run(services, job)


async def resume(call: Call[ReasonInput, None]) -> Reply:
    """Plan from the next slot on."""
    services: Services = call.services
    with because(call.body.reason):
        job = await services.engine.jobs.resume(call.number("id"), call.expected_version())
    return await _with_last_run(services, job)


async def run_now(call: Call[TriggerInput, None]) -> Reply:
    """Run a job now, beside its schedule and under its overlap rule."""
    services: Services = call.services
    claim: IdempotencyClaim | None = call.idempotency
    now = services.engine.clock.now()
    job = await services.engine.jobs.get(call.number("id"))

    def answer(run: Run) -> IdempotencyRecord:
        assert claim is not None
        return claim.answered(201, encode(show_run(run, job)), now)

    given = None if call.body.input is None else encode(call.body.input)
    run = await services.engine.runs.trigger(job.id, given, answer if claim else None)
    return Reply(show_run(run, job), 201, {"Location": f"/api/v2/runs/{run.id}"})


async def fire_log(call: Call[None, FiresQuery]) -> list[FireView]:
    """What became of each planned instant, newest first: fired, skipped, missed or left out, and why."""
    services: Services = call.services
    job = await services.engine.jobs.get(call.number("id"))
    problems = Problems()
    now = services.engine.clock.now()
    since = problems.instant(call.query.since, "since") or now - timedelta(days=1)
    until = problems.instant(call.query.until, "until") or now + timedelta(minutes=1)
    problems.raise_any()
    found = await services.engine.store.fire_log(job.id, since, until, call.query.limit)
    return [show_fire(record) for record in found]


@contextmanager
def _naming_config_fields() -> Iterator[None]:
    """Targets name their fields under `target`; in a request here they stand one level deeper."""
    try:
        yield
    except InvalidArgument as error:
        raise InvalidArgument(Problem(_config_field(field), message) for field, message in error.problems) from None


def _config_field(field: str) -> str:
    place, _, rest = field.partition(".")
    return f"target.config.{rest}" if place == "target" and rest and rest != "kind" else field


async def _with_last_run(services: Services, job: Job) -> Reply:
    last = await services.engine.store.last_runs([job.id])
    return _shown(job, last.get(job.id))


def _shown(job: Job, last_run: Run | None = None, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    return Reply(show_job(job, last_run), status, {"ETag": etag(job.version), **(headers or {})})


def routes() -> list[Route[Any, Any]]:
    every, one = "/api/v2/jobs", "/api/v2/jobs/{id:int}"
    reads = partial(Route, scope=Scope.JOB_READ)
    changes = partial(Route, scope=Scope.JOB_WRITE, versioned=True, errors=(NotFound, VersionConflict))
    switches = partial(changes, response=JobView, optional_body=True)
    return [
        Route(
            "POST",
            every,
            create,
            Scope.JOB_WRITE,
            request=JobInput,
            response=JobView,
            status=201,
            creates=True,
            summary="Create a job",
            errors=(AlreadyExists,),
            name="create_job",
        ),
        reads("GET", every, list_jobs, query=JobsQuery, response=Page[JobView], summary="List jobs"),
        reads("GET", one, get, response=JobView, summary="Get a job", errors=(NotFound,), name="get_job"),
        changes("PATCH", one, change, request=JobPatch, response=JobView, summary="Change a job", name="change_job"),
        changes("DELETE", one, delete, status=204, summary="Delete a job", name="delete_job"),
        switches("POST", one + "/pause", pause, request=PauseInput, summary="Pause a job"),
        switches("POST", one + "/resume", resume, request=ReasonInput, summary="Resume a job"),
        Route(
            "POST",
            one + "/runs",
            run_now,
            Scope.RUN_WRITE,
            request=TriggerInput,
            response=RunView,
            status=201,
            creates=True,
            optional_body=True,
            summary="Run a job now",
            errors=(NotFound, ConcurrencyLimit),
        ),
        reads(
            "GET",
            one + "/fires",
            fire_log,
            query=FiresQuery,
            response=list[FireView],
            summary="The fire log of a job",
            errors=(NotFound,),
        ),
    ]
