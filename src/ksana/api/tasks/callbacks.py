"""Callbacks: the outside world says how an asynchronous run ended, or how far it has come.

Whoever holds a run's token may. Without one, task and run are named, and that is open only where nobody else can come:
on loopback, as long as there is no API key.
"""

from __future__ import annotations

from typing import Any

from ksana.api.kit import PUBLIC, Call, Route, Scope
from ksana.api.kit.errors import InvalidJson, MethodNotAllowed, Unauthenticated
from ksana.api.services import Services
from ksana.api.tasks.callback_shapes import (
    CallbackByIds,
    CallbackInput,
    CallbackView,
    CalledBack,
    read_callback,
    read_callback_by_ids,
    show_callback,
    word_of,
)
from ksana.api.tasks.finding import SURFACE, find_run
from ksana.api.tasks.task_shapes import callback_method_of
from ksana.api.tasks.words import CallbackMethod, final_status_of
from ksana.domain.callbacks import Letter
from ksana.domain.errors import InvalidState, NotFound
from ksana.domain.jobs import Job
from ksana.domain.runs import Run


async def by_token(call: Call[bytes, None]) -> CalledBack:
    """Say how the run of this token ended, or how far it has come. The first word on its end counts."""
    return await _by_token(call, CallbackMethod.POST)


async def by_token_with_put(call: Call[bytes, None]) -> CalledBack:
    """The same for tasks whose callback_method is PUT."""
    return await _by_token(call, CallbackMethod.PUT)


async def by_token_with_patch(call: Call[bytes, None]) -> CalledBack:
    """The same for tasks whose callback_method is PATCH."""
    return await _by_token(call, CallbackMethod.PATCH)


async def _by_token(call: Call[bytes, None], method: CallbackMethod) -> CalledBack:
    services: Services = call.services
    verbs, token = services.engine.runs, call.text("token")
    if method is not CallbackMethod.POST:
        run = await verbs.by_token(token)
        _require_method(method, await _task_of(services, run.job_id))
    word = word_of(read_callback(call.body))
    return _answer(await verbs.call_back(token, word, _letter(call)))


async def by_ids(call: Call[bytes, None]) -> CalledBack:
    """Say the same by naming the task and the run."""
    return await _by_ids(call, CallbackMethod.POST)


async def by_ids_with_put(call: Call[bytes, None]) -> CalledBack:
    """The same for tasks whose callback_method is PUT."""
    return await _by_ids(call, CallbackMethod.PUT)


async def by_ids_with_patch(call: Call[bytes, None]) -> CalledBack:
    """The same for tasks whose callback_method is PATCH."""
    return await _by_ids(call, CallbackMethod.PATCH)


async def _by_ids(call: Call[bytes, None], method: CallbackMethod) -> CalledBack:
    services: Services = call.services
    if not services.callback_by_ids:
        raise NotFound("callbacks by task_id and run_id are switched off; use the token, or set callback.by_ids: true")
    if services.is_exposed and call.principal.key_id is None:
        raise Unauthenticated("beyond loopback this needs an API key with run:control; or call back by the token")
    body = read_callback_by_ids(call.body)
    task = await _task_of(services, body.task_id)
    if task is None:
        raise NotFound(f"there is no task {body.task_id}")
    _require_method(method, task)
    run = await services.engine.runs.call_back_by_ids(task.id, body.run_id, word_of(body), _letter(call))
    return _answer(run)


async def ledger(call: Call[None, None]) -> list[CallbackView]:
    """Every callback that came for a run, oldest first, and whether it counted."""
    run = await find_run(call)
    return [show_callback(record) for record in await call.services.engine.store.callbacks(run.id)]


async def _task_of(services: Services, job_id: int | None) -> Job | None:
    """The task, deleted or not: what was under way then may still report."""
    jobs = await services.engine.store.get_jobs([job_id]) if job_id is not None else []
    return jobs[0] if jobs and jobs[0].surface == SURFACE else None


def _require_method(method: CallbackMethod, task: Job | None) -> None:
    allowed = {CallbackMethod.POST, callback_method_of(task) if task is not None else CallbackMethod.POST}
    if method not in allowed:
        raise MethodNotAllowed(method, ", ".join(sorted(allowed)))


def _letter(call: Call[bytes, None]) -> Letter:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in call.headers.items()}
    return Letter(headers, call.body)


def _answer(run: Run) -> CalledBack:
    return CalledBack(run.id, final_status_of(run))


def routes() -> list[Route[Any, Any]]:
    with_token, with_ids = "/api/v1/callbacks/{token}", "/api/v1/callbacks"
    found: list[Route[Any, Any]] = [
        Route(
            method,
            path,
            handler,
            PUBLIC if path == with_token else Scope.RUN_CONTROL,
            raw=True,
            request=CallbackInput if path == with_token else CallbackByIds,
            response=CalledBack,
            summary=summary,
            errors=(InvalidJson, NotFound, InvalidState, MethodNotAllowed, Unauthenticated),
        )
        for method, path, handler, summary in (
            ("POST", with_token, by_token, "Call back by token"),
            ("PUT", with_token, by_token_with_put, "Call back by token, with PUT"),
            ("PATCH", with_token, by_token_with_patch, "Call back by token, with PATCH"),
            ("POST", with_ids, by_ids, "Call back by task and run"),
            ("PUT", with_ids, by_ids_with_put, "Call back by task and run, with PUT"),
            ("PATCH", with_ids, by_ids_with_patch, "Call back by task and run, with PATCH"),
        )
    ]
    return [
        *found,
        Route(
            "GET",
            "/api/v1/runs/{id:int}/callbacks",
            ledger,
            Scope.RUN_READ,
            response=list[CallbackView],
            summary="List the callbacks of a run",
            errors=(NotFound,),
        ),
    ]
