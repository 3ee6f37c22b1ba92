"""Calling a run done by hand."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ksana.api.kit import Call, Input, Route, Scope, encode
from ksana.api.v2.run_shapes import RunView
from ksana.api.v2.runs import shown_run
from ksana.domain.errors import InvalidState, NotFound


class CompleteInput(Input, frozen=True, kw_only=True):
    """Why the run is called done, which is kept as its error, and what it hands on in place of its own result."""

    reason: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    artifact: Any = msgspec.UNSET


async def complete(call: Call[CompleteInput, None]) -> RunView:
    """Take a run as done that runs, awaits its callback or ended without success. With a step its chain goes on; of a
    chain, the steps under way are ended."""
    body = call.body
    artifact = None if body.artifact is msgspec.UNSET else encode(body.artifact)
    run = await call.services.engine.chains.complete(call.number("id"), reason=body.reason, artifact=artifact)
    return await shown_run(call.services, run)


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "POST",
            "/api/v2/runs/{id:int}/complete",
            complete,
            Scope.RUN_CONTROL,
            request=CompleteInput,
            response=RunView,
            optional_body=True,
            summary="Take a run as done",
            errors=(NotFound, InvalidState),
        )
    ]
