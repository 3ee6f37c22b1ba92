"""Which moves somebody is told of, and what becomes of an alert."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from ksana.domain.alerts import ALERTING, RETRY, Alert, AlertState, alerts_of, settled
from ksana.domain.moves import Move
from ksana.domain.runs import Run
from ksana.domain.states import State

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def a_move(state: State) -> Move:
    return Move(3, Run(id=7, state=state, epoch=4, due_at=NOW, created_at=NOW, error="x" * 10))


@pytest.mark.parametrize("state", sorted(State))
def test_only_failures_are_told_of_once_to_each_hook(state: State) -> None:
    """C-14, C-143: FAILED and TIMEOUT (and dead letters), not CANCELED."""
    alerts = alerts_of([(a_move(state), None)], ["a", "b"], NOW)
    told = state in (State.FAILED, State.TIMEOUT, State.DEAD_LETTER)
    assert (state in ALERTING) is told
    assert [(one.run_id, one.epoch, one.hook) for one in alerts] == ([(7, 4, "a"), (7, 4, "b")] if told else [])


def test_a_run_without_a_job_can_be_told_of() -> None:
    [alert] = alerts_of([(a_move(State.DEAD_LETTER), None)], ["a"], NOW)
    told = json.loads(alert.body)
    assert (told["event"], told["job"], told["run"]["started_at"]) == ("run.dead_letter", None, None)


def an_alert(attempts: int) -> Alert:
    return Alert(run_id=7, epoch=4, hook="a", body=b"{}", created_at=NOW, due_at=NOW, attempts=attempts)


def test_a_delivered_alert_is_done() -> None:
    done = settled(an_alert(3), "", NOW)
    assert (done.state, done.due_at, done.ended_at, done.error) == (AlertState.DELIVERED, None, NOW, "")


def test_an_alert_that_was_not_taken_rests_longer_each_time_and_is_given_up_in_the_end() -> None:
    rests = []
    for attempts in range(1, RETRY.max_attempts):
        again = settled(an_alert(attempts), "busy", NOW)
        assert (again.state, again.error) == (AlertState.PENDING, "busy")
        assert again.due_at is not None
        rests.append(again.due_at - NOW)
    assert (rests[0], rests[1], max(rests)) == (timedelta(seconds=5), timedelta(seconds=10), timedelta(hours=1))
    last = settled(an_alert(RETRY.max_attempts), "y" * 5000, NOW)
    assert (last.state, last.due_at, last.ended_at, len(last.error)) == (AlertState.FAILED, None, NOW, 1024)
