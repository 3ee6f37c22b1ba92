"""Dead letters: find them, see what they died of, put them back."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import msgspec

from ksana.api.kit import Call, Input, Page, Route, Scope, Timestamp, page_of, timestamp
from ksana.api.queue.item_shapes import MOST, Answered, Delay, ItemView, JobId, Queue, show_answer, show_job
from ksana.api.queue.looking import FoundQuery, run_query
from ksana.api.queue.words import Action, ObjectType, job_id_of, run_id_of
from ksana.api.services import Services
from ksana.domain.errors import InvalidArgument, InvalidState, KsanaError, NotFound, Problem
from ksana.domain.items import shown_queue, stored_queue
from ksana.domain.queries import ErrorGroup
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.engine.queue_judges import redriving

_DEAD = frozenset({State.DEAD_LETTER})
_OVER = frozenset({State.DEAD_LETTER, State.FAILED})

ErrorPart = Annotated[str, msgspec.Meta(min_length=1, max_length=1024, description="any part of the error")]


class DeadQuery(FoundQuery, frozen=True, kw_only=True):
    error: ErrorPart | None = None


class GroupsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    queue: Queue | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class GroupView(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of a queue with the same error; `job_id` is the newest of them."""

    queue: str
    error: str
    count: int
    first_at: Timestamp
    last_at: Timestamp
    job_id: str


class Groups(msgspec.Struct, frozen=True):
    """The largest groups first."""

    groups: list[GroupView]


class RedriveInput(Input, frozen=True):
    """Which dead letters to put back: these, or the oldest `limit` that fit. With `rate_per_sec` they come due one
    after the other; one alone may be given another `payload`. With `dry_run` they are only told."""

    job_ids: Annotated[list[JobId], msgspec.Meta(min_length=1, max_length=MOST)] | None = None
    queue: Queue | None = None
    object_type: ObjectType | None = None
    action: Action | None = None
    error: ErrorPart | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST)] = 100
    rate_per_sec: Annotated[float, msgspec.Meta(ge=0.001, le=1_000_000)] | None = None
    payload: Any = msgspec.UNSET
    dry_run: bool = False


class Redriven(msgspec.Struct, frozen=True, kw_only=True):
    """How many were put back, or would be, and what each was answered."""

    dry_run: bool
    count: int
    results: list[Answered]


class RequeueInput(Input, frozen=True):
    """When it comes due, from now, and another payload if it needs one."""

    delay_sec: Delay = 0
    payload: Any = msgspec.UNSET


async def list_dead(call: Call[None, DeadQuery]) -> Page[ItemView]:
    """Dead letters, newest first."""
    services: Services = call.services
    query = call.query
    found = await services.engine.store.find_runs(run_query(query, states=_DEAD, error=query.error or ""))
    return page_of([show_job(run) for run in found.items], found.total, query)


async def groups(call: Call[None, GroupsQuery]) -> Groups:
    """What dead letters died of."""
    services: Services = call.services
    queue = None if call.query.queue is None else stored_queue(call.query.queue)
    found = await services.engine.store.dead_by_error(queue, call.query.limit)
    return Groups([_show_group(group) for group in found])


async def redrive(call: Call[RedriveInput, None]) -> Redriven:
    """Put dead letters back with all their attempts before them; each is answered on its own."""
    services: Services = call.services
    body, queue = call.body, services.engine.queue
    _check(body)
    chosen = await _chosen(services, body)
    rest = timedelta(0) if body.rate_per_sec is None else timedelta(seconds=1 / body.rate_per_sec)
    found = [one for one in chosen if isinstance(one, Run)]
    results: dict[int, Run | KsanaError] = {run.id: run for run in found}
    if not body.dry_run:
        judges = {run.id: redriving(_DEAD, n * rest, body.payload) for n, run in enumerate(found)}
        results = dict(zip(judges, await queue.move_many(judges), strict=True))
    answers = [results[one.id] if isinstance(one, Run) else one for one in chosen]
    count = sum(isinstance(answer, Run) for answer in answers)
    shown = [show_answer(answer, call.request_id) for answer in answers]
    return Redriven(dry_run=body.dry_run, count=count, results=shown)


