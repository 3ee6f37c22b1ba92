"""Enqueue items, one or many."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ksana.api.kit import Call, Reply, Route, Scope
from ksana.api.kit.conversion import convert
from ksana.api.queue.item_reading import read_new_job
from ksana.api.queue.item_shapes import (
    AnsweredEnqueue,
    EnqueuedView,
    EnqueueResults,
    NewJob,
    NewJobs,
    show_enqueued,
    show_error,
)
from ksana.api.services import Services
from ksana.domain.errors import AlreadyExists, InvalidArgument, KsanaError, VerifyCapReached
from ksana.domain.items import NewItem
from ksana.domain.runs import Run

_KEY_LENGTH = 190


class _AllRight(msgspec.Struct, frozen=True):
    """A body of many items as it mostly is: with nothing wrong in any of them."""

    jobs: list[NewJob]


_all_right = msgspec.json.Decoder(_AllRight).decode


async def enqueue(call: Call[NewJob, None]) -> Reply:
    """Enqueue an item, or answer the one that has used its key: 201 if it is new, else 200."""
    services: Services = call.services
    queue, now = services.engine.queue, services.engine.clock.now()
    [(run, is_new)] = await queue.enqueue([read_new_job(call.body, now, _header_key(call))])
    if isinstance(run, KsanaError):
        raise run
    shown = show_enqueued(run, is_new)
    return Reply(shown, 201 if is_new else 200, {"Location": f"/scheduler/jobs/{shown.job_id}"})


async def enqueue_many(call: Call[NewJobs, None]) -> EnqueueResults:
    """Enqueue items, each answered on its own and in order: what is right is stored, whatever is wrong beside it."""
    services: Services = call.services
    queue, now = services.engine.queue, services.engine.clock.now()
    read = [_read(given, now) for given in _typed(call)]
    done = iter(await queue.enqueue([one for one in read if isinstance(one, NewItem)]))
    answers = [(one, False) if isinstance(one, InvalidArgument) else next(done) for one in read]
    return EnqueueResults([_answer(run, is_new, call.request_id) for run, is_new in answers])


def _typed(call: Call[NewJobs, None]) -> Sequence[NewJob | dict[str, Any]]:
    """The items in one pass over the body, or one by one if there is anything wrong with any of them."""
    try:
        return _all_right(call.raw).jobs
    except (ValueError, RecursionError):
        return call.body.jobs


def _read(given: NewJob | dict[str, Any], now: datetime) -> NewItem | InvalidArgument:
    try:
        return read_new_job(given if isinstance(given, NewJob) else convert(given, NewJob), now)
    except InvalidArgument as error:
        return error


def _answer(result: Run | KsanaError, is_new: bool, request_id: str) -> AnsweredEnqueue:
    if isinstance(result, Run):
        return AnsweredEnqueue(status=201 if is_new else 200, job=show_enqueued(result, is_new))
    status, error = show_error(result, request_id)
    return AnsweredEnqueue(status=status, error=error)


def _header_key(call: Call[Any, Any]) -> str | None:
    key = call.header("idempotency-key")
    if key is not None and not 1 <= len(key) <= _KEY_LENGTH:
        raise InvalidArgument.of("Idempotency-Key", f"must be 1 to {_KEY_LENGTH} characters long")
    return key


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "POST",
            "/scheduler/jobs",
            enqueue,
            Scope.QUEUE_WRITE,
            request=NewJob,
            response=EnqueuedView,
            status=201,
            other_status=200,
            summary="Enqueue an item",
            errors=(AlreadyExists, VerifyCapReached),
        ),
        Route(
            "POST",
            "/scheduler/jobs/batch",
            enqueue_many,
            Scope.QUEUE_WRITE,
            request=NewJobs,
            response=EnqueueResults,
            summary="Enqueue many items",
        ),
    ]
