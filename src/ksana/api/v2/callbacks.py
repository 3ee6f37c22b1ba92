"""Callbacks: the outside world says how an asynchronous run ended, or how far it has come, if it holds the token."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ksana.api.kit import PUBLIC, Call, Route
from ksana.api.v2.run_shapes import CallbackInput, RunView, show_run
from ksana.domain.callbacks import Letter, Word
from ksana.domain.errors import InvalidArgument, InvalidState, NotFound


async def call_back(call: Call[CallbackInput, None]) -> RunView:
    """Speak of the run this token belongs to. The first word on how it ended counts; a repeat is answered with the
    state as it is."""
    engine = call.services.engine
    run = await engine.runs.call_back(call.text("token"), _word(call.body), _letter(call))
    jobs = await engine.store.get_jobs([run.job_id]) if run.job_id is not None else []
    progress = await engine.store.progress([run.id])
    return show_run(run, jobs[0] if jobs else None, progress.get(run.id))


def _word(body: CallbackInput) -> Word:
    if body.status is None and body.progress is None and not body.message and body.extend_sec is None:
        raise InvalidArgument.of("status", "say SUCCESS or FAILED, or tell of progress")
    return Word(
        succeeded=None if body.status is None else body.status == "SUCCESS",
        error=body.error,
        progress=body.progress,
        message=body.message,
        extend=None if body.extend_sec is None else timedelta(seconds=body.extend_sec),
    )


def _letter(call: Call[CallbackInput, None]) -> Letter:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in call.headers.items()}
    return Letter(headers, call.raw)


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "POST",
            "/api/v2/callbacks/{token}",
            call_back,
            PUBLIC,
            request=CallbackInput,
            response=RunView,
            summary="Say how an asynchronous run ended, or how far it has come",
            errors=(NotFound, InvalidState),
        )
    ]
