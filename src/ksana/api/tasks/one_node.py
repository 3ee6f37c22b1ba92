"""Runs of tasks as those of chains are spoken to: a run is stopped, and it has one node."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from ksana.api.kit import Call, Route, Scope
from ksana.api.node_rows import NodeRow, node_row
from ksana.api.tasks.finding import find_run
from ksana.domain.errors import InvalidState, NotFound
from ksana.domain.states import State

_NODE: Final = "main"


class Stopped(msgspec.Struct, frozen=True, rename="camel"):
    run_id: str
    status: Literal["STOPPING", "STOPPED"]


async def stop(call: Call[None, None]) -> Stopped:
    """End a run that is not over yet. To ask again changes nothing."""
    run = await find_run(call)
    if run.state is State.CANCELED:
        return Stopped(str(run.id), "STOPPED")
    await call.services.engine.runs.cancel(run.id)
    return Stopped(str(run.id), "STOPPING")


async def list_nodes(call: Call[None, None]) -> list[NodeRow]:
    """The one node of a run."""
    run = await find_run(call)
    return [node_row(str(run.id), _NODE, run)]


def routes() -> list[Route[Any, Any]]:
    one = "/api/v1/runs/{id:int}"
    return [
        Route(
            "POST",
            one + ":stop",
            stop,
            Scope.RUN_CONTROL,
            response=Stopped,
            summary="Stop a run",
            errors=(NotFound, InvalidState),
        ),
        Route(
            "GET",
            one + "/nodes",
            list_nodes,
            Scope.RUN_READ,
            response=list[NodeRow],
            summary="The one node of a run",
            errors=(NotFound,),
        ),
    ]
