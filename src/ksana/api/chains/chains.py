"""Chains: create, update, list, get, switch on and off, start."""

from __future__ import annotations

from functools import partial
from typing import Any

from ksana.api.chains.chain_reading import read_new_chain, read_update, switched
from ksana.api.chains.chain_shapes import (
    ChainDetail,
    ChainInput,
    ChainsQuery,
    ChainSummary,
    ChainUpdate,
    Paged,
    Started,
    StartInput,
    page_of,
    show_chain,
    show_summary,
)
from ksana.api.chains.failures import ChainDisabled, ChainNotFound, NameTaken, in_these_words
from ksana.api.chains.finding import SURFACE, find_chain
from ksana.api.chains.run_ids import run_id_of
from ksana.api.kit import Call, Reply, Route, Scope, encode
from ksana.api.services import Services
from ksana.domain.errors import ConcurrencyLimit, InvalidArgument, InvalidState, VersionConflict
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.jobs import Job
from ksana.domain.plans import CHAIN
from ksana.domain.queries import JobQuery
from ksana.domain.runs import Run


async def create(call: Call[ChainInput, None]) -> Reply:
    """Store a chain."""
    services: Services = call.services
    engine, claim = services.engine, call.idempotency
    now = engine.clock.now()

    def answer(job: Job) -> IdempotencyRecord:
        assert claim is not None
        return claim.answered(201, encode(show_chain(job)), now)

    with in_these_words(call.body.name):
        spec = read_new_chain(call.body, services.defaults, now)
        job = await engine.jobs.create(SURFACE, spec, answer if claim else None)
    return Reply(show_chain(job), 201, {"Location": f"/api/v1/chains/{job.id}"})


async def update(call: Call[ChainUpdate, None]) -> ChainDetail:
    """Put a chain in the place of another. Runs that were started go on as they began."""
    services: Services = call.services
    engine, job = services.engine, await find_chain(call)
    with in_these_words(call.body.name):
        edit = read_update(call.body, services.defaults, engine.clock.now())
        return show_chain(await engine.jobs.change(job.id, edit))


async def list_chains(call: Call[None, ChainsQuery]) -> Paged[ChainSummary]:
    """Chains in the order they were made."""
    query = call.query
    wanted = JobQuery(
        surface=SURFACE,
        name=query.keyword,
        enabled=query.enabled == "true" if query.enabled else None,
        offset=query.offset,
        limit=query.length,
    )
    found = await call.services.engine.store.find_jobs(wanted)
    return page_of([show_summary(job) for job in found.items], found.total, query)


async def get(call: Call[None, None]) -> ChainDetail:
    return show_chain(await find_chain(call))


async def enable(call: Call[None, None]) -> ChainDetail:
    """Let a chain be started."""
    return await _switch(call, True)


async def disable(call: Call[None, None]) -> ChainDetail:
    """Let a chain not be started any more. What was started goes on."""
    return await _switch(call, False)


async def _switch(call: Call[None, None], enabled: bool) -> ChainDetail:
    job = await find_chain(call)
    verbs = call.services.engine.jobs
    return show_chain(await verbs.change(job.id, lambda job: switched(job, enabled), cancels=frozenset()))


async def start(call: Call[StartInput, None]) -> Reply:
    """Begin a run of a chain; the answer does not wait for it."""
    services: Services = call.services
    engine, claim, job = services.engine, call.idempotency, await find_chain(call)
    now, identity = engine.clock.now(), await engine.store.identity()
    if not job.enabled:
        raise ChainDisabled(job.name)
    if job.target.kind != CHAIN:
        raise InvalidArgument.of("dagJson", f"is gone: somebody made {job.name} a job of the kind {job.target.kind}")

    def answer(run: Run) -> IdempotencyRecord:
        assert claim is not None
        return claim.answered(200, encode(Started(run_id_of(identity, run.id))), now)

    try:
        run = await engine.chains.start(job.id, call.body.params, answer if claim else None)
    except InvalidState:
        raise ChainDisabled(job.name) from None
    run_id = run_id_of(identity, run.id)
    return Reply(Started(run_id), headers={"Location": f"/api/v1/runs/{run_id}"})


def routes() -> list[Route[Any, Any]]:
    every, one = "/api/v1/chains", "/api/v1/chains/{chainId}"
    changed = (ChainNotFound, VersionConflict)
    reads = partial(Route, scope=Scope.CHAIN_READ)
    switches = partial(Route, scope=Scope.CHAIN_WRITE, response=ChainDetail, errors=changed)
    return [
        Route(
            "POST",
            every,
            create,
            Scope.CHAIN_WRITE,
            request=ChainInput,
            response=ChainDetail,
            status=201,
            creates=True,
            summary="Create a chain",
            errors=(NameTaken,),
            name="create_chain",
        ),
        Route(
            "PUT",
            one,
            update,
            Scope.CHAIN_WRITE,
            request=ChainUpdate,
            response=ChainDetail,
            summary="Update a chain",
            errors=(ChainNotFound, NameTaken, VersionConflict),
            name="update_chain",
        ),
        reads("GET", every, list_chains, query=ChainsQuery, response=Paged[ChainSummary], summary="List chains"),
        reads("GET", one, get, response=ChainDetail, summary="Get a chain", errors=(ChainNotFound,), name="get_chain"),
        switches("POST", one + ":enable", enable, summary="Enable a chain"),
        switches("POST", one + ":disable", disable, summary="Disable a chain"),
        Route(
            "POST",
            one + ":start",
            start,
            Scope.RUN_WRITE,
            request=StartInput,
            response=Started,
            creates=True,
            optional_body=True,
            summary="Start a chain",
            errors=(ChainNotFound, ChainDisabled, ConcurrencyLimit),
        ),
    ]
