"""How a run hands its work over: a chain to its steps, a mapped step to its items, a step to the run of a job."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ksana.domain.errors import InvalidArgument
from ksana.domain.fires import Draws
from ksana.domain.graph import Step, read_graph
from ksana.domain.items import DEFAULT_MAX_ATTEMPTS, Item, new_item
from ksana.domain.jobs import Job
from ksana.domain.moves import Branch
from ksana.domain.outcomes import Outcome, Verdict
from ksana.domain.plans import (
    CHAIN,
    ChainPlan,
    ItemPlan,
    JobPlan,
    MapPlan,
    Plan,
    begun,
    checked_params,
    input_of,
    new_child,
    read_plan,
    shape_of_plan,
    write_plan,
)
from ksana.domain.ports import Clock, Store, Target
from ksana.domain.queries import JobQuery
from ksana.domain.references import Scope
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.engine.draws import IdPool

_MOST_ITEMS = 100_000


class Branching(Outcome, frozen=True):
    """The work is handed over to others, who may take only so long. `end` is set if nothing of it is left to do."""

    branch: Branch | None = None
    patience: timedelta | None = None
    end: State | None = None


class Brancher:
    """Makes children."""

    def __init__(self, store: Store, targets: Mapping[str, Target], clock: Clock, ids: IdPool, draws: Draws) -> None:
        self._store = store
        self._targets = targets
        self._clock = clock
        self._ids = ids
        self._draws = draws

    async def chain(self, run: Run, plan: ChainPlan, *, is_accepted: bool = True) -> Outcome:
        """Hand a chain over to its steps."""
        try:
            graph = plan.graph if is_accepted else read_graph(plan.dag)
            plan = ChainPlan(plan.dag, checked_params(graph.defaults, plan.params), plan.name)
        except InvalidArgument as error:
            return Outcome(Verdict.FAIL, error=error.message)
        ids = await self._ids.in_a_row(len(graph.steps))
        now = self._clock.now()
        children = [self._step(run, id, step, step.id, now) for id, step in zip(ids, graph.steps, strict=True)]
        return _branching(children, plan, now, graph.timeout)

    async def map(self, run: Run, step: Step, items: Any, scope: Scope) -> Outcome:
        """Hand a step over to one run for each item."""
        if not isinstance(items, list):
            return Outcome(Verdict.FAIL, error=f"map of node {step.id} is no list but {_shown(items)}")
        if len(items) > _MOST_ITEMS:
            return Outcome(Verdict.FAIL, error=f"map of node {step.id} has {len(items)} items; at most {_MOST_ITEMS}")
        if not items:
            return Outcome(Verdict.SUCCESS, result=b"[]")
        each = msgspec.structs.replace(step, needs=(), map=None, condition="")
        ids = await self._ids.in_a_row(len(items))
        now = self._clock.now()
        children = [self._step(run, id, step, f"{step.id}[{i}]", now) for i, id in enumerate(ids)]
        return _branching(children, MapPlan(each, items, dict(scope.artifacts), dict(scope.params)), now)

    async def sub_chain(self, run: Run, config: dict[str, Any]) -> Outcome:
        """Hand a step over to the steps of another chain, or of one that is written down in place."""
        params = config.get("params") or {}
        if not isinstance(params, dict):
            return Outcome(Verdict.FAIL, error="params of a chain are an object")
        if "nodes" in config:
            return await self.chain(run, ChainPlan(config, {}, run.step or ""), is_accepted=False)
        found = await self._find(config.get("chain"), CHAIN)
        if not isinstance(found, Job):
            return found
        return await self.chain(run, ChainPlan(found.target.config, params, found.name))

    async def job(self, run: Run, config: dict[str, Any]) -> Outcome:
        """Hand a step over to a run of a job."""
        job = await self._find(config.get("job", config.get("task")), None)
        if not isinstance(job, Job):
            return job
        given = config.get("input")
        encoded = None if given is None else msgspec.json.encode(given)
        try:
            input = input_of(job, encoded)
        except InvalidArgument as error:
            return Outcome(Verdict.FAIL, error=error.message)
        target = self._targets.get(job.target.kind)
        waits = job.awaits_callback if target is None else target.awaits_callback(job.target.config, given)
        [id] = await self._ids.in_a_row(1)
        now = self._clock.now()
        child = new_child(
            run,
            id,
            job.name,
            now,
            kind=job.target.kind,
            queue=job.queue,
            token=self._draws.token() if waits else None,
            job=job,
            input=input,
        )
        return _branching([child], JobPlan(job.id), now)

    async def item(self, run: Run, config: dict[str, Any]) -> Outcome:
        """Hand a step over to whoever pulls from a queue."""
        item = Item(payload=config.get("payload"), max_attempts=config.get("max_attempts") or DEFAULT_MAX_ATTEMPTS)
        [id] = await self._ids.in_a_row(1)
        now = self._clock.now()
        child = new_item(
            id,
            config["queue"],
            item,
            now,
            due_at=now,
            priority=run.priority,
            surface=run.surface,
            type=run.step,
            parent=run,
        )
        return _branching([child], ItemPlan(config["queue"]), now)

    async def _find(self, wanted: Any, kind: str | None) -> Job | Outcome:
        what = kind or "job"
        if isinstance(wanted, int) or (isinstance(wanted, str) and wanted.isdecimal()):
            jobs = await self._store.get_jobs([int(wanted)])
        elif isinstance(wanted, str) and wanted:
            jobs = (await self._store.find_jobs(JobQuery(exact_name=wanted, kind=kind, limit=2))).items
        else:
            return Outcome(Verdict.FAIL, error=f"say which {what}, by its id or its name")
        jobs = [job for job in jobs if job.deleted_at is None and kind in (None, job.target.kind)]
        if len(jobs) > 1:
            return Outcome(Verdict.FAIL, error=f"there are several called {wanted!r}; use the id")
        return jobs[0] if jobs else Outcome(Verdict.FAIL, error=f"there is no {what} {wanted!r}")

    def _step(self, parent: Run, id: int, step: Step, name: str, now: datetime) -> Run:
        target = self._targets.get(step.kind)
        waits = target is not None and step.map is None and _awaits_callback(target, step.config)
        token = self._draws.token() if waits else None
        return new_child(parent, id, name, now, kind=step.kind, queue=step.queue, token=token)


def _awaits_callback(target: Target, config: dict[str, Any]) -> bool:
    """Whether a step with this config ends by a callback. Its markers are not filled in yet, and a target that cannot
    say anything about it without them is not asked to wait."""
    with suppress(InvalidArgument):
        config = target.check(config)
    try:
        return target.awaits_callback(config)
    except (KeyError, TypeError, ValueError):
        return False


def _branching(children: list[Run], plan: Plan, now: datetime, patience: timedelta | None = None) -> Branching:
    written = write_plan(plan)
    # As it is read by all who ask for it from now on, and read once for all of them.
    born, end = begun(children, shape_of_plan(read_plan(written)), now)
    return Branching(Verdict.BRANCH, branch=Branch(born, written), patience=patience, end=end)


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:59]}…"
