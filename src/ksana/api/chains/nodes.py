"""Nodes of a run: list them, try one again, call one done."""

from __future__ import annotations

from typing import Any

from ksana.api.chains.failures import NodeNotFound, RunNotFound
from ksana.api.chains.finding import find_run
from ksana.api.chains.json_text import read_artifact
from ksana.api.chains.run_shapes import NodeActed, NodeAction, show_node
from ksana.api.kit import Call, Route, Scope
from ksana.api.node_rows import NodeRow, NodeStatus, attempt_of
from ksana.domain.errors import InvalidState, NotFound


async def list_nodes(call: Call[None, None]) -> list[NodeRow]:
    """Every node of a run, in the order of the dag, from the first instant on."""
    run = await find_run(call)
    standings = await call.services.engine.chains.steps(run)
    return [show_node(standing, run, call.text("id")) for standing in standings]


async def retry(call: Call[NodeAction, None]) -> NodeActed:
    """Try a node again that failed or was stopped. The run goes on from there, even if it was over."""
    run, node = await find_run(call), call.text("nodeId")
    artifact = read_artifact(call.body.artifact_json)
    try:
        step = await call.services.engine.chains.retry_step(
            run.id, node, reason=call.body.reason or "", artifact=artifact
        )
    except NotFound:
        raise NodeNotFound(node) from None
    # A worker may have taken it up by now; the answer tells what was asked for.
    return NodeActed(call.text("id"), node, NodeStatus.RETRYING, attempt_of(step))


async def complete(call: Call[NodeAction, None]) -> NodeActed:
    """Take a node as done. What it hands on is the artifact given, else what it had. The run goes on from there."""
    run, node = await find_run(call), call.text("nodeId")
    artifact = read_artifact(call.body.artifact_json)
    try:
        step = await call.services.engine.chains.complete_step(
            run.id, node, reason=call.body.reason or "", artifact=artifact
        )
    except NotFound:
        raise NodeNotFound(node) from None
    return NodeActed(call.text("id"), node, NodeStatus.SUCCESS, attempt_of(step))


def routes() -> list[Route[Any, Any]]:
    every = "/api/v1/runs/{id:uuid}/nodes"
    one = every + "/{nodeId}"
    return [
        Route(
            "GET",
            every,
            list_nodes,
            Scope.RUN_READ,
            response=list[NodeRow],
            summary="List the nodes of a run",
            errors=(RunNotFound,),
        ),
        Route(
            "POST",
            one + ":retry",
            retry,
            Scope.RUN_CONTROL,
            request=NodeAction,
            response=NodeActed,
            optional_body=True,
            summary="Retry a node",
            errors=(RunNotFound, NodeNotFound, InvalidState),
            name="retry_node",
        ),
        Route(
            "POST",
            one + ":complete",
            complete,
            Scope.RUN_CONTROL,
            request=NodeAction,
            response=NodeActed,
            optional_body=True,
            summary="Complete a node",
            errors=(RunNotFound, NodeNotFound, InvalidState),
            name="complete_node",
        ),
    ]
