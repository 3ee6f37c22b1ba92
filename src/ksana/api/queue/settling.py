"""What workers say of items they hold: done, failed, still at it, given back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec

from ksana.api.kit import Call, Input, Route, Scope
from ksana.api.queue.audit_shapes import ReasonText
from ksana.api.queue.handing_out import DEFAULT_LEASE_SECONDS, LeaseSeconds
from ksana.api.queue.item_reading import END_OF_TIME, TOO_LATE, next_item
from ksana.api.queue.item_shapes import (
    MOST,
    Instant,
    ItemView,
    JobId,
    LeaseToken,
    Results,
    show_answer,
    show_job,
)
from ksana.api.queue.words import Action, run_id_of
from ksana.api.services import Services
from ksana.domain.errors import InvalidArgument, InvalidState, KsanaError, NotFound, Problem, StaleLease
from ksana.domain.items import NewItem, Report, is_about_object
from ksana.domain.moves import Move
from ksana.domain.objects import Epistemic
from ksana.domain.runs import Run
from ksana.domain.times import parse_instant
from ksana.engine.queue_judges import Judge, acking, failing
from ksana.engine.queue_verbs import QueueVerbs
from ksana.engine.writing_back import WriteBack

_MONTH = 30 * 86_400
_SAID_FAILED = "the worker said that it failed"

ErrorText = Annotated[str, msgspec.Meta(min_length=1, max_length=100_000, description="its first 1,024 signs are kept")]


class AckInput(Input, frozen=True):
    """How an item ended. `failed` ends it without another try. `output` is what is handed on, for example to the steps
    of a chain; `next_action_at` when the object wants to be seen to next, and with `auto_enqueue` the item that does
    `action` then is enqueued at once. `epistemic_state` is what the object turned out to be."""

    result: Literal["succeeded", "failed"] = "succeeded"
    error: ErrorText | None = None
    audit_event_id: Annotated[str, msgspec.Meta(min_length=1, max_length=255)] | None = None
    next_action_at: Instant | None = None
    epistemic_state: Epistemic | None = None
    auto_enqueue: bool = False
    action: Action | None = None
    reason: ReasonText = ""
    output: Any = msgspec.UNSET
    lease_token: LeaseToken | None = None


class AckOne(AckInput, frozen=True, kw_only=True):
    job_id: JobId


class AckMany(Input, frozen=True):
    jobs: Annotated[list[AckOne], msgspec.Meta(min_length=1, max_length=MOST)]


class FailInput(Input, frozen=True):
    """Why an item could not be done, and when to try again; never, if it is not `retryable`."""

    error: ErrorText
    retry_delay_sec: Annotated[float, msgspec.Meta(ge=0, le=_MONTH)] = 0
    retryable: bool = True
    lease_token: LeaseToken | None = None


class FailOne(FailInput, frozen=True, kw_only=True):
    job_id: JobId


class FailMany(Input, frozen=True):
    jobs: Annotated[list[FailOne], msgspec.Meta(min_length=1, max_length=MOST)]


class HeartbeatInput(Input, frozen=True):
    """The worker is still at it and needs so much longer from now on; `progress` is anything it wants remembered."""

    lease_sec: LeaseSeconds = DEFAULT_LEASE_SECONDS
    progress: Any = msgspec.UNSET
    lease_token: LeaseToken | None = None


class ReleaseInput(Input, frozen=True):
    lease_token: LeaseToken | None = None


async def ack(call: Call[AckInput, None]) -> ItemView:
    """An item is done. Said again, it changes nothing."""
    return await _one(call, _acking(call.body), _writing(call, call.body))


async def fail(call: Call[FailInput, None]) -> ItemView:
    """An item could not be done: it comes due again, or becomes a dead letter when its attempts are used up."""
    return await _one(call, _failing(call.body))


async def ack_many(call: Call[AckMany, None]) -> Results:
    """The same for many in one step; each is answered on its own."""
    jobs = call.body.jobs
    said = [(one.job_id, _acking(one, f"jobs[{n}].")) for n, one in enumerate(jobs)]
    return await _many(call, said, {one.job_id: _writing(call, one) for one in jobs})


async def fail_many(call: Call[FailMany, None]) -> Results:
    """The same for many in one step; each is answered on its own."""
    return await _many(call, [(one.job_id, _failing(one)) for one in call.body.jobs])


async def heartbeat(call: Call[HeartbeatInput, None]) -> ItemView:
    """The worker holds an item for longer."""
    body = call.body
    report = None if body.progress is msgspec.UNSET else Report(body.progress)
    lease = timedelta(seconds=body.lease_sec)
    return show_job(await _queue(call).extend(_run_id(call), lease, body.lease_token, report))


async def release(call: Call[ReleaseInput, None]) -> ItemView:
    """The worker gives an item back untouched, which counts as no failure."""
    return show_job(await _queue(call).release(_run_id(call), call.body.lease_token))


def _acking(body: AckInput, path: str = "") -> Judge:
    problems: list[Problem] = []
    succeeded = body.result == "succeeded"
    if succeeded and body.error is not None:
        problems.append(Problem(f"{path}error", "does not go with succeeded"))
    if not succeeded:
        given = {
            "next_action_at": body.next_action_at,
            "output": None if body.output is msgspec.UNSET else True,
            "epistemic_state": body.epistemic_state,
            "auto_enqueue": body.auto_enqueue,
        }
        problems += [Problem(f"{path}{name}", "does not go with failed") for name, value in given.items() if value]
    if body.auto_enqueue:
        wanted = {"action": body.action, "next_action_at": body.next_action_at}
        problems += [
            Problem(f"{path}{name}", "is required with auto_enqueue") for name, one in wanted.items() if not one
        ]
    elif body.action is not None:
        problems.append(Problem(f"{path}action", "goes with auto_enqueue; say both or neither"))
    try:
        next_at = None if body.next_action_at is None else parse_instant(body.next_action_at, f"{path}next_action_at")
        if body.auto_enqueue and next_at is not None and next_at >= END_OF_TIME:
            problems.append(Problem(f"{path}next_action_at", TOO_LATE))
    except InvalidArgument as error:
        problems += error.problems
    if problems:
        raise InvalidArgument(problems)
    is_told = body.audit_event_id is not None or next_at is not None
    told = Report(None, body.audit_event_id, next_at) if is_told else None
    if not succeeded:
        return failing(body.error or _SAID_FAILED, body.lease_token, is_final=True, report=told)
    output = None if body.output is msgspec.UNSET else msgspec.json.encode(body.output)
    done = acking(body.lease_token, output, told)
    if body.epistemic_state is None and not body.auto_enqueue:
        return done
    only_of_objects = [name for name in ("epistemic_state", "auto_enqueue") if getattr(body, name)]
    return _of_an_object(done, [f"{path}{name}" for name in only_of_objects])


def _of_an_object(judge: Judge, fields: Sequence[str]) -> Judge:
    """The same for items about an object; with any other, nobody would do what these fields ask for."""

    def judged(run: Run, now: datetime) -> Move | None:
        if not is_about_object(run):
            raise InvalidArgument([Problem(name, "goes with an item about an object; leave it out") for name in fields])
        return judge(run, now)

    return judged


def _writing(call: Call[Any, Any], body: AckInput) -> WriteBack | None:
    """What an item that is done means for its object; None if nothing is said about that."""
    if body.result != "succeeded" or not (body.next_action_at or body.audit_event_id or body.epistemic_state):
        return None
    next_at = None if body.next_action_at is None else parse_instant(body.next_action_at, "next_action_at")
    action = body.action

    def follow(run: Run) -> NewItem:
        assert next_at is not None
        assert action is not None
        return next_item(run, action, next_at)

    return WriteBack(
        next_action_at=next_at,
        epistemic=body.epistemic_state,
        evidence=body.audit_event_id,
        reason=body.reason,
        request_id=call.request_id,
        follow=follow if body.auto_enqueue else None,
    )


def _failing(body: FailInput) -> Judge:
    delay = timedelta(seconds=body.retry_delay_sec)
    return failing(body.error, body.lease_token, delay=delay, is_final=not body.retryable)


async def _one(call: Call[Any, Any], judge: Judge, write: WriteBack | None = None) -> ItemView:
    run_id = _run_id(call)
    [result] = await _queue(call).move_many({run_id: judge}, {} if write is None else {run_id: write})
    if isinstance(result, KsanaError):
        raise result
    return show_job(result)


async def _many(
    call: Call[Any, Any], said: Sequence[tuple[str, Judge]], about: Mapping[str, WriteBack | None] | None = None
) -> Results:
    judges: dict[int, Judge] = {}
    writes: dict[int, WriteBack] = {}
    answers: list[int | KsanaError] = []
    for number, (job_id, judge) in enumerate(said):
        try:
            run_id = run_id_of(job_id)
        except NotFound as error:
            answers.append(error)
            continue
        if run_id in judges:
            raise InvalidArgument.of(f"jobs[{number}].job_id", f"{job_id} is named twice; say one thing of it")
        judges[run_id] = judge
        if about and (write := about[job_id]) is not None:
            writes[run_id] = write
        answers.append(run_id)
    moved: dict[int, Run | KsanaError] = dict(zip(judges, await _queue(call).move_many(judges, writes), strict=True))
    shown = [answer if isinstance(answer, KsanaError) else moved[answer] for answer in answers]
    return Results([show_answer(one, call.request_id) for one in shown])


def _queue(call: Call[Any, Any]) -> QueueVerbs:
    services: Services = call.services
    return services.engine.queue


def _run_id(call: Call[Any, Any]) -> int:
    return run_id_of(call.text("id"))


def routes() -> list[Route[Any, Any]]:
    one = "/scheduler/jobs/{id}"
    refused = (NotFound, InvalidState, StaleLease)

    def said(path: str, handler: Any, request: Any, summary: str, *, is_optional: bool = False) -> Route[Any, Any]:
        return Route(
            "POST",
            one + path,
            handler,
            Scope.QUEUE_WORK,
            request=request,
            response=ItemView,
            optional_body=is_optional,
            summary=summary,
            errors=refused,
        )

    def said_of_many(path: str, handler: Any, request: Any, summary: str) -> Route[Any, Any]:
        path = f"/scheduler/jobs/{path}"
        return Route("POST", path, handler, Scope.QUEUE_WORK, request=request, response=Results, summary=summary)

    return [
        said("/ack", ack, AckInput, "Say that an item is done", is_optional=True),
        said("/fail", fail, FailInput, "Say that an item could not be done"),
        said("/heartbeat", heartbeat, HeartbeatInput, "Hold an item for longer", is_optional=True),
        said("/release", release, ReleaseInput, "Give an item back", is_optional=True),
        said_of_many("ack", ack_many, AckMany, "Say that many items are done"),
        said_of_many("fail", fail_many, FailMany, "Say that many items could not be done"),
    ]
