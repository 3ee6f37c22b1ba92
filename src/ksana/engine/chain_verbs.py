"""What people do to chains: start, stop, look at the steps, retry and complete them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from ksana.domain.errors import InvalidState, NotFound
from ksana.domain.graph import Graph, Step
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.moves import Kept, Move
from ksana.domain.plans import CHAIN, ChainPlan, Plan, read_plan, shape_of_plan
from ksana.domain.ports import Clock, Observer, Store
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.domain.steering import (
    Family,
    Steer,
    awaits_children,
    complete_step,
    expire,
    halt,
    put_back,
    stopped,
)
from ksana.engine.alerts import Alarm
from ksana.engine.artifacts import Artifacts
from ksana.engine.recording import Recorder
from ksana.engine.run_verbs import RunVerbs
from ksana.engine.trying_again import TryAgain, following


class StepStanding(msgspec.Struct, frozen=True):
    """A step of a started chain: what it is, its run (None until the chain has begun), and what it has handed on and
    left for its next attempt, as JSON."""

    step: Step
    run: Run | None = None
    artifact: bytes | None = None
    checkpoint: bytes | None = None


class ChainVerbs:
    """Start, stop, retry, complete."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        runs: RunVerbs,
        observers: Sequence[Observer],
        alarm: Alarm,
        wake: Callable[[], None],
        let_go: Callable[[int, int], None],
        recorder: Recorder,
    ) -> None:
        self._store = store
        self._clock = clock
        self._runs = runs
        self._observers = observers
        self._alarm = alarm
        self._wake = wake
        self._let_go = let_go
        self._recorder = recorder
        self._artifacts = Artifacts(store)
        self._again = TryAgain(store, clock, self._steer)

    async def start(
        self,
        job_id: int,
        params: dict[str, Any] | None = None,
        answer: Callable[[Run], IdempotencyRecord] | None = None,
    ) -> Run:
        """Begin a run of a chain now. InvalidState if it is disabled, InvalidArgument for parameters it has not."""
        return await self._runs.trigger(job_id, msgspec.json.encode(params or {}), answer, needs_enabled=True)

    async def stop(self, run_id: int) -> Run:
        """Ask a chain to stop: nothing more of it starts, what is under way is ended. One that stops or has stopped is
        answered as it is; InvalidState if it is over."""
        return await self._stop(await self._chain_run(run_id))

    async def _stop(self, run: Run) -> Run:
        run_id = run.id
        if run.state in (State.STOPPING, State.CANCELED):
            return run
        if run.state.is_final:
            raise InvalidState(f"run {run_id} is over ({run.state}); there is nothing to stop")
        now = self._clock.now()

        def ask(family: Family) -> list[Move]:
            parent = family.parent
            return [] if parent.state is State.STOPPING or parent.state.is_final else [stopped(parent, now)]

        moves = await self._steer(run_id, ask, now)
        self._wake()
        before, run = run, await self._runs.get(run_id)
        if moves:
            await self._recorder.run("run.stop", before, run)
        if run.state.is_final and run.state is not State.CANCELED:
            raise InvalidState(f"run {run_id} is over ({run.state}); there is nothing to stop")
        return run

    async def halt(self, run_id: int) -> int:
        """End what is under way in a run that is to stop; answer how many runs moved."""
        now = self._clock.now()
        return await self._steer(run_id, lambda family: halt(family, now), now)

    async def expire(self, run_id: int) -> int:
        """End a run whose time is up; answer how many runs moved."""
        now = self._clock.now()
        return await self._steer(run_id, lambda family: expire(family, now), now)

    async def retry_step(self, run_id: int, step_id: str, *, reason: str = "", artifact: bytes | None = None) -> Run:
        """Try a step again that failed or was stopped; the chain goes on from there. Answers the step's run."""
        place, plan, run = await self._place(run_id, step_id)
        before = await self._child(run_id, place)
        await self._again.step(run, plan, place, reason, artifact)
        self._wake()
        step = (await self._store.children(run_id))[place]
        await self._recorder.run("run.retry", before, step, reason)
        return step

    async def complete_step(self, run_id: int, step_id: str, *, reason: str = "", artifact: bytes | None = None) -> Run:
        """Take a step as done; the chain goes on from there. Answers the step's run."""
        place, plan, _ = await self._place(run_id, step_id)
        shape, now = shape_of_plan(plan), self._clock.now()

        def decide(family: Family) -> list[Move]:
            if not family.children:
                raise InvalidState(f"node {step_id} is {State.WAITING}; the chain has not begun")
            return complete_step(family, shape, place, now, reason=reason, artifact=artifact)

        before = await self._child(run_id, place)
        moves = await self._steer(run_id, decide, now, following(now))
        self._wake()
        run = (await self._store.children(run_id))[place]
        if moves:
            await self._recorder.run("run.complete", before, run, reason)
        if run.reason is not None and await self._store.children(run.id):
            # A step with children of its own was under way: nobody waits for them any more.
            await self.halt(run.id)
        return run

    async def retry_failed(self, run_id: int) -> Run:
        """Try all steps of a chain again that ended without success; answers the chain's run."""
        run = await self._chain_run(run_id)
        if run.state.is_final and not await self._store.children(run_id):
            # It ended before it had begun.
            return await self._begin_again(run)
        await self._again.all_failed(run)
        self._wake()
        after = await self._runs.get(run_id)
        await self._recorder.run("run.retry", run, after)
        return after

    async def rerun(self, run_id: int) -> Run:
        """Try a run again that ended without success, whatever it is: of a chain all steps that did, and for a step the
        chain goes on with it."""
        run = await self._runs.get(run_id)
        if run.kind == CHAIN and run.parent_id is None:
            return await self.retry_failed(run_id)
        return await self._begin_again(run)

    async def _begin_again(self, run: Run) -> Run:
        if run.parent_id is None or run.step is None:
            return await self._runs.rerun(run.id)
        return await self.retry_step(run.parent_id, run.step)

    async def put_back(self, parent_id: int, move: Move, now: datetime) -> bool:
        """Let a step begin anew by a move of its own, and the chain go on with it; answer whether the move counted."""

        def decide(family: Family) -> list[Move]:
            return put_back(family, shape_of_plan(read_plan(family.parent.input)), move, now)

        has_moved = await self._steer(parent_id, decide, now, following(now)) > 0
        self._wake()
        return has_moved

    async def cancel(self, run_id: int) -> Run:
        """End a run that is not over yet, whatever it is; one with children is asked to stop."""
        run = await self._runs.get(run_id)
        if run.kind == CHAIN or awaits_children(run):
            return await self._stop(run)
        return await self._runs.cancel(run_id)

    async def complete(self, run_id: int, *, reason: str = "", artifact: bytes | None = None) -> Run:
        """Take a run as done that runs, awaits its callback or ended without success, whatever it is: for a step the
        chain goes on, and of a chain nobody waits for the steps under way any more."""
        run = await self._runs.get(run_id)
        if run.parent_id is not None and run.step is not None:
            return await self.complete_step(run.parent_id, run.step, reason=reason, artifact=artifact)
        done = await self._runs.complete(run_id, reason=reason, artifact=artifact)
        if await self._store.children(run_id):
            await self.halt(run_id)
        return done

    async def steps(self, run: Run) -> list[StepStanding]:
        """Every step of a chain's run, in the order of the definition, from the first instant on."""
        graph = graph_of(run)
        children = await self._store.children(run.id)
        if not children:
            return [StepStanding(step) for step in graph.steps]
        kept = await self._store.kept([child.id for child in children])
        gathered = await self._artifacts.of([child for child in children if child.input is not None])
        return [
            _standing(step, child, kept.get(child.id), gathered)
            for step, child in zip(graph.steps, children, strict=True)
        ]

    async def _steer(self, run_id: int, decide: Steer, now: datetime, above: Steer | None = None) -> int:
        moves = await self._store.steer(run_id, decide, self._alarm.hooks, above)
        for move, _ in moves:
            self._let_go(move.run.id, move.epoch)
        if moves:
            for observer in self._observers:
                observer.on_moved(moves, now)
        return len(moves)

    async def _child(self, run_id: int, place: int) -> Run | None:
        children = await self._store.children(run_id)
        return children[place] if children else None

    async def _chain_run(self, run_id: int) -> Run:
        run = await self._runs.get(run_id)
        if run.kind != CHAIN:
            raise NotFound(f"run {run_id} is not a chain's")
        return run

    async def _place(self, run_id: int, step_id: str) -> tuple[int, Plan, Run]:
        """Where a step stands among its siblings: by its id in a chain, by its name in any other family."""
        run = await self._runs.get(run_id)
        if run.kind != CHAIN and not await self._store.children(run_id):
            raise NotFound(f"run {run_id} is not a chain's")
        plan = read_plan(run.input)
        if isinstance(plan, ChainPlan):
            place = graph_of(run).place_of(step_id)
        else:
            names = [child.step for child in await self._store.children(run_id)]
            place = names.index(step_id) if step_id in names else -1
        if place < 0:
            raise NotFound(f"run {run_id} has no node {step_id!r}")
        return place, plan, run


def _standing(step: Step, child: Run, kept: Kept | None, gathered: dict[int, Any]) -> StepStanding:
    artifact = None if kept is None else kept.artifact
    if artifact is None and child.id in gathered:
        artifact = msgspec.json.encode(gathered[child.id])
    return StepStanding(step, child, artifact, None if kept is None else kept.checkpoint)


def graph_of(run: Run) -> Graph:
    """The graph a chain's run was started with."""
    plan = read_plan(run.input) if run.kind == CHAIN and run.input is not None else None
    if not isinstance(plan, ChainPlan):
        raise NotFound(f"run {run.id} is not a chain's")
    return plan.graph
