"""Steps of chains: how a run with a parent learns what it has to do, and how it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ksana.domain import items
from ksana.domain.claims import Claimed
from ksana.domain.errors import InvalidArgument
from ksana.domain.graph import Step
from ksana.domain.jobs import Job
from ksana.domain.outcomes import Outcome, Verdict
from ksana.domain.plans import CHAIN, ChainPlan, MapPlan, read_plan
from ksana.domain.ports import Beginning, Begun, Store, Target
from ksana.domain.references import Scope, Unresolved, has_markers, holds, render
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.engine.artifacts import Artifacts
from ksana.engine.branching import Brancher
from ksana.engine.contexts import Contexts
from ksana.engine.lineage import Lineage, Parent

_JOB_STEPS = frozenset({"job", "task"})
# A chain may name itself, directly or by way of others.
_DEEPEST = 20


class Steps:
    """What the runner asks about runs with a parent, and about those that become one."""

    def __init__(
        self,
        store: Store,
        targets: Mapping[str, Target],
        contexts: Contexts,
        lineage: Lineage,
        brancher: Brancher,
    ) -> None:
        self._store = store
        self._lineage = lineage
        self._targets = targets
        self._contexts = contexts
        self._brancher = brancher
        self._artifacts = Artifacts(store)

    def begin(self, target: Beginning, run: Run, job: Job, tell: Callable[[Outcome], None]) -> Begun | Outcome | None:
        """Begin the first attempt at a run of a job, which may leave word of how far it has come."""
        saved = _Saved(self._store, run)
        context = self._contexts.of(run, job, keep=saved.keep)
        return target.begin(context, job.target.config, lambda outcome: tell(saved.with_last(outcome)))

    async def attempt(self, claimed: Claimed) -> Outcome:
        """Carry a run out that is a chain's, or a step of one."""
        run = claimed.run
        if run.parent_id is None or run.job_id is not None:
            return await self._whole(claimed)
        parent = await self._lineage.parent(run.parent_id)
        step = None if parent is None else parent.step_of(run)
        if parent is None or step is None:
            return Outcome(Verdict.FAIL, error="the plan of its chain does not know this step")
        scope = await self._scope(parent, step, run)
        try:
            if step.condition and not holds(step.condition, scope):
                return Outcome(Verdict.SKIP)
            if step.map is not None:
                return await self._brancher.map(run, step, render(step.map, scope), scope)
            config = self._config(parent, step, scope)
        except Unresolved as error:
            return Outcome(Verdict.FAIL, error=str(error))
        except InvalidArgument as error:
            return Outcome(Verdict.FAIL, error=f"cfg of node {step.id}: {error.message}")
        if step.kind == CHAIN or step.kind in _JOB_STEPS:
            return await self._hand_over(run, step, config)
        if step.kind == items.QUEUE:
            return await self._brancher.item(run, config)
        return await self._execute(claimed, parent, step, scope, config)

    async def _hand_over(self, run: Run, step: Step, config: dict[str, Any]) -> Outcome:
        depth, above = 0, run.parent_id
        while above is not None:
            depth += 1
            above = (await self._lineage.parents([above]))[above].run.parent_id
        if depth > _DEEPEST:
            error = f"chains run within chains at most {_DEEPEST} deep; is this one its own?"
            return Outcome(Verdict.FAIL, error=error)
        return await (self._brancher.sub_chain if step.kind == CHAIN else self._brancher.job)(run, config)

    async def _whole(self, claimed: Claimed) -> Outcome:
        """A run of a job, of which a chain's branches."""
        run, job = claimed.run, claimed.job
        assert job is not None
        if job.target.kind == CHAIN:
            plan = read_plan(run.input)
            assert isinstance(plan, ChainPlan)
            return await self._brancher.chain(run, plan)
        target = self._targets.get(job.target.kind)
        if target is None:
            return Outcome(Verdict.RETRY, error=f"no target {job.target.kind!r} is installed on this node")
        return await self._ask(target, run, job, job.target.config)

    def _config(self, parent: Parent, step: Step, scope: Scope) -> dict[str, Any]:
        """What the target is told, checked; the same object for all runs where nothing is to be filled in."""
        target = self._targets.get(step.kind)
        # Some targets fill markers in by themselves, escaped for their place. Nothing may be filled in twice.
        is_static = bool(getattr(target, "fills_markers", False)) or not has_markers(step.own_config)
        if is_static and (checked := parent.checked.get(id(step))) is not None:
            return checked
        config: dict[str, Any] = step.config if is_static else {**step.config, **render(step.own_config, scope)}
        if target is not None and step.kind != CHAIN:
            config = target.check(config)
        if is_static:
            parent.checked[id(step)] = config
        return config

    async def _execute(
        self, claimed: Claimed, parent: Parent, step: Step, scope: Scope, config: dict[str, Any]
    ) -> Outcome:
        run, job = claimed.run, claimed.job
        target = self._targets.get(step.kind)
        if target is None or job is None:
            known = ", ".join(sorted(self._targets))
            return Outcome(Verdict.FAIL, error=f"there is no node type {step.kind!r}; this node has {known}")
        return await self._ask(target, run, job, config, scope)

    async def _ask(
        self, target: Target, run: Run, job: Job, config: dict[str, Any], scope: Scope | None = None
    ) -> Outcome:
        """Ask the target, which may leave word of how far it has come and find what was left before."""
        saved = _Saved(self._store, run)
        checkpoint = None
        if run.attempt > 1:
            kept = (await self._store.kept([run.id])).get(run.id)
            checkpoint = None if kept is None or kept.checkpoint is None else msgspec.json.decode(kept.checkpoint)
        context = self._contexts.of(run, job, scope, checkpoint, saved.keep)
        return saved.with_last(await target.execute(context, config))

    async def _scope(self, parent: Parent, step: Step, run: Run) -> Scope:
        if isinstance(parent.plan, MapPlan):
            index = index_in(run.step or "")
            plan = parent.plan
            return Scope(plan.artifacts, plan.params, has_item=True, item=plan.items[index], index=index)
        assert parent.graph is not None and isinstance(parent.plan, ChainPlan)
        wanted = parent.reads(step)
        target = self._targets.get(step.kind)
        if reads_kept(target):
            wanted |= {parent.graph.steps[need].id for need in step.needs}
        return Scope(artifacts=await self._handed_on(parent, run, wanted), params=parent.plan.params)

    async def _handed_on(self, parent: Parent, run: Run, wanted: frozenset[str]) -> dict[str, Any]:
        """What the steps with these ids have handed on: null if they succeeded without a word, and nothing at all for
        those that did not succeed."""
        if not wanted or parent.graph is None:
            return {}
        first = run.id - parent.places[run.step or ""]
        ids = {first + parent.places[step_id]: step_id for step_id in wanted}
        runs = await self._store.get_runs(ids)
        artifacts: dict[int, Any] = {run.id: None for run in runs if run.state is State.SUCCESS}
        artifacts |= await self._artifacts.of(runs)
        return {ids[run_id]: artifact for run_id, artifact in artifacts.items()}


