"""Acts on many jobs or runs at once: begin one, look how far it is, call it off. They live in the process that was
asked, and end with it."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from ksana.api.kit import Call, Input, Page, PageQuery, Reply, Route, Scope, Timestamp, page_of, timestamp
from ksana.api.kit.errors import Forbidden
from ksana.api.kit.keys import require_scope
from ksana.api.kit.paging import Order, parse_sort
from ksana.api.services import Services
from ksana.api.v2.job_reading import read_until
from ksana.api.v2.job_shapes import Until
from ksana.api.v2.operations_chosen import MOST_IDS, SCOPES, Action, Chosen, Filter, Id, chosen
from ksana.domain.errors import InvalidArgument, InvalidState, NotFound, Problem
from ksana.domain.idempotency import IdempotencyRecord, IdempotencyReplay
from ksana.domain.items import KIND as ITEM
from ksana.domain.jobs import Job, JobSpec
from ksana.domain.runs import Run
from ksana.domain.states import AT_REST, State
from ksana.engine.acting import because
from ksana.engine.engine import Engine
from ksana.engine.operations import Act, Operation, OperationState

_SCOPE: Final = "operation"
_WRITES: Final = tuple(scope for scope in dict.fromkeys(SCOPES.values()) if scope is not Scope.RUN_CONTROL)

Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class OperationInput(Input, frozen=True):
    """What to do, to which (`ids`, or all that `filter` finds now), and how quickly. `tags` are put on and
    `remove_tags` taken off by `tag`. `purge` takes the waiting items of `filter.queue` out for good, the oldest 100,000
    at once; those in other states stay unless `filter.state` names them. A `pause` may be `until` an instant. `rate` is
    how many a second; without it they are done as fast as they can be. With `dry_run` nothing is done."""

    action: Action
    ids: Annotated[list[Id], msgspec.Meta(min_length=1, max_length=MOST_IDS)] | None = None
    filter: Filter | None = None
    reason: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    tags: Annotated[list[Tag], msgspec.Meta(max_length=50)] = msgspec.field(default_factory=list)
    remove_tags: Annotated[list[Tag], msgspec.Meta(max_length=50)] = msgspec.field(default_factory=list)
    until: Until | None = None
    rate: Annotated[float, msgspec.Meta(ge=0.001, le=100_000)] | None = None
    dry_run: bool = False


class OperationsQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which operations, newest first."""

    state: OperationState | None = None


class OperationError(msgspec.Struct, frozen=True):
    """A job or run it could not be done to."""

    id: int
    message: str


class Subject(msgspec.Struct, frozen=True):
    """A job or run it would be done to."""

    id: int
    name: str | None
    state: State | None


class OperationView(msgspec.Struct, frozen=True, kw_only=True):
    """An operation. One that was only tried (`dry_run`) has no id, and a `sample` of what it would be done to."""

    id: str | None
    action: Action
    actor: str
    reason: str
    state: OperationState | None
    total: int
    done: int
    failed: int
    errors: list[OperationError]
    sample: list[Subject]
    started_at: Timestamp | None
    ended_at: Timestamp | None


async def begin(call: Call[OperationInput, None]) -> Reply:
    """Do something to many at once. The answer comes at once; look at the operation, or listen, to see it go on."""
    services: Services = call.services
    body, engine = call.body, services.engine
    require_scope(call.principal, SCOPES[body.action])
    _check(body)
    until = read_until(body.until, engine.clock.now())
    found = await chosen(engine.store, body.action, body.ids, body.filter)
    if body.dry_run:
        return Reply(await _rehearsed(services, body, found), 200)
    ids = found.ids if body.ids is None else list(dict.fromkeys(body.ids))
    operation = engine.operations.begin(
        body.action.value,
        ids,
        _reasoned(_act(engine, body, until), body.reason),
        actor=_actor(call),
        reason=body.reason,
        per_second=body.rate,
    )
    return Reply(show_operation(operation), 202, {"Location": f"/api/v2/operations/{operation.id}"})


async def list_operations(call: Call[None, OperationsQuery]) -> Page[OperationView]:
    query = call.query
    order = parse_sort(query.sort, ["started_at"], Order("started_at", descending=True))
    known = [one for one in call.services.engine.operations.all() if query.state in (None, one.state)]
    if not order.descending:
        known.reverse()
    shown = known[query.offset : query.offset + query.page_size]
    return page_of([show_operation(one) for one in shown], len(known), query)


async def get(call: Call[None, None]) -> OperationView:
    return show_operation(call.services.engine.operations.get(call.text("id")))


async def cancel(call: Call[None, None]) -> OperationView:
    """Do it to no more of them. What was done stays done; one that is over stays as it is."""
    operations = call.services.engine.operations
    operation: Operation = operations.get(call.text("id"))
    require_scope(call.principal, SCOPES[Action(operation.action)])
    return show_operation(await operations.cancel(operation.id))


def _actor(call: Call[OperationInput, None]) -> str:
    return "loopback" if call.principal.key_id is None else call.principal.name


