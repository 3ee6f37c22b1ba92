"""How runs look on the wire."""

from __future__ import annotations

import base64
from typing import Any, Final

import msgspec

from ksana.api.kit import encode
from ksana.api.tasks.moments import Moment, moment
from ksana.api.tasks.spellings import RUN_KEYS, both
from ksana.api.tasks.words import RunStatus, status_of
from ksana.domain.callbacks import Progress
from ksana.domain.outcomes import Exchange
from ksana.domain.runs import LastAttempt, Run
from ksana.domain.states import State

_NOTHING: Final = Exchange()


class ProgressView(msgspec.Struct, frozen=True):
    """How far a run has come, as its target last said."""

    progress: float | None
    message: str
    reported_at: Moment


class RunView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run, under the keys of the document's answers and under those of its tables.

    Bodies are the text that was sent and received; one that is not UTF-8 is there in base64 too. In a list, bodies that
    would make it heavy are left out, and `bodies_omitted` says so; the run by itself has them whole.
    """

    ID: int
    TaskID: int
    ScheduledTime: Moment
    StartTime: Moment | None
    EndTime: Moment | None
    Status: RunStatus
    Attempt: int
    RequestHeaders: str
    RequestBody: str
    ResponseCode: int
    ResponseBody: str
    ErrorMessage: str
    NextRetryTime: Moment | None
    CallbackToken: str
    CallbackDeadline: Moment | None
    TraceID: str
    CreatedAt: Moment
    UpdatedAt: Moment
    id: int
    task_id: int
    scheduled_time: Moment
    start_time: Moment | None
    end_time: Moment | None
    status: RunStatus
    attempt: int
    request_headers: dict[str, str]
    request_body: str
    response_code: int | None
    response_body: str
    error_message: str
    next_retry_time: Moment | None
    callback_token: str
    callback_deadline: Moment | None
    trace_id: str
    created_at: Moment
    updated_at: Moment
    progress: ProgressView | None
    request_body_base64: str = ""
    response_body_base64: str = ""
    response_truncated: bool = False
    bodies_omitted: bool = False


def show_run(run: Run, last: LastAttempt | None, trace_id: str, progress: Progress | None) -> RunView:
    """A run with what its newest attempt sent and received."""
    exchange = (last and last.attempt.exchange) or _NOTHING
    sent, received = _Body(exchange.request_body), _Body(exchange.response_body)
    values: dict[str, Any] = {
        "id": run.id,
        "task_id": run.job_id,
        "scheduled_time": moment(run.planned_at),
        "start_time": moment(run.started_at),
        "end_time": moment(run.ended_at),
        "status": status_of(run),
        "attempt": max(1, run.attempt),
        "request_body": sent.text,
        "response_body": received.text,
        "error_message": run.error,
        "next_retry_time": moment(run.due_at) if run.state is State.RETRYING else None,
        "callback_token": run.callback_token or "",
        "callback_deadline": moment(run.deadline_at),
        "trace_id": trace_id,
        "created_at": moment(run.created_at),
        "updated_at": moment(max(at for at in (run.created_at, run.started_at, run.ended_at) if at is not None)),
    }
    headers = exchange.request_headers
    return RunView(
        **both(values, RUN_KEYS),
        request_headers=headers,
        RequestHeaders=encode(headers).decode() if headers else "",
        response_code=exchange.response_code,
        ResponseCode=exchange.response_code or 0,
        progress=None if progress is None else _show_progress(progress),
        request_body_base64=sent.base64,
        response_body_base64=received.base64,
        response_truncated=exchange.truncated,
        bodies_omitted=last is not None and last.bodies_omitted,
    )


def _show_progress(progress: Progress) -> ProgressView:
    return ProgressView(progress.fraction, progress.message, moment(progress.reported_at))


class _Body:
    """A body as text, and in base64 where text cannot say it exactly."""

    def __init__(self, data: bytes) -> None:
        self.base64 = ""
        try:
            self.text = data.decode()
        except UnicodeDecodeError:
            self.text = data.decode(errors="replace")
            self.base64 = base64.b64encode(data).decode()
