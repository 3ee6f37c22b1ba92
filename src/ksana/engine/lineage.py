"""Whose child a run is. A step's run has no job of its own: what it does stands in the plan of its parent, which never
changes once the parent has branched, so it is read once and kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ksana.domain.claims import Claimed
from ksana.domain.graph import Graph, Step
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.plans import ChainPlan, MapPlan, Plan, read_plan
from ksana.domain.policies import Overlap, OverlapRule
from ksana.domain.ports import Store
from ksana.domain.runs import Run

_MOST_STEPS = 1_000_000
_PARALLEL = Overlap(rule=OverlapRule.PARALLEL)


class Parent:
    """A run that has branched: its plan, and the jobs that its steps amount to."""

    def __init__(self, run: Run, job: Job | None) -> None:
        self.run = run
        self.plan: Plan = read_plan(run.input)
        self.graph: Graph | None = self.plan.graph if isinstance(self.plan, ChainPlan) else None
        self.places = {} if self.graph is None else {step.id: place for place, step in enumerate(self.graph.steps)}
        self.checked: dict[int, dict[str, Any]] = {}
        self._name = run.step or "" if job is None else job.name
        self._job_id = run.job_id or 0
        self._jobs: dict[str, Job] = {}
        self._reads: dict[str, frozenset[str]] = {}

    @property
    def size(self) -> int:
        return 1 if self.graph is None else len(self.graph.steps)

    def step_of(self, run: Run) -> Step | None:
        """The step this child carries out; None for the run of a job."""
        if self.graph is not None:
            place = self.places.get(run.step or "")
            return None if place is None else self.graph.steps[place]
        return self.plan.step if isinstance(self.plan, MapPlan) else None

    def reads(self, step: Step) -> frozenset[str]:
        """The steps whose artifacts this one names."""
        found = self._reads.get(step.id)
        if found is None:
            found = self._reads[step.id] = step.references
        return found

    def job_of(self, run: Run) -> Job | None:
        """The step as a job: what the engine asks for policies, and observers for names."""
        key = run.step or ""
        if key not in self._jobs and (step := self.step_of(run)) is not None:
            self._jobs[key] = Job(
                id=self._job_id,
                name=f"{self._name}/{key}",
                surface=run.surface,
                target=TargetSpec(step.kind, step.config),
                retry=step.retry,
                timeouts=step.timeouts,
                on_uncertain=step.on_uncertain,
                overlap=_PARALLEL,
                created_at=run.created_at,
                updated_at=run.created_at,
            )
        return self._jobs.get(key)


class Lineage:
    """A bounded memory of runs that have branched."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parents: dict[int, Parent] = {}
        self._steps = 0

    async def with_jobs(self, claimed: Sequence[Claimed]) -> list[Claimed]:
        """The same runs, with what their plans say of those that have no job of their own."""
        orphans = {one.run.parent_id for one in claimed if one.job is None and one.run.parent_id is not None}
        if not orphans:
            return list(claimed)
        parents = self._parents if orphans <= self._parents.keys() else await self.parents(orphans)
        return [
            Claimed(one.run, parents[one.run.parent_id].job_of(one.run))
            if one.job is None and one.run.parent_id in parents
            else one
            for one in claimed
        ]

    async def job_of(self, run: Run) -> Job | None:
        """The job that a step amounts to."""
        [claimed] = await self.with_jobs([Claimed(run, None)])
        return claimed.job

    async def parent(self, parent_id: int) -> Parent | None:
        """The run that has branched under this id, if there is one."""
        return self._parents.get(parent_id) or (await self.parents([parent_id])).get(parent_id)

    async def parents(self, parent_ids: Iterable[int]) -> dict[int, Parent]:
        wanted = set(parent_ids)
        if missing := wanted - self._parents.keys():
            runs = await self._store.get_runs(missing)
            jobs = {job.id: job for job in await self._store.get_jobs({r.job_id for r in runs if r.job_id is not None})}
            for run in runs:
                if run.input is not None:
                    self._keep(Parent(run, jobs.get(run.job_id or 0)))
        return {parent_id: self._parents[parent_id] for parent_id in wanted if parent_id in self._parents}

    def _keep(self, parent: Parent) -> None:
        self._parents[parent.run.id] = parent
        self._steps += parent.size
        while self._steps > _MOST_STEPS and len(self._parents) > 1:
            self._steps -= self._parents.pop(next(iter(self._parents))).size