async def requeue(call: Call[RequeueInput, None]) -> ItemView:
    """Put one item back that failed or is a dead letter."""
    services: Services = call.services
    run_id = run_id_of(call.text("id"))
    judge = redriving(_OVER, timedelta(seconds=call.body.delay_sec), call.body.payload)
    [result] = await services.engine.queue.move_many({run_id: judge})
    if isinstance(result, KsanaError):
        raise result
    return show_job(result)


def _check(body: RedriveInput) -> None:
    problems: list[Problem] = []
    filters = {"queue": body.queue, "object_type": body.object_type, "action": body.action, "error": body.error}
    given = [name for name, value in filters.items() if value is not None]
    if body.job_ids is None and not given:
        problems.append(Problem("job_ids", f"say which, or one of {', '.join(filters)}"))
    if body.job_ids is not None:
        problems += [Problem(name, "does not go with job_ids") for name in given]
        if len(set(body.job_ids)) < len(body.job_ids):
            problems.append(Problem("job_ids", "names one of them twice"))
    if body.payload is not msgspec.UNSET and len(body.job_ids or ()) != 1:
        problems.append(Problem("payload", "can be given to one job alone; name it in job_ids"))
    if problems:
        raise InvalidArgument(problems)


async def _chosen(services: Services, body: RedriveInput) -> list[Run | KsanaError]:
    """The dead letters meant, and in place of those that are none, why not."""
    store = services.engine.store
    if body.job_ids is None:
        query = FoundQuery(
            queue=body.queue, object_type=body.object_type, action=body.action, sort="job_id", page_size=body.limit
        )
        return list((await store.find_runs(run_query(query, states=_DEAD, error=body.error or ""))).items)
    ids = [_id_or_none(job_id) for job_id in body.job_ids]
    found = {run.id: run for run in await store.get_runs([id for id in ids if id is not None])}
    return [_dead(None if id is None else found.get(id), name) for id, name in zip(ids, body.job_ids, strict=True)]


def _id_or_none(job_id: str) -> int | None:
    try:
        return run_id_of(job_id)
    except NotFound:
        return None


def _dead(run: Run | None, job_id: str) -> Run | KsanaError:
    if run is None:
        return NotFound(f'there is no job "{job_id}"')
    return run if run.state in _DEAD else InvalidState(f"{job_id} is no dead letter, but {run.state}")


def _show_group(group: ErrorGroup) -> GroupView:
    return GroupView(
        queue=shown_queue(group.queue),
        error=group.error,
        count=group.count,
        first_at=timestamp(group.first_at),
        last_at=timestamp(group.last_at),
        job_id=job_id_of(group.run_id),
    )


def routes() -> list[Route[Any, Any]]:
    path = "/scheduler/dead-letters"
    return [
        Route(
            "GET",
            path,
            list_dead,
            Scope.QUEUE_READ,
            query=DeadQuery,
            response=Page[ItemView],
            summary="List dead letters",
            name="list_dead_letters",
        ),
        Route(
            "GET",
            f"{path}/groups",
            groups,
            Scope.QUEUE_READ,
            query=GroupsQuery,
            response=Groups,
            summary="Dead letters by their error",
        ),
        Route(
            "POST",
            f"{path}/redrive",
            redrive,
            Scope.QUEUE_WRITE,
            request=RedriveInput,
            response=Redriven,
            summary="Put dead letters back",
        ),
        Route(
            "POST",
            "/scheduler/jobs/{id}/requeue",
            requeue,
            Scope.QUEUE_WRITE,
            request=RequeueInput,
            response=ItemView,
            optional_body=True,
            summary="Put an item back that is over",
            errors=(NotFound, InvalidState),
        ),
    ]
