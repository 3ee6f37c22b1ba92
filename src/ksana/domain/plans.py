"""Plans: what a run that hands its work over to children was asked to do, as it was when the run was made. A definition
edited later does not touch it. The plan is kept as the run's input."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import msgspec

from ksana.domain.chains import Chain, Shape, flat_shape, shape_of
from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.graph import Graph, Step, defaults_of, read_graph
from ksana.domain.jobs import Job
from ksana.domain.moves import advance, pass_by
from ksana.domain.runs import Run, Trigger
from ksana.domain.states import Event, Reason, State
from ksana.domain.steps import CHAIN as CHAIN


class ChainPlan(msgspec.Struct, frozen=True, tag="chain", dict=True):
    """A graph, as somebody wrote it down, the parameters of this start, and what the chain was called then."""

    dag: dict[str, Any]
    params: dict[str, Any] = {}
    name: str = ""

    @cached_property
    def graph(self) -> Graph:
        """The graph, which was accepted when it was written down."""
        return read_graph(self.dag, is_accepted=True)

    @cached_property
    def shape(self) -> Shape:
        return shape_of(self.graph)


class MapPlan(msgspec.Struct, frozen=True, tag="map"):
    """One step done for each item of a list, with what else its markers stand for. They are filled in for each item at
    once: text that was filled in before would be looked at twice."""

    step: Step
    items: list[Any]
    artifacts: dict[str, Any] = {}
    params: dict[str, Any] = {}


class JobPlan(msgspec.Struct, frozen=True, tag="job"):
    """One run of a job."""

    job_id: int


class ItemPlan(msgspec.Struct, frozen=True, tag="item"):
    """One item of a queue, for whoever pulls it."""

    queue: str


Plan = ChainPlan | MapPlan | JobPlan | ItemPlan

_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[Plan] = msgspec.json.Decoder(Plan)


def write_plan(plan: Plan) -> bytes:
    return _encode(plan)


# Who moves a chain on asks for the same plan as who carries its steps out, and plans never change.
@lru_cache(maxsize=8)
def read_plan(input: bytes | None) -> Plan:
    return _decoder.decode(input or b"{}")


def input_of(job: Job, given: bytes | None) -> bytes | None:
    """What a fresh run of the job is given: for a chain, its plan; `given` are then its parameters."""
    if job.target.kind != CHAIN:
        return given
    return write_plan(ChainPlan(job.target.config, _params(given), job.name))


def shape_of_plan(plan: Plan) -> Shape:
    """How the children of a run with this plan depend on each other."""
    match plan:
        case ChainPlan():
            return plan.shape
        case MapPlan(step=step, items=items):
            return flat_shape(len(items), step.max_parallel)
        case JobPlan() | ItemPlan():
            return flat_shape(1)


def check_params(job: Job, given: bytes | None) -> None:
    """InvalidArgument if a run of the job cannot be given this."""
    if job.target.kind == CHAIN and given is not None:
        checked_params(defaults_of(job.target.config), _params(given))


def _params(given: bytes | None) -> dict[str, Any]:
    try:
        return {} if given is None else msgspec.json.decode(given, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidArgument.of("params", "must be an object with the parameters of the chain") from error


def checked_params(defaults: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a start: the declared defaults, overridden by what is given. InvalidArgument for one that is
    not declared, or that is of another kind than its default."""
    problems = []
    for name, value in given.items():
        if name not in defaults:
            known = ", ".join(sorted(defaults)) or "none"
            problems.append(Problem(f"params.{name}", f"is not declared by the chain; it has {known}"))
        elif not _is_like(value, defaults[name]):
            problems.append(Problem(f"params.{name}", f"must be {_kind(defaults[name])} like its default"))
    if problems:
        raise InvalidArgument(problems)
    return {**defaults, **given}


def _is_like(value: Any, default: Any) -> bool:
    return default is None or _kind(value) == _kind(default)


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return "null"


def new_child(
    parent: Run,
    id: int,
    step: str,
    now: datetime,
    *,
    kind: str,
    queue: str = "",
    token: str | None = None,
    job: Job | None = None,
    input: bytes | None = None,
) -> Run:
    """A child that waits for what it depends on."""
    return Run(
        id=id,
        job_id=None if job is None else job.id,
        job_version=0 if job is None else job.version,
        surface=parent.surface if job is None else job.surface,
        kind=kind,
        queue=queue or parent.queue,
        trigger=Trigger.CHAIN,
        state=State.WAITING,
        reason=Reason.DEPENDENCY,
        priority=parent.priority if job is None else job.priority,
        due_at=now,
        created_at=now,
        callback_token=token,
        parent_id=parent.id,
        step=step,
        input=input,
    )


class Begun(NamedTuple):
    """Children as they are stored first, and the end of their parent if it has come with them."""

    children: tuple[Run, ...]
    end: State | None


def begun(children: list[Run], shape: Shape, now: datetime) -> Begun:
    """Those that need nothing may start at once, as far as the bounds allow; those that do nothing are done."""
    follows = Chain(shape, [child.state for child in children]).advance()
    born = list(children)
    for place in follows.admits:
        born[place] = msgspec.structs.replace(children[place], state=State.SCHEDULED, reason=None)
    for place in follows.passes:
        born[place] = pass_by(children[place], now)
    for place in follows.skips:
        born[place] = advance(children[place], Event.SKIP, now, reason=Reason.DEPENDENCY)
    return Begun(tuple(born), follows.end)
