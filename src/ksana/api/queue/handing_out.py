"""Hand due items out to workers. Whoever waits for some and hangs up is handed nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec

from ksana.api.kit import Call, Input, Route, Scope
from ksana.api.queue.item_shapes import MOST, Instant, PulledView, Queue, TypeName, show_pulled
from ksana.api.queue.words import GOVERNANCE, Action, ObjectType, types_of
from ksana.api.services import Services
from ksana.domain.errors import InvalidArgument
from ksana.domain.items import DEFAULT_LEASE, PullOrder
from ksana.domain.times import parse_instant

LONGEST_LEASE = timedelta(days=7)

LeaseSeconds = Annotated[
    int, msgspec.Meta(ge=1, le=round(LONGEST_LEASE.total_seconds()), description="how long the items are the worker's")
]
DEFAULT_LEASE_SECONDS = round(DEFAULT_LEASE.total_seconds())
_ORDERS = {"due": PullOrder.DUE, "priority": PullOrder.AGE}


class PullInput(Input, frozen=True):
    """Which items a worker wants: at most `limit` that are due at `now` (its own clock, if it says one), waiting for
    some up to `wait_sec`. In the order `priority`, a high priority counts like ten minutes of waiting."""

    worker_id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    now: Instant | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST)] = 100
    lease_sec: LeaseSeconds = DEFAULT_LEASE_SECONDS
    wait_sec: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0
    queue: Queue = GOVERNANCE
    object_type: ObjectType | None = None
    action: Action | None = None
    types: Annotated[list[TypeName], msgspec.Meta(min_length=1, max_length=100)] | None = None
    order: Literal["due", "priority"] = "due"


class Pulled(msgspec.Struct, frozen=True):
    """What was handed out, in order."""

    jobs: list[PulledView]


async def pull(call: Call[PullInput, None]) -> Pulled:
    """Hand out what is due, or wait for something."""
    services: Services = call.services
    engine, body = services.engine, call.body
    wait = timedelta(seconds=body.wait_sec)
    runs = await engine.queue.pull(
        body.queue,
        body.worker_id,
        limit=body.limit,
        lease=timedelta(seconds=body.lease_sec),
        now=_now(body),
        wait=wait,
        types=_types(body),
        order=_ORDERS[body.order],
        hung_up=call.hung_up if wait else None,
    )
    again = [run.id for run in runs if run.attempt > 1]
    kept = await engine.store.kept(again) if again else {}
    return Pulled([show_pulled(run, kept.get(run.id)) for run in runs])


def _now(body: PullInput) -> datetime | None:
    return None if body.now is None else parse_instant(body.now, "now")


def _types(body: PullInput) -> tuple[str, ...]:
    about_objects = types_of(body.object_type, body.action)
    if about_objects and body.types:
        raise InvalidArgument.of("types", "does not go with object_type and action; say one of them")
    return tuple(about_objects or body.types or ())


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "POST",
            "/scheduler/jobs/pull",
            pull,
            Scope.QUEUE_WORK,
            request=PullInput,
            response=Pulled,
            summary="Hand out due items",
        ),
    ]
