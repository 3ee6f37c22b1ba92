"""How a run moves: `advance` applies the transition table, and the functions below it choose the event.

Every move raises the epoch by one, so a store can accept it by comparing (id, epoch) and nothing else.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from ksana.domain.errors import InvalidState
from ksana.domain.jobs import Job
from ksana.domain.outcomes import Outcome, Verdict
from ksana.domain.policies import OnUncertain
from ksana.domain.runs import Attempt, Run
from ksana.domain.states import FINAL, TABLE, Event, Reason, State

ERROR_LENGTH = 1024
LONGEST_WAIT = timedelta(days=30)

_replace = msgspec.structs.replace


def storable(text: str) -> str:
    """The text as every store can keep it: what targets say may hold NUL or halves of characters."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


class Move(msgspec.Struct, frozen=True, gc=False):
    """A change of one run that counts only if the run is still at `epoch`.

    `attempt` is what there is to tell of it; `frees_slot` says that runs of the same job may be waiting for its end;
    `taken_from` names the node that holds the run and must learn that somebody else has moved it. `branch` is the work
    the run hands over to others; `artifact` and `checkpoint`, if given, take the place of what was kept of the run, and
    `input` that of its input.
    """

    epoch: int
    run: Run
    attempt: Attempt | None = None
    frees_slot: bool = False
    taken_from: int | None = None
    branch: Branch | None = None
    artifact: bytes | None = None
    checkpoint: bytes | None = None
    input: bytes | None = None


