"""Where the time of a run went."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from ksana.domain.outcomes import Verdict
from ksana.domain.runs import Attempt, Run
from ksana.domain.states import Reason, State
from ksana.domain.waterfall import waterfall

START = datetime(2030, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def a_run(**said: Any) -> Run:
    return Run(**{"id": 1, "due_at": START, "created_at": START, **said})


def tried(number: int, since: float, until: float, verdict: Verdict, **said: Any) -> Attempt:
    return Attempt(
        run_id=1, number=number, epoch=number, started_at=at(since), ended_at=at(until), verdict=verdict, **said
    )


def told(run: Run, *attempts: Attempt, now: float = 100) -> list[tuple[str, float, float]]:
    """The kinds of all segments, with the seconds between which they lie."""
    segments = waterfall(run, attempts, at(now))
    for one, following in pairwise(segments):
        assert one.to_at == following.from_at
    return [
        (one.kind.value, (one.from_at - START).total_seconds(), (one.to_at - START).total_seconds()) for one in segments
    ]


def test_a_run_that_is_not_due_has_no_story() -> None:
    assert told(a_run(due_at=at(200))) == [("wait", 0, 100)]
    assert told(a_run(created_at=at(100), due_at=at(100))) == []


def test_waiting_attempts_and_rests_follow_each_other() -> None:
    run = a_run(state=State.FAILED, attempt=2, due_at=at(8), started_at=at(1), ended_at=at(9))
    attempts = (tried(1, 1, 3, Verdict.RETRY, code=503), tried(2, 8, 9, Verdict.FAIL, timed_out=True))
    assert told(run, *attempts) == [("wait", 0, 1), ("attempt", 1, 3), ("back_off", 3, 8), ("attempt", 8, 9)]
    _, first, rest, second = waterfall(run, attempts, at(100))
    assert (first.attempt, first.outcome, first.code, first.label) == (1, "retry", 503, "attempt 1: 503")
    assert (second.outcome, second.label) == ("timeout", "attempt 2: timeout")
    assert rest.label == "rested before attempt 2"


def test_a_run_that_waits_for_its_callback_says_so() -> None:
    pending = a_run(state=State.CALLBACK_PENDING, attempt=1, started_at=START)
    sent = tried(1, 0, 1, Verdict.WAIT)
    assert told(pending, sent) == [("attempt", 0, 1), ("callback", 1, 100)]
    ended = a_run(state=State.SUCCESS, attempt=1, started_at=START, ended_at=at(30), reason=Reason.CALLBACK)
    assert told(ended, sent) == [("attempt", 0, 1), ("callback", 1, 30)]


def test_a_chain_spends_its_time_on_its_steps() -> None:
    run = a_run(state=State.RUNNING, reason=Reason.CHILDREN, attempt=1, started_at=at(1))
    assert told(run) == [("wait", 0, 1), ("steps", 1, 100)]
    stopped = a_run(kind="chain", state=State.CANCELED, attempt=1, started_at=at(1), ended_at=at(4))
    assert told(stopped) == [("wait", 0, 1), ("steps", 1, 4)]


def test_an_attempt_under_way_lasts_until_now() -> None:
    run = a_run(state=State.RUNNING, attempt=1, started_at=at(2))
    assert told(run, now=5) == [("wait", 0, 2), ("attempt", 2, 5)]
    assert waterfall(run, [], at(5))[-1].outcome == "running"
    second = a_run(state=State.RUNNING, attempt=2, started_at=at(2), due_at=at(4))
    assert told(second, tried(1, 2, 3, Verdict.RETRY), now=5) == [
        ("wait", 0, 2),
        ("attempt", 2, 3),
        ("back_off", 3, 4),
        ("attempt", 4, 5),
    ]


def test_an_attempt_that_left_no_word_has_no_outcome() -> None:
    run = a_run(state=State.CANCELED, reason=Reason.OPERATOR, attempt=1, started_at=at(2), ended_at=at(4))
    assert told(run) == [("wait", 0, 2), ("attempt", 2, 4)]
    lost = waterfall(run, [], at(9))[-1]
    assert (lost.outcome, lost.label) == (None, "attempt 1: left no word")


def test_a_run_that_rests_rests_until_now_or_until_it_is_canceled() -> None:
    first = tried(1, 0, 1, Verdict.RETRY)
    resting = a_run(state=State.RETRYING, attempt=1, started_at=START, due_at=at(50))
    assert told(resting, first, now=10) == [("attempt", 0, 1), ("back_off", 1, 10)]
    canceled = a_run(state=State.CANCELED, reason=Reason.OPERATOR, attempt=1, started_at=START, ended_at=at(6))
    assert told(canceled, first) == [("attempt", 0, 1), ("back_off", 1, 6)]


def test_a_moment_between_the_attempt_and_its_storing_is_no_rest() -> None:
    run = a_run(state=State.FAILED, attempt=1, started_at=START, ended_at=at(1.5))
    assert told(run, tried(1, 0, 1, Verdict.FAIL)) == [("attempt", 0, 1)]
