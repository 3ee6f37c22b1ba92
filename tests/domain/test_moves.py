from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.errors import InvalidState
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.moves import ERROR_LENGTH, advance, call_back, hand_back, overdue, reclaim, settle, storable
from ksana.domain.outcomes import SUCCESS, Outcome, Verdict
from ksana.domain.policies import OnUncertain, Priority, Retry, Timeouts
from ksana.domain.runs import Run, Trigger
from ksana.domain.states import FINAL, TABLE, Event, Reason, State

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)


def a_run(state: State = State.RUNNING, **said: object) -> Run:
    return msgspec.structs.replace(Run(id=1, due_at=NOW, created_at=NOW, state=state, epoch=5, node_id=3), **said)


def a_job(**said: object) -> Job:
    values: dict[str, object] = {"name": "job", "target": TargetSpec("noop"), "created_at": NOW, "updated_at": NOW}
    return Job(id=1, surface="v2", **(values | said))  # type: ignore[arg-type]


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", Event)
def test_only_arrows_of_the_table_exist(state: State, event: Event) -> None:
    after = TABLE.get((state, event))
    if after is None:
        with pytest.raises(InvalidState, match=f"run 1 is {state}"):
            advance(a_run(state), event, LATER)
    else:
        assert advance(a_run(state), event, LATER).state is after


@pytest.mark.parametrize(("state", "event"), TABLE)
def test_every_move_raises_the_epoch_by_one_and_lets_go_of_the_node(state: State, event: Event) -> None:
    moved = advance(a_run(state), event, LATER)
    assert moved.epoch == 6
    assert moved.node_id is None
    assert (moved.ended_at == LATER) == (moved.state in FINAL)


@pytest.mark.parametrize(("state", "event"), TABLE)
def test_what_a_run_stands_for_never_changes(state: State, event: Event) -> None:
    before = a_run(state, slot_at=NOW, job_id=7, callback_token="t", input=b"1")
    moved = advance(before, event, LATER)
    for field in ("id", "job_id", "slot_at", "created_at", "callback_token", "input", "trigger", "queue", "priority"):
        assert getattr(moved, field) == getattr(before, field)


def test_a_claim_counts_the_attempt_and_keeps_the_first_start() -> None:
    claimed = advance(a_run(State.SCHEDULED, node_id=None), Event.CLAIM, LATER, node_id=9)
    assert (claimed.attempt, claimed.node_id, claimed.started_at) == (1, 9, LATER)
    again = advance(advance(claimed, Event.RETRY, LATER), Event.CLAIM, LATER + timedelta(hours=1), node_id=9)
    assert (again.attempt, again.started_at) == (2, LATER)


def test_failures_and_reclaims_are_counted_apart_and_forgotten_when_tried_again() -> None:
    retried = advance(a_run(), Event.RETRY, LATER)
    reclaimed = advance(a_run(), Event.RECLAIM, LATER)
    assert (retried.failures, retried.reclaims) == (1, 0)
    assert (reclaimed.failures, reclaimed.reclaims) == (0, 1)
    failed = advance(a_run(failures=2, reclaims=1), Event.FAIL, LATER)
    assert failed.failures == 3
    rerun = advance(failed, Event.RERUN, LATER, due_at=LATER)
    assert (rerun.failures, rerun.reclaims, rerun.ended_at, rerun.due_at) == (0, 0, None, LATER)


def test_an_end_takes_the_deadline_away() -> None:
    pending = advance(a_run(), Event.ACCEPT, NOW, deadline_at=LATER)
    assert pending.deadline_at == LATER
    assert advance(pending, Event.SUCCEED, LATER).deadline_at is None


@given(st.text())
def test_an_error_is_kept_as_far_as_stores_can(text: str) -> None:
    kept = advance(a_run(), Event.FAIL, LATER, error=text).error
    assert len(kept) <= ERROR_LENGTH
    assert "\x00" not in kept
    assert kept.encode().decode() == kept


def test_ordinary_text_is_kept_as_it_is() -> None:
    assert storable("Grüße, 世界 🌍\n") == "Grüße, 世界 🌍\n"
    assert storable("half \ud83d \x00") == "half ? \ufffd"


def test_a_verdict_decides_where_a_run_goes() -> None:
    job = a_job(timeouts=Timeouts(callback=timedelta(minutes=5)))
    assert settle(a_run(), job, SUCCESS, LATER).state is State.SUCCESS
    assert settle(a_run(), job, Outcome(Verdict.FAIL, error="no"), LATER).error == "no"
    short = settle(a_run(callback_token="t"), job, Outcome(Verdict.WAIT), LATER, token_ttl=timedelta(seconds=1))
    assert short.deadline_at == LATER + timedelta(seconds=1)
    waiting = settle(a_run(), job, Outcome(Verdict.WAIT), LATER)
    assert (waiting.state, waiting.deadline_at) == (State.CALLBACK_PENDING, LATER + timedelta(minutes=5))