def _check(body: OperationInput) -> None:
    problems: list[Problem] = []
    if (body.ids is None) is (body.filter is None):
        problems.append(Problem("ids", "say which by ids, or by a filter, and not by both"))
    has_tags = bool(body.tags or body.remove_tags)
    if body.action is Action.TAG and not has_tags:
        problems.append(Problem("tags", "say which to put on, or in remove_tags which to take off"))
    if body.action is not Action.TAG and has_tags:
        name = "tags" if body.tags else "remove_tags"
        problems.append(Problem(name, f"does not go with {body.action}; leave it out"))
    if body.until is not None and body.action is not Action.PAUSE:
        problems.append(Problem("until", f"does not go with {body.action}; leave it out"))
    if problems:
        raise InvalidArgument(problems)


def _act(engine: Engine, body: OperationInput, until: datetime | None) -> Act:
    """The verb an action stands for."""

    def tagged(job: Job) -> JobSpec:
        kept = [tag for tag in job.tags if tag not in body.remove_tags]
        return msgspec.structs.replace(job, tags=tuple(dict.fromkeys([*kept, *body.tags])))

    async def cancel(run_id: int) -> object:
        run = await engine.runs.get(run_id)
        if run.state.is_final:
            raise InvalidState(f"run {run.id} is {run.state}; there is nothing to cancel")
        return await engine.chains.cancel(run_id)

    # A store may do a step and not be able to say so: what is asked for again then must not be made twice.
    mark = secrets.token_hex(16)

    async def run(job_id: int) -> object:
        def done(made: Run) -> IdempotencyRecord:
            return IdempotencyRecord(_SCOPE, f"{mark}:{job_id}", b"", 0, str(made.id).encode(), made.created_at)

        try:
            return await engine.runs.trigger(job_id, answer=done)
        except IdempotencyReplay:
            return None

    async def redrive(run_id: int) -> object:
        run = await engine.runs.get(run_id)
        if run.state is not State.DEAD_LETTER:
            raise InvalidState(f"run {run.id} is no dead letter, but {run.state}")
        return await (engine.queue.redrive(run_id) if run.kind == ITEM else engine.chains.rerun(run_id))

    purged = frozenset(body.filter.state if body.filter else ()) or AT_REST
    verbs: dict[Action, Act] = {
        Action.PAUSE: lambda job_id: engine.jobs.pause(job_id, until=until, reason=body.reason),
        Action.RESUME: engine.jobs.resume,
        Action.RUN: run,
        Action.DELETE: engine.jobs.delete,
        Action.TAG: lambda job_id: engine.jobs.change(job_id, tagged),
        Action.CANCEL: cancel,
        Action.RETRY: engine.chains.rerun,
        Action.REDRIVE: redrive,
        Action.PURGE: lambda run_id: engine.runs.purge(run_id, purged),
    }
    return verbs[body.action]


def _reasoned(act: Act, reason: str) -> Act:
    """The same act, for a reason that the audit will tell."""

    async def acted(id: int) -> object:
        with because(reason):
            return await act(id)

    return acted


async def _rehearsed(services: Services, body: OperationInput, found: Chosen) -> OperationView:
    some = found.sample
    ids = {one.job_id for one in some if isinstance(one, Run) and one.job_id is not None}
    jobs = {job.id: job.name for job in await services.engine.store.get_jobs(ids)} if ids else {}
    return OperationView(
        id=None,
        action=body.action,
        actor="",
        reason=body.reason,
        state=None,
        total=found.total,
        done=0,
        failed=0,
        errors=[],
        sample=[
            Subject(one.id, one.name, None) if isinstance(one, Job) else Subject(one.id, _name(one, jobs), one.state)
            for one in some
        ],
        started_at=None,
        ended_at=None,
    )


def _name(run: Run, jobs: dict[int, str]) -> str | None:
    return None if run.job_id is None else jobs.get(run.job_id)


def show_operation(operation: Operation) -> OperationView:
    return OperationView(
        id=operation.id,
        action=Action(operation.action),
        actor=operation.actor,
        reason=operation.reason,
        state=operation.state,
        total=operation.total,
        done=operation.done,
        failed=operation.failed,
        errors=[OperationError(id, message) for id, message in operation.errors],
        sample=[],
        started_at=timestamp(operation.started_at),
        ended_at=timestamp(operation.ended_at),
    )


def routes() -> list[Route[Any, Any]]:
    path = "/api/v2/operations"
    return [
        Route(
            "POST",
            path,
            begin,
            Scope.RUN_CONTROL,
            or_scopes=_WRITES,
            request=OperationInput,
            response=OperationView,
            status=202,
            other_status=200,
            summary="Do something to many jobs or runs",
            errors=(Forbidden, InvalidState),
            name="begin_operation",
        ),
        Route(
            "GET",
            path,
            list_operations,
            Scope.RUN_READ,
            or_scopes=(Scope.JOB_READ, Scope.QUEUE_READ),
            query=OperationsQuery,
            response=Page[OperationView],
            summary="List operations of this process",
        ),
        Route(
            "GET",
            f"{path}/{{id}}",
            get,
            Scope.RUN_READ,
            or_scopes=(Scope.JOB_READ, Scope.QUEUE_READ),
            response=OperationView,
            summary="Get an operation",
            errors=(NotFound,),
            name="get_operation",
        ),
        Route(
            "POST",
            f"{path}/{{id}}/cancel",
            cancel,
            Scope.RUN_CONTROL,
            or_scopes=_WRITES,
            response=OperationView,
            summary="Call an operation off",
            errors=(NotFound, Forbidden),
            name="cancel_operation",
        ),
    ]