class _Saved:
    """What an attempt saves: stored at once, as far as the store keeps up, and with the attempt's end for certain."""

    __slots__ = ("_loop", "_run", "_store", "_storing", "last")

    def __init__(self, store: Store, run: Run) -> None:
        self.last: bytes | None = None
        self._store = store
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._storing: asyncio.Task[None] | None = None

    def keep(self, checkpoint: bytes) -> None:
        self.last = checkpoint
        self._loop.call_soon_threadsafe(self._begin)

    def with_last(self, outcome: Outcome) -> Outcome:
        """The outcome, with what was saved last unless it brings something itself."""
        if self.last is None or outcome.checkpoint is not None:
            return outcome
        return msgspec.structs.replace(outcome, checkpoint=self.last)

    def _begin(self) -> None:
        if self._storing is None or self._storing.done():
            self._storing = asyncio.create_task(self._store_last())

    async def _store_last(self) -> None:
        stored = None
        while self.last is not None and self.last is not stored:
            stored = self.last
            await self._store.keep_checkpoint(self._run.id, self._run.epoch, stored)


def index_in(step: str) -> int:
    """The place of an item in the list, from the name of its step: `resize[3]`."""
    return int(step[step.rindex("[") + 1 : -1])


def reads_kept(target: Target | None) -> bool:
    """Whether a target wants to know what others handed on and what its last attempt left. Few do, so few are asked
    about it: a target that does says so by an attribute `reads_kept`."""
    return bool(getattr(target, "reads_kept", False))


def is_for_steps(run: Run) -> bool:
    """Whether a run is a chain's, or a child of another."""
    return run.parent_id is not None or run.kind == CHAIN
