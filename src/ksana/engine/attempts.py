"""One attempt: the run's target is asked, and what it answers becomes the run's next move."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TypeGuard

import msgspec

from ksana.domain.claims import Claimed
from ksana.domain.errors import StoreUnavailable
from ksana.domain.jobs import Job
from ksana.domain.moves import LONGEST_WAIT, Move, advance, settle, storable
from ksana.domain.outcomes import Outcome, Verdict
from ksana.domain.policies import OverlapRule
from ksana.domain.ports import Beginning, Begun, Target
from ksana.domain.runs import Attempt, Run, Trigger
from ksana.domain.states import Event, State
from ksana.domain.steering import ended
from ksana.engine.artifacts import artifact_of
from ksana.engine.branching import Branching
from ksana.engine.contexts import Contexts
from ksana.engine.places import Execution
from ksana.engine.steps import Steps, is_for_steps, reads_kept

log = logging.getLogger(__name__)


class Attempts:
    """Makes attempts and judges them."""

    def __init__(
        self,
        targets: Mapping[str, Target],
        contexts: Contexts,
        steps: Steps,
        token_ttl: timedelta = LONGEST_WAIT,
    ) -> None:
        self.targets = targets
        self._contexts = contexts
        self._steps = steps
        self._token_ttl = token_ttl

    def begin(self, claimed: Claimed, tell: Callable[[Outcome], None]) -> Begun | Outcome | None:
        """Begin an attempt whose target tells by itself what came of it; None if there is something to wait for."""
        run, job = claimed.run, claimed.job
        target = None if job is None else self.targets.get(job.target.kind)
        if job is None or not _begins(target) or is_for_steps(run):
            return None
        try:
            if not reads_kept(target):
                return target.begin(self._contexts.of(run, job), job.target.config, tell)
            # What an attempt before this one has left must be read first.
            return None if run.attempt > 1 else self._steps.begin(target, run, job, tell)
        except Exception as error:
            return _broken(job, error)

    async def make(self, claimed: Claimed) -> Outcome:
        """Ask the target. Whatever it does, an outcome comes of it."""
        job = claimed.job
        if job is None:
            return Outcome(Verdict.FAIL, error="the run has no job that says what to do")
        target = self.targets.get(job.target.kind)
        try:
            if is_for_steps(claimed.run) or reads_kept(target):
                return await self._steps.attempt(claimed)
            if target is None:
                return Outcome(Verdict.RETRY, error=f"no target {job.target.kind!r} is installed on this node")
            return await target.execute(self._contexts.of(claimed.run, job), job.target.config)
        except StoreUnavailable as error:
            return Outcome(Verdict.RETRY, error=error.message)
        except Exception as error:
            return _broken(job, error)

    def judge(self, execution: Execution, now: datetime) -> Move:
        """Where the run goes after this attempt."""
        try:
            return self._move(execution, execution.outcome, now)
        except Exception as error:
            log.exception("target %s answered with nonsense", execution.claimed.run.kind)
            sentence = f"the target's answer makes no sense: {type(error).__name__}: {error}"
            return self._move(execution, Outcome(Verdict.FAIL, error=sentence), now)

    def _move(self, execution: Execution, outcome: Outcome | None, now: datetime) -> Move:
        if outcome is None:
            raise TypeError("the target answered with None")
        run, job = execution.claimed.run, execution.claimed.job
        attempt = Attempt(
            run_id=run.id,
            number=run.attempt,
            epoch=run.epoch,
            node_id=run.node_id,
            started_at=execution.started_at,
            ended_at=execution.ended_at,
            verdict=outcome.verdict,
            timed_out=outcome.timed_out,
            code=outcome.code,
            error=storable(outcome.error),
            result=outcome.result,
            exchange=outcome.exchange,
        )
        if job is None:
            return Move(run.epoch, advance(run, Event.FAIL, now, error=outcome.error), attempt)
        moved = settle(run, job, outcome, now, self._token_ttl)
        if isinstance(outcome, Branching):
            return _branched(run, job, moved, outcome, now)
        artifact = None
        if run.parent_id is not None and moved.state is State.SUCCESS:
            artifact = artifact_of(outcome.result)
        return Move(
            run.epoch,
            moved,
            attempt,
            frees_slot=moved.ended_at is not None and _may_be_waited_for(job, run),
            artifact=artifact,
            checkpoint=outcome.checkpoint,
        )


def _begins(target: Target | None) -> TypeGuard[Beginning]:
    return hasattr(target, "begin")


def _broken(job: Job, error: Exception) -> Outcome:
    log.exception("target %s broke its promise not to raise", job.target.kind)
    return Outcome(Verdict.RETRY, error=f"{type(error).__name__}: {error}")


def _branched(run: Run, job: Job, moved: Run, outcome: Branching, now: datetime) -> Move:
    """Handing over is no attempt at anything, so none is told of. Where nothing is left to do the run is over."""
    if outcome.end is not None:
        moved = ended(run, outcome.end, now)
    elif outcome.patience is not None:
        moved = msgspec.structs.replace(moved, deadline_at=now + outcome.patience)
    if outcome.branch is not None:
        moved = msgspec.structs.replace(moved, input=outcome.branch.plan)
    frees_slot = moved.ended_at is not None and _may_be_waited_for(job, run)
    return Move(run.epoch, moved, frees_slot=frees_slot, branch=outcome.branch)


def _may_be_waited_for(job: Job, run: Run) -> bool:
    # Asking for every run of every job would make all turns of a busy job queue up behind its cursor. Slots of the past
    # that are filled in wait for each other under any rule.
    return job.overlap.rule is OverlapRule.QUEUE or run.trigger is Trigger.CATCH_UP