def test_a_wait_without_a_token_is_not_bounded_by_one() -> None:
    job = a_job(timeouts=Timeouts(callback=timedelta(days=365)))
    for_a_person = settle(a_run(), job, Outcome(Verdict.WAIT), LATER, token_ttl=timedelta(seconds=1))
    assert for_a_person.deadline_at == LATER + timedelta(days=365)


def test_a_step_may_be_skipped_by_its_condition_or_hand_its_work_over() -> None:
    skipped = settle(a_run(), a_job(), Outcome(Verdict.SKIP), LATER)
    assert (skipped.state, skipped.reason) == (State.SKIPPED, Reason.CONDITION)
    branched = settle(a_run(attempt=1), a_job(), Outcome(Verdict.BRANCH), LATER)
    assert (branched.state, branched.reason, branched.node_id) == (State.RUNNING, Reason.CHILDREN, None)
    assert branched.attempt == 1


@pytest.mark.parametrize("event", [Event.RERUN, Event.REOPEN])
def test_whoever_starts_again_starts_with_a_clean_slate(event: Event) -> None:
    again = advance(a_run(State.FAILED, failures=3, reclaims=2, ended_at=NOW, error="no"), event, LATER)
    assert (again.failures, again.reclaims, again.ended_at, again.error) == (0, 0, None, "")


@pytest.mark.parametrize("timed_out", [False, True])
@given(max_attempts=st.integers(1, 5), failures=st.integers(0, 6))
def test_a_run_is_tried_again_while_its_retries_last(timed_out: bool, max_attempts: int, failures: int) -> None:
    job = a_job(retry=Retry(max_attempts, initial_delay=timedelta(seconds=3)))
    moved = settle(a_run(failures=failures), job, Outcome(Verdict.RETRY, timed_out=timed_out), LATER)
    assert moved.failures == failures + 1
    if failures + 1 < max_attempts:
        assert (moved.state, moved.due_at) == (State.RETRYING, LATER + timedelta(seconds=3))
    else:
        assert moved.state is (State.TIMEOUT if timed_out else State.FAILED)


def test_a_run_whose_worker_vanished_is_tried_again_a_few_times() -> None:
    moved = reclaim(a_run(reclaims=2), OnUncertain.RETRY, 3, LATER)
    assert (moved.state, moved.reclaims, moved.due_at) == (State.RETRYING, 3, LATER)
    ended = reclaim(a_run(reclaims=3), OnUncertain.RETRY, 3, LATER)
    assert (ended.state, ended.reason) == (State.FAILED, Reason.MAX_RECLAIMS)
    doubtful = reclaim(a_run(), OnUncertain.FAIL, 3, LATER)
    assert (doubtful.state, doubtful.reason) == (State.FAILED, Reason.UNCERTAIN)


def test_a_planned_stop_does_not_count_as_a_vanished_worker() -> None:
    moved = hand_back(a_run(reclaims=1), OnUncertain.RETRY, LATER)
    assert (moved.state, moved.reclaims, moved.reason) == (State.RETRYING, 1, Reason.SHUTDOWN)
    assert hand_back(a_run(), OnUncertain.FAIL, LATER).reason is Reason.UNCERTAIN


def test_a_wait_that_took_too_long_times_out() -> None:
    moved = overdue(a_run(State.CALLBACK_PENDING), LATER)
    assert (moved.state, moved.reason) == (State.TIMEOUT, Reason.CALLBACK_TIMEOUT)


@pytest.mark.parametrize("state", State)
def test_only_a_run_that_was_sent_takes_a_callback(state: State) -> None:
    if state in (State.RUNNING, State.CALLBACK_PENDING):
        assert call_back(a_run(state), True, LATER).state is State.SUCCESS
        assert call_back(a_run(state), False, LATER).state is State.FAILED
    else:
        with pytest.raises(InvalidState):
            call_back(a_run(state), True, LATER)


@pytest.mark.parametrize("event", [Event.SUCCEED, Event.FAIL])
def test_an_end_keeps_every_value_in_its_place(event: Event) -> None:
    # No two fields hold the same, and none its default: a place that is mixed up or left out shows.
    instants = (NOW + timedelta(seconds=number) for number in range(100))
    texts = (f"text {number}" for number in range(100))
    numbers = iter(range(1000, 1100))
    made: dict[str, Any] = {
        "state": State.RUNNING,
        "reason": Reason.OPERATOR,
        "trigger": Trigger.SCHEDULE,
        "priority": Priority.HIGH,
        "input": b"input",
    }
    for field in msgspec.structs.fields(Run):
        if field.name not in made:
            kind = str(field.type)
            made[field.name] = next(instants if "datetime" in kind else texts if "str" in kind else numbers)
    run = Run(**made)
    ended = advance(run, event, NOW)
    changed = {
        "state": ended.state,
        "reason": None,
        "epoch": run.epoch + 1,
        "failures": run.failures + (event is Event.FAIL),
        "deadline_at": None,
        "node_id": None,
        "ended_at": NOW,
        "error": "",
    }
    assert ended == msgspec.structs.replace(run, **changed)
