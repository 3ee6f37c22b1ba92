"""Look at items: find some, or one with all that was told of it."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from ksana.api.kit import Call, Page, PageQuery, Route, Scope, page_of
from ksana.api.kit.errors import Forbidden
from ksana.api.kit.keys import require_scope
from ksana.api.kit.paging import Order, parse_sort
from ksana.api.queue.item_shapes import ItemDetail, ItemView, Queue, show_detail, show_job
from ksana.api.queue.words import Action, ObjectType, Status, run_id_of, states_of, types_of
from ksana.api.services import Services
from ksana.domain.errors import InvalidArgument, NotFound
from ksana.domain.items import KIND, stored_queue
from ksana.domain.objects import subject_of
from ksana.domain.queries import RunQuery, RunSort
from ksana.domain.states import State

_SORTS: Final = {"job_id": RunSort.ID, "run_at": RunSort.DUE, "ended_at": RunSort.ENDED}


class FoundQuery(PageQuery, frozen=True, kw_only=True):
    """Which items, newest first unless `sort` names `job_id`, `run_at` or `ended_at`."""

    queue: Queue | None = None
    object_type: ObjectType | None = None
    action: Action | None = None
    object_id: Annotated[str, msgspec.Meta(min_length=1, max_length=150)] | None = None


class JobsQuery(FoundQuery, frozen=True, kw_only=True):
    status: Status | None = None
    worker_id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


def run_query(query: FoundQuery, **said: Any) -> RunQuery:
    """What a search for items asks the store."""
    if query.object_id is not None and query.object_type is None:
        raise InvalidArgument.of("object_id", "goes with object_type; say both")
    order = parse_sort(query.sort, _SORTS.keys(), Order("job_id", descending=True))
    return RunQuery(
        kind=KIND,
        queue=None if query.queue is None else stored_queue(query.queue),
        subject=None if query.object_id is None else subject_of(query.object_type or "", query.object_id),
        steps=frozenset(types_of(query.object_type, query.action)),
        sort=_SORTS[order.field],
        descending=order.descending,
        offset=query.offset,
        limit=query.page_size,
        **said,
    )


async def list_jobs(call: Call[None, JobsQuery]) -> Page[ItemView]:
    """Items, newest first."""
    services: Services = call.services
    query = call.query
    states = frozenset() if query.status is None else states_of(query.status)
    found = await services.engine.store.find_runs(run_query(query, states=states, holder=query.worker_id))
    return page_of([show_job(run) for run in found.items], found.total, query)


async def get_job(call: Call[None, None]) -> ItemDetail:
    """An item, with what workers told of it. Who may work sees what is being worked on."""
    services: Services = call.services
    run = await services.engine.queue.get(run_id_of(call.text("id")))
    if run.state is not State.RUNNING:
        require_scope(call.principal, Scope.QUEUE_READ)
    return show_detail(run, (await services.engine.store.kept([run.id])).get(run.id))


def routes() -> list[Route[Any, Any]]:
    path = "/scheduler/jobs"
    return [
        Route("GET", path, list_jobs, Scope.QUEUE_READ, query=JobsQuery, response=Page[ItemView], summary="List items"),
        Route(
            "GET",
            f"{path}/{{id}}",
            get_job,
            Scope.QUEUE_READ,
            # A worker that goes on with an item asks how far the last one had come.
            or_scopes=(Scope.QUEUE_WORK,),
            response=ItemDetail,
            summary="Get an item",
            errors=(NotFound, Forbidden),
        ),
    ]
