"""Tasks: create, list, get, update, switch on and off, delete, trigger."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, Literal

import msgspec

from ksana.api.kit import Call, Reply, Route, Scope, encode, etag
from ksana.api.services import Services
from ksana.api.tasks.finding import SURFACE, find_task
from ksana.api.tasks.listing import MAX_PAGE_SIZE, Cut
from ksana.api.tasks.spellings import snake_task, snake_trigger
from ksana.api.tasks.task_reading import naming_task_fields, read_change, read_new_task, read_replacement
from ksana.api.tasks.task_shapes import (
    Created,
    Deleted,
    Switched,
    TaskInput,
    TaskPatch,
    TaskReplacement,
    TaskView,
    Updated,
    show_task,
    status_of,
)
from ksana.domain.errors import AlreadyExists, ConcurrencyLimit, NotFound, VersionConflict
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.jobs import Job, JobSpec
from ksana.domain.queries import JobQuery
from ksana.domain.runs import Run

_WHOLE_LIST: Final = 1000


class TasksQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks: the enabled ones unless `status` says otherwise; `name` matches any part of the name."""

    status: Literal["ENABLED", "DISABLED", "ALL"] = "ENABLED"
    name: str = ""
    page: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    page_size: Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE_SIZE)] | None = None


class TriggerInput(msgspec.Struct, frozen=True, kw_only=True):
    """A run asked for by hand: `override_body` is sent in place of the task's body, `force_async` awaits a callback."""

    override_body: str | dict[str, Any] | list[Any] | None = None
    force_async: bool | None = None


class Triggered(msgspec.Struct, frozen=True):
    run_id: int


async def create(call: Call[TaskInput, None]) -> Reply:
    """Store a task and plan its first run."""
    services: Services = call.services
    engine, claim = services.engine, call.idempotency
    now = engine.clock.now()

    def answer(job: Job) -> IdempotencyRecord:
        assert claim is not None
        return claim.answered(201, encode(Created(job.id, job.name)), now)

    with naming_task_fields():
        spec = read_new_task(call.body, services.defaults, engine.jobs.checked)
        job = await engine.jobs.create(SURFACE, spec, answer if claim else None)
    return Reply(Created(job.id, job.name), 201, {"Location": f"/api/v1/tasks/{job.id}", "ETag": etag(job.version)})


async def list_tasks(call: Call[None, TasksQuery]) -> Reply:
    """Tasks in the order they were made, totals in the headers; without a page at most a thousand."""
    services: Services = call.services
    query = call.query
    cut = Cut.of(query.page, query.page_size, _WHOLE_LIST)
    found = await services.engine.store.find_jobs(
        JobQuery(
            surface=SURFACE,
            name=query.name,
            enabled=None if query.status == "ALL" else query.status == "ENABLED",
            offset=cut.offset,
            limit=cut.size,
        )
    )
    shown = [show_task(job) for job in found.items]
    return Reply(shown, headers=cut.headers(found.total))


async def get(call: Call[None, None]) -> Reply:
    job = await find_task(call)
    return Reply(show_task(job), headers={"ETag": etag(job.version)})


async def replace(call: Call[TaskReplacement, None]) -> Updated:
    """Put a task in the place of another: what is not said is the default again. The switch stays as it is."""
    services: Services = call.services
    verbs, job = services.engine.jobs, await find_task(call)

    def edit(job: Job) -> JobSpec:
        return read_replacement(call.body, job, services.defaults, verbs.checked)

    with naming_task_fields():
        await verbs.change(job.id, edit, call.expected_version(call.body.version))
    return Updated(True)


async def change(call: Call[TaskPatch, None]) -> Updated:
    """Change what is said and leave the rest. A new cron_expr counts at once."""
    services: Services = call.services
    verbs, job = services.engine.jobs, await find_task(call)

    def edit(job: Job) -> JobSpec:
        return read_change(call.body, job, services.defaults, verbs.checked)

    with naming_task_fields():
        await verbs.change(job.id, edit, call.expected_version(call.body.version))
    return Updated(True)


async def enable(call: Call[None, None]) -> Switched:
    """Plan runs again, from the next instant on."""
    job = await find_task(call)
    return Switched(status_of(await call.services.engine.jobs.resume(job.id, call.expected_version())))


async def disable(call: Call[None, None]) -> Switched:
    """Plan no more runs and cancel those that have not started."""
    job = await find_task(call)
    return Switched(status_of(await call.services.engine.jobs.pause(job.id, call.expected_version())))


async def delete(call: Call[None, None]) -> Deleted:
    """Delete a task: nothing of it starts any more, its runs can still be read, its name is free again."""
    job = await find_task(call)
    await call.services.engine.jobs.delete(job.id, call.expected_version())
    return Deleted(True)


async def trigger(call: Call[TriggerInput, None]) -> Reply:
    """Run a task now, whatever its cron says, under its concurrency policy."""
    services: Services = call.services
    engine, claim, job = services.engine, call.idempotency, await find_task(call)
    now = engine.clock.now()

    def answer(run: Run) -> IdempotencyRecord:
        assert claim is not None
        return claim.answered(200, encode(Triggered(run.id)), now)

    run = await engine.runs.trigger(job.id, _input(call.body), answer if claim else None)
    return Reply(Triggered(run.id), headers={"Location": f"/api/v1/runs/{run.id}"})


def _input(body: TriggerInput) -> bytes | None:
    """What the http target takes from a run: a body in place of its own, and a mode."""
    given: dict[str, Any] = {}
    if body.override_body is not None:
        given["body"] = body.override_body
    if body.force_async:
        given["mode"] = "async"
    return encode(given) if given else None


def routes() -> list[Route[Any, Any]]:
    every, one = "/api/v1/tasks", "/api/v1/tasks/{id:int}"
    changed = (NotFound, VersionConflict)
    reads = partial(Route, scope=Scope.JOB_READ)
    changes = partial(Route, scope=Scope.JOB_WRITE, versioned=True, errors=changed)
    writes = partial(changes, response=Updated, adapt=snake_task, errors=(*changed, AlreadyExists))
    return [
        Route(
            "POST",
            every,
            create,
            Scope.JOB_WRITE,
            request=TaskInput,
            response=Created,
            status=201,
            creates=True,
            adapt=snake_task,
            summary="Create a task",
            errors=(AlreadyExists,),
            name="create_task",
        ),
        reads("GET", every, list_tasks, query=TasksQuery, response=list[TaskView], summary="List tasks"),
        reads("GET", one, get, response=TaskView, summary="Get a task", errors=(NotFound,), name="get_task"),
        writes("PUT", one, replace, request=TaskReplacement, summary="Replace a task", name="replace_task"),
        writes("PATCH", one, change, request=TaskPatch, summary="Change a task", name="change_task"),
        changes("PATCH", one + "/enable", enable, response=Switched, summary="Enable a task"),
        changes("PATCH", one + "/disable", disable, response=Switched, summary="Disable a task"),
        changes("DELETE", one, delete, response=Deleted, summary="Delete a task", name="delete_task"),
        Route(
            "POST",
            one + "/trigger",
            trigger,
            Scope.RUN_WRITE,
            request=TriggerInput,
            response=Triggered,
            creates=True,
            optional_body=True,
            adapt=snake_trigger,
            summary="Trigger a task",
            errors=(NotFound, ConcurrencyLimit),
        ),
    ]
