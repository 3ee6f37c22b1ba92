"""Chains as pictures: where each node is drawn, and how its last runs went, node by node."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec

from ksana.api.kit import Call, Route, Scope, Timestamp, encode, timestamp
from ksana.domain.errors import NotFound
from ksana.domain.graph import Graph, read_graph
from ksana.domain.jobs import Job
from ksana.domain.layout import NODE_HEIGHT, NODE_WIDTH, lay_out
from ksana.domain.plans import CHAIN
from ksana.domain.ports import Store
from ksana.domain.queries import RunQuery
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.engine.chain_verbs import graph_of

# A grid of a long chain shows fewer runs: whatever is asked for, no more cells than these are looked at.
_MOST_CELLS: Final = 10_000


class NodeSpot(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the picture: x and y are its upper left corner. `state` and `run_id` are there for a chain's run only;
    there is no `run_id` until the chain has begun."""

    id: str
    type: str
    layer: int
    row: int
    x: float
    y: float
    state: State | None = None
    run_id: int | None = None


class EdgeView(msgspec.Struct, frozen=True, kw_only=True):
    """A node that needs another: from the one that is needed to the one that needs it."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")


class LayoutView(msgspec.Struct, frozen=True, kw_only=True):
    """A chain in layers from left to right; all lengths are in the same unit, say pixels."""

    nodes: list[NodeSpot]
    edges: list[EdgeView]
    width: float
    height: float
    node_width: float = NODE_WIDTH
    node_height: float = NODE_HEIGHT


class GridQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many runs to show."""

    runs: Annotated[int, msgspec.Meta(ge=1, le=50)] = 25


class GridRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a chain and the state of each node; null where it had no such node, or ended before it began."""

    run_id: int
    state: State
    started_at: Timestamp | None
    states: list[State | None]


class GridView(msgspec.Struct, frozen=True, kw_only=True):
    """The last runs of a chain, the newest first, against the nodes that it has now."""

    nodes: list[str]
    runs: list[GridRun]


async def of_job(call: Call[None, None]) -> LayoutView:
    """How to draw a chain as it is defined now."""
    return _show(_graph_of_job(await call.services.engine.jobs.get(call.number("id"))))


async def of_run(call: Call[None, None]) -> LayoutView:
    """How to draw a chain's run, with the state of each node."""
    engine = call.services.engine
    run = await engine.runs.get(call.number("id"))
    graph = graph_of(run)
    return _show(graph, {child.step: child for child in await engine.store.children(run.id)})


async def grid(call: Call[None, GridQuery]) -> GridView:
    """The last runs of a chain, node by node. A long chain shows fewer of them."""
    engine = call.services.engine
    job = await engine.jobs.get(call.number("id"))
    nodes = [step.id for step in _graph_of_job(job).steps]
    most = max(1, min(call.query.runs, _MOST_CELLS // len(nodes)))
    found = await engine.store.find_runs(RunQuery(job_id=job.id, limit=most, counted=False))
    # What the job was before it became a chain has no nodes.
    runs = [run for run in found.items if run.kind == CHAIN and run.input is not None]
    return GridView(nodes=nodes, runs=list(await asyncio.gather(*(_row(engine.store, run, nodes) for run in runs))))


async def _row(store: Store, run: Run, nodes: list[str]) -> GridRun:
    states = {child.step: child.state for child in await store.children(run.id)}
    if not states and not run.state.is_final:
        states = dict.fromkeys((step.id for step in graph_of(run).steps), State.WAITING)
    return GridRun(
        run_id=run.id,
        state=run.state,
        started_at=timestamp(run.started_at),
        states=[states.get(node) for node in nodes],
    )


def _graph_of_job(job: Job) -> Graph:
    if job.target.kind != CHAIN:
        raise NotFound(f"job {job.id} is not a chain but of the kind {job.target.kind}; only chains are drawn")
    return _read(encode(job.target.config))


# A page that shows a chain asks again whenever something happens to it, and reading a long one takes a while.
@lru_cache(maxsize=16)
def _read(dag: bytes) -> Graph:
    return read_graph(msgspec.json.decode(dag), is_accepted=True)


def _show(graph: Graph, children: dict[str | None, Run] | None = None) -> LayoutView:
    layout = lay_out(tuple(step.needs for step in graph.steps))
    nodes = []
    for step, spot in zip(graph.steps, layout.spots, strict=True):
        child = None if children is None else children.get(step.id)
        nodes.append(
            NodeSpot(
                id=step.id,
                type=step.kind,
                layer=spot.layer,
                row=spot.row,
                x=spot.x,
                y=spot.y,
                state=child.state if child is not None else None if children is None else State.WAITING,
                run_id=None if child is None else child.id,
            )
        )
    edges = [EdgeView(source=graph.steps[need].id, target=step.id) for step in graph.steps for need in step.needs]
    return LayoutView(nodes=nodes, edges=edges, width=layout.width, height=layout.height)


def routes() -> list[Route[Any, Any]]:
    job, run = "/api/v2/jobs/{id:int}", "/api/v2/runs/{id:int}"
    return [
        Route(
            "GET",
            job + "/layout",
            of_job,
            Scope.JOB_READ,
            response=LayoutView,
            summary="How to draw a chain",
            errors=(NotFound,),
            name="job_layout",
        ),
        Route(
            "GET",
            run + "/layout",
            of_run,
            Scope.RUN_READ,
            response=LayoutView,
            summary="How to draw a chain's run",
            errors=(NotFound,),
            name="run_layout",
        ),
        Route(
            "GET",
            job + "/grid",
            grid,
            Scope.RUN_READ,
            query=GridQuery,
            response=GridView,
            summary="The last runs of a chain, node by node",
            errors=(NotFound,),
        ),
    ]
