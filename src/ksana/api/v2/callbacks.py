"""Callbacks: the outside world says how an asynchronous run ended. Whoever holds the token may."""

from __future__ import annotations

from typing import Any

from ksana.api.kit import PUBLIC, Call, Route
from ksana.api.v2.run_shapes import CallbackInput, RunView, show_run
from ksana.domain.errors import InvalidState, NotFound


async def call_back(call: Call[CallbackInput, None]) -> RunView:
    """End the run this token belongs to. The first word counts; a repeat is answered with the state as it is."""
    succeeded = call.body.status == "SUCCESS"
    engine = call.services.engine
    run = await engine.runs.call_back(call.text("token"), succeeded, call.body.error)
    jobs = await engine.store.get_jobs([run.job_id]) if run.job_id is not None else []
    return show_run(run, jobs[0] if jobs else None)


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "POST",
            "/api/v2/callbacks/{token}",
            call_back,
            PUBLIC,
            request=CallbackInput,
            response=RunView,
            summary="Say how an asynchronous run ended",
            errors=(NotFound, InvalidState),
        )
    ]
