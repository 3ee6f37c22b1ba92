"""Look at items: find some, or one with all that was told of it."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from ksana.api.kit import Call, Page, PageQuery, Route, Scope, page_of
from ksana.api.kit.paging import Order, parse_sort
from ksana.api.queue.item_shapes import ItemDetail, ItemView, Queue, show_detail, show_job
from ksana.api.queue.words import Action, ObjectType, Status, run_id_of, states_of, types_of
from ksana.api.services import Services
from ksana.domain.errors import NotFound
from ksana.domain.items import KIND, stored_queue
from ksana.domain.queries import RunQuery, RunSort

_SORTS: Final = {"job_id": RunSort.ID, "run_at": RunSort.DUE, "ended_at": RunSort.ENDED}


class FoundQuery(PageQuery, frozen=True, kw_only=True):
    """Which items, newest first unless `sort` names `job_id`, `run_at` or `ended_at`."""

    queue: Queue | None = None
    object_type: ObjectType | None = None
    action: Action | None = None


class JobsQuery(FoundQuery, frozen=True, kw_only=True):
    status: Status | None = None
    worker_id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


def run_query(query: FoundQuery, **said: Any) -> RunQuery:
    """What a search for items asks the store."""
    order = parse_sort(query.sort, _SORTS.keys(), Order("job_id", descending=True))
    return RunQuery(
        kind=KIND,
        queue=None if query.queue is None else stored_queue(query.queue),
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
    """An item, with what workers told of it."""
    services: Services = call.services
    run = await services.engine.queue.get(run_id_of(call.text("id")))
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
            response=ItemDetail,
            summary="Get an item",
            errors=(NotFound,),
        ),
    ]
