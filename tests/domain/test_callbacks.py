"""What a callback changes, by the state the run is in."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.callbacks import Progress, Word, judge, masked_headers
from ksana.domain.runs import Run
from ksana.domain.states import FINAL, Reason, State

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SUCCEEDED, FAILED = Word(succeeded=True), Word(succeeded=False, error="no")


def a_run(state: State, **said: Any) -> Run:
    values: dict[str, Any] = {
        "due_at": NOW,
        "created_at": NOW,
        "callback_token": "t" * 32,
        "epoch": 4,
        "attempt": 2,
        "deadline_at": NOW + 5 * MINUTE if state is State.CALLBACK_PENDING else None,
    }
    return Run(id=1, state=state, **(values | said))


@pytest.mark.parametrize("state", sorted(State))
@pytest.mark.parametrize("word", [SUCCEEDED, FAILED, Word(progress=0.5)])
def test_a_callback_counts_only_while_an_attempt_awaits_it(state: State, word: Word) -> None:
    """C-106, X-88, X-89."""
    judged = judge(a_run(state), word, NOW)
    counts = state in (State.RUNNING, State.CALLBACK_PENDING)
    assert bool(judged.ignored) is not counts
    assert judged.refused is (not counts and state not in FINAL)
    assert (judged.move is not None) is (counts and word.succeeded is not None)
    assert (judged.progress is not None) is (counts and word.progress is not None)


@pytest.mark.parametrize(("word", "state"), [(SUCCEEDED, State.SUCCESS), (FAILED, State.FAILED)])
def test_the_first_word_ends_the_run(word: Word, state: State) -> None:
    """C-54, C-55, X-90: a failure is final, no retry."""
    run = a_run(State.CALLBACK_PENDING)
    move = judge(run, word, NOW).move
    assert move is not None
    assert (move.epoch, move.run.state, move.run.reason) == (run.epoch, state, Reason.CALLBACK)
    assert (move.run.error, move.run.ended_at, move.frees_slot) == (word.error, NOW, True)


def test_a_run_without_a_token_takes_no_callback() -> None:
    judged = judge(a_run(State.RUNNING, callback_token=None), SUCCEEDED, NOW)
    assert (judged.move, judged.refused) == (None, True)


def test_a_last_word_may_tell_of_progress_too() -> None:
    judged = judge(a_run(State.RUNNING), Word(succeeded=True, progress=1.0, message="done"), NOW)
    assert judged.move is not None and judged.progress is not None
    assert (judged.progress.fraction, judged.progress.message) == (1.0, "done")


def test_a_message_alone_leaves_the_fraction_as_it_was() -> None:
    run = a_run(State.CALLBACK_PENDING)
    known = judge(run, Word(progress=0.4, message="a"), NOW).progress
    later = judge(run, Word(message="b"), NOW + MINUTE, known=known).progress
    assert later == Progress(run_id=1, attempt=2, fraction=0.4, message="b", reported_at=NOW + MINUTE)
    of_another_attempt = judge(a_run(State.RUNNING, attempt=3), Word(message="c"), NOW, known=known).progress
    assert of_another_attempt is not None
    assert of_another_attempt.fraction is None


@given(
    patience=st.integers(1, 100),
    ttl=st.integers(1, 100),
    extensions=st.lists(st.integers(1, 60), min_size=1, max_size=8),
)
def test_a_wait_is_put_off_as_asked_but_never_beyond_the_life_of_the_token(
    patience: int, ttl: int, extensions: list[int]
) -> None:
    """X-87: deadline = answer + min(callback timeout, token life); put off, at most answer + token life."""
    waits = min(patience, ttl) * MINUTE
    run = a_run(State.CALLBACK_PENDING, deadline_at=NOW + waits)
    known: Progress | None = None
    asked = waits
    for minutes in extensions:
        word = Word(extend=minutes * MINUTE)
        judged = judge(run, word, NOW, known=known, patience=patience * MINUTE, token_ttl=ttl * MINUTE)
        known = judged.progress
        run = judged.move.run if judged.move is not None else run
        asked += minutes * MINUTE
        assert run.deadline_at == NOW + min(asked, ttl * MINUTE)
        assert run.state is State.CALLBACK_PENDING


def test_secrets_among_the_headers_are_masked() -> None:
    headers = [("X-Api-Key", "k"), ("Authorization", "a"), ("X-Callback-Token", "t"), ("X-Hub-Signature-256", "s")]
    assert set(masked_headers(headers).values()) == {"***"}
    assert masked_headers([("X-Trace", "abc")]) == {"x-trace": "abc"}
