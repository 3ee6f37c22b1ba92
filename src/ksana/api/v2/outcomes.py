"""How jobs have fared lately: the last runs of each, for a list that shows many jobs at once."""

from __future__ import annotations

import asyncio
import re
from math import ceil
from typing import Annotated, Any, Final

import msgspec

from ksana.api.kit import Call, Route, Scope, Timestamp, timestamp
from ksana.api.v2.waterfall import millis
from ksana.domain.errors import InvalidArgument
from ksana.domain.ports import Store
from ksana.domain.queries import RunQuery
from ksana.domain.runs import Run
from ksana.domain.states import FAILURES, State

_LAST: Final = 20
_ID: Final = re.compile(r"[0-9]{1,18}")
_MOST_JOBS: Final = 200


class OutcomesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs: their ids with commas between them, at most 200."""

    ids: Annotated[str, msgspec.Meta(description="ids with commas between them", examples=["1,2,3"])]


class OutcomeView(msgspec.Struct, frozen=True, kw_only=True):
    """How a run stands."""

    run_id: int
    state: State
    ended_at: Timestamp | None


class JobOutcomes(msgspec.Struct, frozen=True, kw_only=True):
    """The last runs of a job, the newest first; how long 95 of 100 of them took at most, and the share of those that
    were tried to the end which succeeded. Null while there is nothing to judge by."""

    job_id: int
    last: list[OutcomeView]
    p95_ms: float | None
    success_rate: float | None


class OutcomesView(msgspec.Struct, frozen=True, kw_only=True):
    items: list[JobOutcomes]


async def outcomes(call: Call[None, OutcomesQuery]) -> OutcomesView:
    """The last twenty runs of each of these jobs. A job that is not there has none."""
    store = call.services.engine.store
    return OutcomesView(items=list(await asyncio.gather(*(_of_job(store, id) for id in _ids(call.query.ids)))))


def _ids(text: str) -> list[int]:
    parts = dict.fromkeys(part.strip() for part in text.split(","))
    if len(parts) > _MOST_JOBS:
        raise InvalidArgument.of("ids", f"at most {_MOST_JOBS} at once, not {len(parts)}; ask for the rest separately")
    if not all(_ID.fullmatch(part) for part in parts):
        raise InvalidArgument.of("ids", "must be ids of jobs with commas between them, such as 1,2,3")
    return [int(part) for part in parts]


async def _of_job(store: Store, job_id: int) -> JobOutcomes:
    runs = (await store.find_runs(RunQuery(job_id=job_id, limit=_LAST, counted=False))).items
    return JobOutcomes(
        job_id=job_id,
        last=[OutcomeView(run_id=run.id, state=run.state, ended_at=timestamp(run.ended_at)) for run in runs],
        p95_ms=_p95(runs),
        success_rate=_success_rate(runs),
    )


def _p95(runs: list[Run]) -> float | None:
    took = sorted(
        millis(run.started_at, run.ended_at) for run in runs if run.started_at is not None and run.ended_at is not None
    )
    return took[ceil(0.95 * len(took)) - 1] if took else None


def _success_rate(runs: list[Run]) -> float | None:
    good = sum(run.state is State.SUCCESS for run in runs)
    tried = good + sum(run.state in FAILURES for run in runs)
    return good / tried if tried else None


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "GET",
            "/api/v2/jobs/outcomes",
            outcomes,
            Scope.RUN_READ,
            query=OutcomesQuery,
            response=OutcomesView,
            summary="The last runs of many jobs",
        )
    ]
