"""Runs around a run: the ones before and after it, and those that ended by the same error."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from ksana.api.kit import Call, Route, Scope, Timestamp, timestamp
from ksana.domain.errors import NotFound
from ksana.domain.ports import Store
from ksana.domain.queries import RunQuery
from ksana.domain.runs import Run

_PAGE: Final = 200
_MOST_LOOKED_AT: Final = 1000
_MOST_SHOWN: Final = 100
_NEAR: Final = timedelta(hours=24)


class NeighboursView(msgspec.Struct, frozen=True, kw_only=True):
    """The runs made just before and after a run, of all jobs and of the same one. Steps of chains count only among
    their siblings."""

    previous: int | None
    next: int | None
    previous_same_job: int | None
    next_same_job: int | None


class SimilarView(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of the same job that ended by an error with the same first line within 24 hours of this one, which is
    among them; `run_ids` has the newest hundred. `is_partial` if there were too many runs in between to look at all."""

    count: int
    first_at: Timestamp | None
    last_at: Timestamp | None
    run_ids: list[int]
    is_partial: bool


async def neighbours(call: Call[None, None]) -> NeighboursView:
    """Where to go from a run: back and on."""
    engine = call.services.engine
    run = await engine.runs.get(call.number("id"))
    kin: dict[str, Any] = {"is_child": False} if run.parent_id is None else {"parent_id": run.parent_id}
    previous, next = await _around(engine.store, run, **kin)
    same = (None, None) if run.job_id is None else await _around(engine.store, run, job_id=run.job_id)
    return NeighboursView(previous=previous, next=next, previous_same_job=same[0], next_same_job=same[1])


async def _around(store: Store, run: Run, **among: Any) -> tuple[int | None, int | None]:
    """The nearest before and after a run among these."""
    before = await store.find_runs(RunQuery(**among, before_id=run.id, limit=1, counted=False))
    after = await store.find_runs(RunQuery(**among, after_id=run.id, descending=False, limit=1, counted=False))
    return _first(before.items), _first(after.items)


def _first(runs: list[Run]) -> int | None:
    return runs[0].id if runs else None


async def similar(call: Call[None, None]) -> SimilarView:
    """How often the same has happened. A run without an error is like no other."""
    engine = call.services.engine
    run = await engine.runs.get(call.number("id"))
    found, is_partial = [run] if run.error else [], False
    if run.error and run.job_id is not None:
        for descending in (True, False):
            looked_at = 0
            async for other in beside(engine.store, run, descending=descending):
                looked_at += 1
                if abs(_at(other) - _at(run)) > _NEAR:
                    break
                if _first_line(other.error) == _first_line(run.error):
                    found.append(other)
            is_partial |= looked_at == _MOST_LOOKED_AT
    found.sort(key=lambda one: one.id, reverse=True)
    instants = [_at(one) for one in found]
    return SimilarView(
        count=len(found),
        first_at=timestamp(min(instants, default=None)),
        last_at=timestamp(max(instants, default=None)),
        run_ids=[one.id for one in found[:_MOST_SHOWN]],
        is_partial=is_partial,
    )


async def beside(store: Store, run: Run, *, descending: bool) -> AsyncIterator[Run]:
    """The runs of the same job made before a run, or after it, the nearest first; no more than a thousand."""
    last = run.id
    for _ in range(_MOST_LOOKED_AT // _PAGE):
        query = RunQuery(
            job_id=run.job_id,
            before_id=last if descending else None,
            after_id=None if descending else last,
            descending=descending,
            limit=_PAGE,
            counted=False,
        )
        items = (await store.find_runs(query)).items
        for other in items:
            yield other
        if len(items) < _PAGE:
            return
        last = items[-1].id


def _at(run: Run) -> datetime:
    return run.ended_at or run.created_at


def _first_line(error: str) -> str:
    return error.partition("\n")[0].strip()


def routes() -> list[Route[Any, Any]]:
    one = "/api/v2/runs/{id:int}"
    return [
        Route(
            "GET",
            one + "/neighbours",
            neighbours,
            Scope.RUN_READ,
            response=NeighboursView,
            summary="The runs before and after a run",
            errors=(NotFound,),
        ),
        Route(
            "GET",
            one + "/similar",
            similar,
            Scope.RUN_READ,
            response=SimilarView,
            summary="Runs that ended by the same error",
            errors=(NotFound,),
        ),
    ]
