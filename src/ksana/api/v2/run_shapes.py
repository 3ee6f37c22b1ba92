"""How runs, attempts and the fire log look on the wire."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from ksana.api.kit import Input, Timestamp, timestamp
from ksana.domain.callbacks import CallbackRecord, CallbackStatus, Progress
from ksana.domain.jobs import Job
from ksana.domain.outcomes import Exchange, Verdict
from ksana.domain.plans import CHAIN
from ksana.domain.queries import FireRecord, Minute
from ksana.domain.runs import Attempt, Run, Trigger
from ksana.domain.states import Reason, State


class TriggerInput(Input, frozen=True):
    """A run asked for by hand; `input` reaches the target (and its templates as `{{input}}`)."""

    input: Any = None


class ReasonInput(Input, frozen=True):
    """Why somebody acts, for the audit."""

    reason: Annotated[str, msgspec.Meta(max_length=1024)] = ""


class ProgressView(msgspec.Struct, frozen=True):
    """How far a run has come, as its target last said: from 0 to 1, in words, and when."""

    fraction: float | None
    message: str
    reported_at: Timestamp


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run. `planned_at` is the instant it stands for, the same over all attempts; `fence` rises with every move.
    `step` is its place in the run `parent_id`. The `input` of a chain's run are its parameters."""

    id: int
    job_id: int | None
    job_name: str | None
    surface: str
    kind: str
    queue: str
    trigger: Trigger
    planned_at: Timestamp
    state: State
    reason: Reason | None
    attempt: int
    failures: int
    reclaims: int
    fence: int
    priority: Literal["low", "normal", "high"]
    due_at: Timestamp
    deadline_at: Timestamp | None
    node_id: int | None
    created_at: Timestamp
    started_at: Timestamp | None
    ended_at: Timestamp | None
    duration_ms: int | None
    error: str
    progress: ProgressView | None
    parent_id: int | None
    step: str | None
    input: Any


class _Given(msgspec.Struct, frozen=True):
    """What of a chain's plan was given by whoever started it; the rest is the definition."""

    params: msgspec.Raw = msgspec.Raw(b"{}")


_given = msgspec.json.Decoder(_Given).decode


class BodyView(msgspec.Struct, frozen=True):
    """A body as text, or in base64 where it is not UTF-8."""

    text: str | None
    base64: str | None
    bytes: int


class RequestView(msgspec.Struct, frozen=True):
    line: str
    headers: dict[str, str]
    body: BodyView


class ResponseView(msgspec.Struct, frozen=True):
    code: int | None
    headers: dict[str, str]
    body: BodyView
    truncated: bool


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One try: what was sent, what came back, how long it took.

    A `result` that is no JSON is shown as text, and one that is no text either as null: the response has its bytes.
    """

    number: int
    fence: int
    node_id: int | None
    started_at: Timestamp
    ended_at: Timestamp
    duration_ms: int
    verdict: Verdict
    timed_out: bool
    code: int | None
    error: str
    result: Any
    request: RequestView | None
    response: ResponseView | None


class FireView(msgspec.Struct, frozen=True, kw_only=True):
    """One planned instant, or a stretch of them, and what was decided."""

    from_at: Timestamp
    to_at: Timestamp
    count: int
    decision: str
    reason: Reason | None
    run_id: int | None
    recorded_at: Timestamp


class MinuteView(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs ended in a minute, how long they took and how late they started, in all."""

    minute_at: Timestamp
    kind: str
    state: State
    count: int
    busy_ms: int
    late_ms: int


class CallbackInput(Input, frozen=True):
    """How an asynchronous run ended (`status`), or how far it has come.

    Progress puts the deadline of the callback off only if `extend_sec` says by how much, and never beyond the life of
    the token.
    """

    status: Literal["SUCCESS", "FAILED"] | None = None
    error: Annotated[str, msgspec.Meta(max_length=65536)] = ""
    progress: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    message: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    extend_sec: Annotated[float, msgspec.Meta(gt=0, le=2592000)] | None = None


