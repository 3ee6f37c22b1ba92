"""Filling in slots of the past that have no run."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ksana.api.kit import Call, Input, Reply, Route, Scope, Timestamp, timestamp
from ksana.api.services import Services
from ksana.api.v2.schedule_shapes import Instant, Problems
from ksana.domain.errors import InvalidArgument, InvalidState, NotFound

_SAMPLE: Final = 20


class BackfillInput(Input, frozen=True, kw_only=True):
    """The stretch of the past to fill in, both ends included. With `dry_run` it is only looked at."""

    since: Instant
    until: Instant
    dry_run: bool = False


class BackfillView(msgspec.Struct, frozen=True, kw_only=True):
    """How many slots have no run, the first of them, and the runs that were made of them (none in a dry run)."""

    count: int
    sample: list[Timestamp]
    run_ids: list[int]


async def backfill(call: Call[BackfillInput, None]) -> Reply:
    """Run a job for slots of the past that have no run: at most 1,000 at once, under the limit of the job."""
    services: Services = call.services
    body, verbs = call.body, services.engine.backfill
    problems = Problems()
    since, until = problems.instant(body.since, "since"), problems.instant(body.until, "until")
    problems.raise_any()
    assert since is not None and until is not None
    if since > until:
        raise InvalidArgument.of("since", "must not be after until")
    job = await services.engine.jobs.get(call.number("id"))
    slots = await verbs.missing(job, since, until)
    made = [] if body.dry_run else await verbs.fill(job, slots)
    view = BackfillView(
        count=len(slots) if body.dry_run else len(made),
        sample=[timestamp(slot_at) for slot_at in slots[:_SAMPLE]],
        run_ids=[run.id for run in made],
    )
    return Reply(view, 200 if body.dry_run else 202)


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "POST",
            "/api/v2/jobs/{id:int}/backfill",
            backfill,
            Scope.RUN_WRITE,
            request=BackfillInput,
            response=BackfillView,
            status=202,
            other_status=200,
            summary="Fill in slots of the past",
            errors=(NotFound, InvalidState),
        )
    ]
