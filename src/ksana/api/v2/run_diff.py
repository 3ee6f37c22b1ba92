"""Two runs side by side: what was sent, what came back, what they were given and how long it took."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Final

import msgspec

from ksana.api.kit import Call, Route, Scope, encode
from ksana.api.services import Services
from ksana.api.tokens import may_see_tokens, without_token
from ksana.api.v2.neighbours import beside
from ksana.api.v2.run_shapes import RunView
from ksana.api.v2.runs import shown_run
from ksana.api.v2.waterfall import millis
from ksana.domain.differences import differences
from ksana.domain.errors import NotFound
from ksana.domain.outcomes import Exchange
from ksana.domain.runs import Attempt, Run
from ksana.domain.states import State
from ksana.domain.waterfall import SegmentKind, waterfall

# Larger bodies are not compared, and of a longer value only the beginning is shown.
_MOST_BYTES: Final = 1024 * 1024
_MOST_SHOWN: Final = 2000


class DiffQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The run to compare with; the last success of the same job before this run unless said otherwise."""

    other: Annotated[int, msgspec.Meta(ge=1)] | None = msgspec.field(default=None, name="with")


class ChangeView(msgspec.Struct, frozen=True, kw_only=True):
    """A place at which the runs differ, such as `response.code`; null is what is not there."""

    path: str
    left: Any
    right: Any


class DiffView(msgspec.Struct, frozen=True, kw_only=True):
    """The run compared with on the left, the run asked for on the right, and where they differ. Bodies of more than a
    megabyte are left out, and of long values only the beginning is shown."""

    left: RunView
    right: RunView
    changes: list[ChangeView]


async def diff(call: Call[None, DiffQuery]) -> DiffView:
    """What differs between the last attempts of two runs."""
    services: Services = call.services
    engine = services.engine
    run = await engine.runs.get(call.number("id"))
    other = await _last_success(services, run) if call.query.other is None else await engine.runs.get(call.query.other)
    last = await engine.store.last_attempts([run.id, other.id], _MOST_BYTES)
    views = {one.id: await shown_run(services, one) for one in (other, run)}
    left, right = (
        _facts(one, views[one.id], _seen(call, one, last[one.id].attempt) if one.id in last else None, services)
        for one in (other, run)
    )
    return DiffView(
        left=views[other.id],
        right=views[run.id],
        changes=[
            ChangeView(path=path, left=_cut(one), right=_cut(another))
            for path, one, another in differences(left, right)
        ],
    )


async def _last_success(services: Services, run: Run) -> Run:
    """The last success of the job before this run. The newest of all is found at once; any other is looked for among
    the thousand runs before this one."""
    hint = f"name a run to compare with: /api/v2/runs/{run.id}/diff?with=<run id>"
    if run.job_id is None:
        raise NotFound(f"run {run.id} belongs to no job, so it has no success before it; {hint}")
    store = services.engine.store
    newest = (await store.last_runs([run.job_id], {State.SUCCESS})).get(run.job_id)
    if newest is not None and newest.id < run.id:
        return newest
    if newest is not None:
        async for other in beside(store, run, descending=True):
            if other.state is State.SUCCESS:
                return other
    raise NotFound(f"no run of job {run.job_id} before run {run.id} has succeeded; {hint}")


def _seen(call: Call[None, DiffQuery], run: Run, attempt: Attempt) -> Attempt:
    if run.callback_token is None or may_see_tokens(call):
        return attempt
    return without_token(attempt, run.callback_token)


def _facts(run: Run, view: RunView, attempt: Attempt | None, services: Services) -> dict[str, Any]:
    waits = [
        millis(segment.from_at, segment.to_at)
        for segment in waterfall(run, [attempt] if attempt else [], services.engine.clock.now())
        if segment.kind is SegmentKind.WAIT and run.attempt <= 1
    ]
    exchange = None if attempt is None else attempt.exchange
    return {
        "request": None if exchange is None else _request(exchange),
        "response": None if exchange is None else _response(exchange),
        "result": None if attempt is None or attempt.result is None else _body(attempt.result),
        "error": run.error,
        "input": msgspec.json.decode(encode(view.input)),
        "timings": {
            "wait_ms": waits[0] if waits else None,
            "attempt_ms": None if attempt is None else millis(attempt.started_at, attempt.ended_at),
            "attempts": run.attempt,
        },
    }


def _request(exchange: Exchange) -> dict[str, Any]:
    return {
        "line": exchange.request_line,
        "headers": _headers(exchange.request_headers),
        "body": _body(exchange.request_body),
    }


def _response(exchange: Exchange) -> dict[str, Any]:
    return {
        "code": exchange.response_code,
        "headers": _headers(exchange.response_headers),
        "body": _body(exchange.response_body),
    }


def _headers(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _body(data: bytes) -> Any:
    """What a body says: JSON as a value, so that it is compared field by field; else text, else base64."""
    if not data:
        return None
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode()


def _cut(value: Any) -> Any:
    text = value if isinstance(value, str) else encode(value).decode()
    return value if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}… ({len(text)} characters)"


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "GET",
            "/api/v2/runs/{id:int}/diff",
            diff,
            Scope.RUN_READ,
            query=DiffQuery,
            response=DiffView,
            summary="Compare a run with another",
            errors=(NotFound,),
        )
    ]