class CallbackView(msgspec.Struct, frozen=True, kw_only=True):
    """A callback that came, whether it counted, and why not."""

    id: int
    received_at: Timestamp
    status: CallbackStatus
    note: str
    headers: dict[str, str]
    body: BodyView


_PRIORITY_NAMES: dict[int, Literal["low", "normal", "high"]] = {1: "low", 2: "normal", 3: "high"}


def show_run(run: Run, job: Job | None, progress: Progress | None = None) -> RunView:
    return RunView(
        id=run.id,
        job_id=run.job_id,
        job_name=None if job is None else job.name,
        surface=run.surface,
        kind=run.kind,
        queue=run.queue,
        trigger=run.trigger,
        planned_at=timestamp(run.planned_at),
        state=run.state,
        reason=run.reason,
        attempt=run.attempt,
        failures=run.failures,
        reclaims=run.reclaims,
        fence=run.epoch,
        priority=_PRIORITY_NAMES[run.priority],
        due_at=timestamp(run.due_at),
        deadline_at=timestamp(run.deadline_at),
        node_id=run.node_id,
        created_at=timestamp(run.created_at),
        started_at=timestamp(run.started_at),
        ended_at=timestamp(run.ended_at),
        duration_ms=_millis(run.started_at, run.ended_at),
        error=run.error,
        progress=None if progress is None else _progress(progress),
        parent_id=run.parent_id,
        step=run.step,
        input=None if run.input is None else _input(run, run.input),
    )


def _input(run: Run, input: bytes) -> msgspec.Raw:
    return _given(input).params if run.kind == CHAIN else msgspec.Raw(input)


def _progress(progress: Progress) -> ProgressView:
    return ProgressView(progress.fraction, progress.message, timestamp(progress.reported_at))


def show_callback(record: CallbackRecord) -> CallbackView:
    return CallbackView(
        id=record.id,
        received_at=timestamp(record.received_at),
        status=record.status,
        note=record.note,
        headers=record.headers,
        body=_body(record.body),
    )


def _millis(since: datetime | None, until: datetime | None) -> int | None:
    return None if since is None or until is None else round((until - since).total_seconds() * 1000)


def show_attempt(attempt: Attempt) -> AttemptView:
    exchange = attempt.exchange
    return AttemptView(
        number=attempt.number,
        fence=attempt.epoch,
        node_id=attempt.node_id,
        started_at=timestamp(attempt.started_at),
        ended_at=timestamp(attempt.ended_at),
        duration_ms=_millis(attempt.started_at, attempt.ended_at) or 0,
        verdict=attempt.verdict,
        timed_out=attempt.timed_out,
        code=attempt.code,
        error=attempt.error,
        result=None if attempt.result is None else _result(attempt.result),
        request=None if exchange is None else _request(exchange),
        response=None if exchange is None else _response(exchange),
    )


def _result(data: bytes) -> Any:
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _body(data).text
    return msgspec.Raw(data)


def _request(exchange: Exchange) -> RequestView:
    return RequestView(exchange.request_line, exchange.request_headers, _body(exchange.request_body))


def _response(exchange: Exchange) -> ResponseView:
    return ResponseView(
        exchange.response_code, exchange.response_headers, _body(exchange.response_body), exchange.truncated
    )


def _body(data: bytes) -> BodyView:
    try:
        return BodyView(data.decode(), None, len(data))
    except UnicodeDecodeError:
        return BodyView(None, base64.b64encode(data).decode(), len(data))


def show_fire(record: FireRecord) -> FireView:
    return FireView(
        from_at=timestamp(record.from_at),
        to_at=timestamp(record.to_at),
        count=record.count,
        decision=record.decision,
        reason=record.reason,
        run_id=record.run_id,
        recorded_at=timestamp(record.recorded_at),
    )


def show_minute(minute: Minute) -> MinuteView:
    return MinuteView(
        minute_at=timestamp(minute.minute_at),
        kind=minute.kind,
        state=minute.state,
        count=minute.count,
        busy_ms=minute.busy_ms,
        late_ms=minute.late_ms,
    )
