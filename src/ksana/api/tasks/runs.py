"""Runs: list those of a task, look at one, cancel it."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from ksana.api.kit import Call, Reply, Route, Scope
from ksana.api.kit.conversion import one_of
from ksana.api.services import Services
from ksana.api.tasks.finding import find_run, find_task
from ksana.api.tasks.listing import MAX_PAGE_SIZE, Cut
from ksana.api.tasks.run_shapes import RunView, show_run
from ksana.api.tasks.words import RunStatus, states_of, status_of
from ksana.api.tokens import may_see_tokens, without_token
from ksana.domain.errors import InvalidArgument, InvalidState, NotFound
from ksana.domain.queries import RunQuery
from ksana.domain.runs import LastAttempt, Run
from ksana.domain.times import parse_instant
from ksana.engine.contexts import Contexts

_LATEST: Final = 50
_BODIES_IN_LISTS: Final = 64 * 1024
_UNZONED: Final = re.compile(r"[0-9-]+[Tt][0-9:.]+")
_OTHER_NAMES: Final = {"CALLBACK_TIMEOUT": RunStatus.FAILED_TIMEOUT}

When = Annotated[str, msgspec.Meta(description="RFC 3339; without a zone it is UTC", examples=["2025-10-14T10:00:00Z"])]


class RunsQuery(msgspec.Struct, frozen=True, kw_only=True, rename={"since": "from", "until": "to"}):
    """Which runs. `from` and `to` bound the planned instant, both included; `SUCCESS` finds both kinds of success."""

    status: str | None = None
    since: When | None = None
    until: When | None = None
    page: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    page_size: Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE_SIZE)] | None = None


class Canceled(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a cancel. A run that was over already keeps its end, which `actual_status` then tells."""

    run_id: int
    status: RunStatus
    actual_status: RunStatus | None = None


async def list_runs(call: Call[None, RunsQuery]) -> Reply:
    """The runs of a task, newest first: the latest fifty, or the page asked for."""
    services: Services = call.services
    query, job = call.query, await find_task(call)
    cut = Cut.of(query.page, query.page_size, _LATEST)
    states, reasons = states_of(_status(query.status)) if query.status else (frozenset(), frozenset())
    found = await services.engine.store.find_runs(
        RunQuery(
            job_id=job.id,
            states=states,
            reasons=reasons,
            planned_since=_instant(query.since, "from"),
            planned_until=_instant(query.until, "to"),
            offset=cut.offset,
            limit=cut.size,
        )
    )
    return Reply(await _shown(call, found.items, _BODIES_IN_LISTS), headers=cut.headers(found.total))


def _status(text: str) -> RunStatus:
    known = {status.value: status for status in RunStatus} | _OTHER_NAMES
    if text.upper() not in known:
        raise InvalidArgument.of("status", one_of(text, [status.value for status in RunStatus]))
    return known[text.upper()]


def _instant(text: str | None, field: str) -> datetime | None:
    if not text:
        return None
    # A plus sign in a query string is a space by the time it gets here.
    text = text.replace(" ", "+" if ":" in text.rpartition(" ")[2] and "T" in text.upper() else "T")
    return parse_instant(f"{text}Z" if _UNZONED.fullmatch(text) else text, field)


async def get(call: Call[None, None]) -> RunView:
    [view] = await _shown(call, [await find_run(call)], None)
    return view


async def cancel(call: Call[None, None]) -> Canceled:
    """End a run that is not over yet; a request under way is broken off."""
    run = await find_run(call)
    try:
        await call.services.engine.runs.cancel(run.id)
    except InvalidState:
        run = await find_run(call)
        if not run.state.is_final:
            raise
        status = status_of(run)
        return Canceled(run.id, RunStatus.CANCELED, None if status is RunStatus.CANCELED else status)
    return Canceled(run.id, RunStatus.CANCELED)


async def _shown(call: Call[Any, Any], runs: list[Run], most_bytes: int | None) -> list[RunView]:
    store = call.services.engine.store
    contexts = Contexts(await store.identity(), "")
    progress = await store.progress([run.id for run in runs])
    last = await store.last_attempts([run.id for run in runs if run.attempt], most_bytes)
    if not may_see_tokens(call):
        last = {run.id: _without_token(last[run.id], run) for run in runs if run.id in last}
        runs = [msgspec.structs.replace(run, callback_token=None) for run in runs]
    return [show_run(run, last.get(run.id), contexts.trace_id(run.id), progress.get(run.id)) for run in runs]


def _without_token(last: LastAttempt, run: Run) -> LastAttempt:
    if run.callback_token is None:
        return last
    return LastAttempt(without_token(last.attempt, run.callback_token), last.bodies_omitted)


def routes() -> list[Route[Any, Any]]:
    one = "/api/v1/runs/{id:int}"
    return [
        Route(
            "GET",
            "/api/v1/tasks/{id:int}/runs",
            list_runs,
            Scope.RUN_READ,
            query=RunsQuery,
            response=list[RunView],
            summary="List the runs of a task",
            errors=(NotFound,),
        ),
        Route(
            "GET", one, get, Scope.RUN_READ, response=RunView, summary="Get a run", errors=(NotFound,), name="get_run"
        ),
        Route(
            "POST",
            one + "/cancel",
            cancel,
            Scope.RUN_CONTROL,
            response=Canceled,
            summary="Cancel a run",
            errors=(NotFound, InvalidState),
        ),
    ]