class Branch(msgspec.Struct, frozen=True):
    """What a run hands over: children whose ids follow each other without a gap, in the order of their steps, and the
    plan they were made by, which takes the place of the run's input."""

    children: tuple[Run, ...]
    plan: bytes


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a run for others: what it hands on, and what its last attempt left to the next."""

    run_id: int
    artifact: bytes | None = None
    checkpoint: bytes | None = None


def advance(
    run: Run,
    event: Event,
    now: datetime,
    *,
    reason: Reason | None = None,
    due_at: datetime | None = None,
    deadline_at: datetime | None = None,
    node_id: int | None = None,
    holder: str | None = None,
    error: str = "",
) -> Run:
    """The run after `event`, or InvalidState if the table has no such arrow."""
    state = TABLE.get((run.state, event))
    if state is None:
        raise InvalidState(f"run {run.id} is {run.state}; it cannot {event.value.replace('_', ' ')}")
    if state in FINAL:
        failures = run.failures + (event in _FAILURES)
        return _ended(run, state, reason, failures, now, storable(error[:ERROR_LENGTH]) if error else "")
    return _replace(
        run,
        state=state,
        reason=reason,
        epoch=run.epoch + 1,
        # The attempt counts at claim, not at report: a worker that dies half-way has used one up.
        attempt=run.attempt + (event is Event.CLAIM),
        failures=0 if event in _ANEW else run.failures + (event is Event.RETRY),
        reclaims=0 if event in _ANEW else run.reclaims + (event is Event.RECLAIM),
        due_at=due_at or run.due_at,
        deadline_at=deadline_at,
        node_id=node_id,
        holder=run.holder if holder is None else holder,
        started_at=(run.started_at or now) if event is Event.CLAIM else run.started_at,
        ended_at=None,
        error=storable(error[:ERROR_LENGTH]),
    )


def _ended(run: Run, state: State, reason: Reason | None, failures: int, now: datetime, error: str) -> Run:
    """Every run comes by here, and to say all values by their places costs less than to replace some by their names."""
    return Run(
        run.id,
        run.due_at,
        run.created_at,
        run.job_id,
        run.job_version,
        run.surface,
        run.kind,
        run.queue,
        run.trigger,
        run.slot_at,
        state,
        reason,
        run.epoch + 1,
        run.attempt,
        failures,
        run.reclaims,
        run.priority,
        None,
        None,
        run.started_at,
        now,
        error,
        run.callback_token,
        run.parent_id,
        run.step,
        run.input,
        run.holder,
        run.subject,
    )


_ANEW = frozenset({Event.RERUN, Event.REOPEN, Event.RESUME})
_FAILURES = frozenset({Event.FAIL, Event.TIME_OUT, Event.BURY})
# The way nearly all runs take, looked up once.
_SUCCEEDED = TABLE[State.RUNNING, Event.SUCCEED]


def settle(run: Run, job: Job, outcome: Outcome, now: datetime, token_ttl: timedelta = LONGEST_WAIT) -> Run:
    """Where a RUNNING run goes after its target answered. No callback is awaited longer than its token is good for."""
    if outcome.verdict is Verdict.SUCCESS and run.state is State.RUNNING:
        return _ended(run, _SUCCEEDED, None, run.failures, now, "")
    match outcome.verdict:
        case Verdict.SUCCESS:
            return advance(run, Event.SUCCEED, now)
        case Verdict.WAIT:
            patience = job.timeouts.callback if run.callback_token is None else min(job.timeouts.callback, token_ttl)
            return advance(run, Event.ACCEPT, now, deadline_at=now + patience)
        case Verdict.FAIL:
            return advance(run, Event.FAIL, now, error=outcome.error)
        case Verdict.RETRY:
            return _retry_or_end(run, job, outcome, now)
        case Verdict.SKIP:
            return advance(run, Event.SKIP, now, reason=Reason.CONDITION)
        case Verdict.BRANCH:
            return advance(run, Event.BRANCH, now, reason=Reason.CHILDREN)


def pass_by(run: Run, now: datetime) -> Run:
    """Where a step goes that does nothing, when it may start: it has begun and ended, and nobody attempted anything."""
    passed = advance(run, Event.DO_NOTHING, now)
    return passed if run.started_at is not None else _replace(passed, due_at=now, started_at=now)


def _retry_or_end(run: Run, job: Job, outcome: Outcome, now: datetime) -> Run:
    failures = run.failures + 1
    if job.retry.allows_another(failures):
        due_at = now + job.retry.delay_after(failures, outcome.retry_after)
        return advance(run, Event.RETRY, now, due_at=due_at, error=outcome.error)
    event = Event.TIME_OUT if outcome.timed_out else Event.FAIL
    return advance(run, event, now, error=outcome.error)


def reclaim(run: Run, on_uncertain: OnUncertain, max_reclaims: int, now: datetime) -> Run:
    """Where a RUNNING run goes when its worker vanished and nobody knows whether the target was called."""
    if on_uncertain is OnUncertain.FAIL:
        return advance(
            run,
            Event.FAIL,
            now,
            reason=Reason.UNCERTAIN,
            error="the worker vanished; the target may have been called",
        )
    if run.reclaims >= max_reclaims:
        return advance(
            run,
            Event.FAIL,
            now,
            reason=Reason.MAX_RECLAIMS,
            error=f"the run lost its worker {run.reclaims + 1} times and is not tried again",
        )
    return advance(run, Event.RECLAIM, now, due_at=now, reason=Reason.LEASE_LAPSED, error="the worker vanished")


def hand_back(run: Run, on_uncertain: OnUncertain, now: datetime) -> Run:
    """Where a RUNNING run goes when its worker must stop before the target answered."""
    if on_uncertain is OnUncertain.FAIL:
        return advance(run, Event.FAIL, now, reason=Reason.UNCERTAIN, error="the worker stopped before an answer came")
    moved = advance(run, Event.RECLAIM, now, due_at=now, reason=Reason.SHUTDOWN, error="the worker stopped")
    # A planned stop is no sign of a run that kills its workers.
    return _replace(moved, reclaims=run.reclaims)


def overdue(run: Run, now: datetime) -> Run:
    """Where a run goes when the callback it waits for did not come in time."""
    return advance(
        run, Event.TIME_OUT, now, reason=Reason.CALLBACK_TIMEOUT, error="no callback came before the deadline"
    )


def call_back(run: Run, succeeded: bool, now: datetime, error: str = "") -> Run:
    """Where a run goes when its callback arrives; one that overtakes the target's answer finds it still RUNNING."""
    if run.state not in (State.RUNNING, State.CALLBACK_PENDING):
        raise InvalidState(f"run {run.id} is {run.state}; it awaits no callback")
    event = Event.SUCCEED if succeeded else Event.FAIL
    return advance(run, event, now, reason=Reason.CALLBACK, error=error)


def put_off(run: Run, deadline_at: datetime) -> Run:
    """The waiting run with a later deadline. It moves, so that nobody who read the old one can end the wait by it."""
    return _replace(run, epoch=run.epoch + 1, deadline_at=deadline_at)
