"""Families for tests: a chain that has begun, and a way to end its steps one after the other."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ksana.domain.claims import Turn
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.moves import Branch, Move, advance
from ksana.domain.outcomes import Verdict
from ksana.domain.plans import CHAIN, ChainPlan, JobPlan, MapPlan, Plan, begun, new_child, shape_of_plan, write_plan
from ksana.domain.ports import Store
from ksana.domain.runs import Run
from ksana.domain.states import Event, Reason, State
from tests.stores.builders import NOW, a_claim, a_job, a_move, a_run, an_attempt, get, put

SUCCEED, FAIL = Event.SUCCEED, Event.FAIL


def a_dag(*nodes: str, **said: Any) -> dict[str, Any]:
    """A graph in short: `d?any_failed<b,c` is a node d that needs b and c and runs if one of them failed; `(j)<b` is a
    node j that does nothing."""
    return {"nodes": [_node(text) for text in nodes], **said}


def _node(text: str) -> dict[str, Any]:
    name, _, needs = text.partition("<")
    name, _, when = name.partition("?")
    kind = "noop" if name.startswith("(") else "echo"
    node: dict[str, Any] = {"id": name.strip("()"), "type": kind, "dependsOn": needs.split(",") if needs else []}
    return node | ({"when": when} if when else {})


DIAMOND = a_dag("a", "b<a", "c<a", "d<b,c")


def a_chain_job(id: int, dag: dict[str, Any] = DIAMOND, **said: Any) -> Job:
    return a_job(id, target=TargetSpec(CHAIN, dag), **said)


def a_chain_run(id: int, job_id: int = 1, dag: dict[str, Any] = DIAMOND, **said: Any) -> Run:
    return a_run(id, job_id, kind=CHAIN, input=write_plan(ChainPlan(dag)), **said)


def branched(parent: Run, plan: Plan, first: int, now: datetime = NOW, *, job: Job | None = None) -> Move:
    """The move by which a claimed run hands its work over to children with ids from `first` on."""
    match plan:
        case ChainPlan(dag=dag):
            steps = [node["id"] for node in dag["nodes"]]
        case MapPlan(items=items):
            steps = [str(index) for index in range(len(items))]
        case JobPlan():
            steps = ["job"]
    children = [
        new_child(parent, first + place, step, now, kind="echo", job=job, input=b"\0" if place else None)
        for place, step in enumerate(steps)
    ]
    return Move(
        parent.epoch,
        advance(parent, Event.BRANCH, now, reason=Reason.CHILDREN),
        an_attempt(parent, verdict=Verdict.BRANCH, ended_at=now),
        branch=Branch(begun(children, shape_of_plan(plan), now).children, write_plan(plan)),
    )


async def begin(store: Store, dag: dict[str, Any] = DIAMOND, run_id: int = 1, first: int = 0, job_id: int = 1) -> None:
    """Have a run of a chain that has just branched; its children are numbered from ten times its id on."""
    await put(store, a_chain_run(run_id, job_id, dag))
    await branch(store, run_id, ChainPlan(dag), first or 10 * run_id)


async def branch(store: Store, run_id: int, plan: Plan, first: int, job: Job | None = None) -> None:
    """Claim whatever is due, this run among it, and have it branch."""
    await store.turn([], a_claim())
    turn = await store.turn([branched(await get(store, run_id), plan, first, job=job)])
    assert not turn.lost


async def ends(store: Store, parent_id: int, now: datetime = NOW, **events: Event) -> list[Move]:
    """Claim whatever is due, and make the moves that end these steps."""
    await store.turn([], a_claim(now=now))
    steps = {child.step: child for child in await store.children(parent_id)}
    return [
        a_move(steps[step], event, now, error="boom" if event is FAIL else "", frees_slot=True)
        for step, event in events.items()
    ]


async def end(
    store: Store, parent_id: int = 1, now: datetime = NOW, hooks: Sequence[str] = (), **events: Event
) -> Turn:
    """End these steps, in one turn."""
    turn = await store.turn(await ends(store, parent_id, now, **events), hooks=hooks)
    assert not turn.lost
    return turn


async def states(store: Store, parent_id: int = 1) -> dict[str | None, State]:
    return {child.step: child.state for child in await store.children(parent_id)}


async def shown(store: Store, parent_id: int = 1) -> str:
    """Where the run stands and where its steps do, in short."""
    parent = await get(store, parent_id)
    return f"{parent.state}: " + " ".join(f"{step}={state}" for step, state in (await states(store, parent_id)).items())
