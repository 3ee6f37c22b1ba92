"""Runs of chains: list them, look at one, stop it."""

from __future__ import annotations

from typing import Any

from ksana.api.chains.chain_shapes import Paged, page_of
from ksana.api.chains.failures import ChainNotFound, RunNotFound
from ksana.api.chains.finding import find_chain, find_run
from ksana.api.chains.run_ids import run_id_of
from ksana.api.chains.run_shapes import Canceled, RunDetail, RunsQuery, RunSummary, Stopped, show_run, show_summary
from ksana.api.chains.words import RunStatus, run_status_of, states_of
from ksana.api.kit import Call, Route, Scope
from ksana.api.services import Services
from ksana.domain.errors import InvalidState
from ksana.domain.plans import CHAIN
from ksana.domain.queries import RunQuery
from ksana.domain.states import State


async def list_runs(call: Call[None, RunsQuery]) -> Paged[RunSummary]:
    """The runs of a chain, newest first."""
    services: Services = call.services
    store, query, job = services.engine.store, call.query, await find_chain(call)
    wanted = RunQuery(
        job_id=job.id,
        kind=CHAIN,
        states=frozenset() if query.status is None else states_of(query.status),
        offset=query.offset,
        limit=query.length,
    )
    found, identity = await store.find_runs(wanted), await store.identity()
    shown = [show_summary(run, run_id_of(identity, run.id), job.name) for run in found.items]
    return page_of(shown, found.total, query)


async def get(call: Call[None, None]) -> RunDetail:
    run = await find_run(call)
    assert run.job_id is not None
    jobs = await call.services.engine.store.get_jobs([run.job_id])
    return show_run(run, call.text("id"), jobs[0].name if jobs else "")


async def stop(call: Call[None, None]) -> Stopped:
    """Ask a run to stop: nothing more of it starts, what is under way is ended. The answer does not wait for that."""
    run = await find_run(call)
    await call.services.engine.chains.stop(run.id)
    # It may have stopped by now; whoever asked for it is told that it will.
    status = RunStatus.STOPPED if run.state is State.CANCELED else RunStatus.STOPPING
    return Stopped(call.text("id"), status)


async def cancel(call: Call[None, None]) -> Canceled:
    """The same, as it is asked of runs of tasks."""
    run = await find_run(call)
    try:
        await call.services.engine.chains.stop(run.id)
    except InvalidState:
        return Canceled(call.text("id"), "CANCELED", run_status_of(await find_run(call)))
    return Canceled(call.text("id"), "CANCELED")


def routes() -> list[Route[Any, Any]]:
    one = "/api/v1/runs/{id:uuid}"
    return [
        Route(
            "GET",
            "/api/v1/chains/{chainId}/runs",
            list_runs,
            Scope.RUN_READ,
            query=RunsQuery,
            response=Paged[RunSummary],
            summary="List the runs of a chain",
            errors=(ChainNotFound,),
        ),
        Route(
            "GET",
            one,
            get,
            Scope.RUN_READ,
            response=RunDetail,
            summary="Get a run of a chain",
            errors=(RunNotFound,),
            name="get_run",
        ),
        Route(
            "POST",
            one + ":stop",
            stop,
            Scope.RUN_CONTROL,
            response=Stopped,
            summary="Stop a run of a chain",
            errors=(RunNotFound, InvalidState),
        ),
        Route(
            "POST",
            one + "/cancel",
            cancel,
            Scope.RUN_CONTROL,
            response=Canceled,
            summary="Cancel a run of a chain",
            errors=(RunNotFound,),
        ),
    ]
