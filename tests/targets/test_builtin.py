from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest

from ksana.domain.errors import InvalidArgument
from ksana.domain.outcomes import SUCCESS, Outcome, Verdict
from ksana.targets.builtin import EchoTarget, FailTarget, NoopTarget, PrintTarget, SleepTarget, WaitTarget
from tests.targets.contexts import attempt_context


class Slept:
    """A clock that notes how long it was asked to sleep, and does not."""

    def __init__(self) -> None:
        self.spans: list[timedelta] = []

    async def sleep(self, span: timedelta) -> None:
        self.spans.append(span)


async def test_noop_answers_with_the_shared_constant() -> None:
    assert await NoopTarget().execute(attempt_context(), {}) is SUCCESS


@pytest.mark.parametrize("target", [NoopTarget(), PrintTarget()])
def test_noop_and_print_take_anything_that_can_be_stored(target: NoopTarget | PrintTarget) -> None:
    config = {"anything": {"goes": [1, None]}}
    assert target.check(config) is config
    with pytest.raises(InvalidArgument, match=r"target\.x: holds what JSON cannot"):
        target.check({"x": object()})
    with pytest.raises(InvalidArgument, match="is a map of fields"):
        target.check([1])  # type: ignore[arg-type]


async def test_print_hands_its_config_on_and_writes_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        outcome = await PrintTarget().execute(attempt_context(), {"text": "two\nlines", "long": "x" * 5000})
    assert outcome.verdict is Verdict.SUCCESS
    assert outcome.result == b'{"text":"two\\nlines","long":"' + b"x" * 5000 + b'"}'
    [record] = caplog.records
    assert record.message.startswith('run 7, report: {"text":"two\\nlines"')
    assert "\n" not in record.message
    assert len(record.message) < 2100


async def test_wait_waits_for_somebody_and_says_what_for(caplog: pytest.LogCaptureFixture) -> None:
    target = WaitTarget()
    config = target.check({"message": "ship it?"})
    with caplog.at_level(logging.INFO):
        assert await target.execute(attempt_context(), config) == Outcome(Verdict.WAIT)
    assert "ship it?" in caplog.text
    assert target.check({}) == {"message": ""}
    assert target.awaits_callback(config) is False
    with pytest.raises(InvalidArgument) as refused:
        target.check({"message": 3, "until": "monday"})
    assert {problem.field for problem in refused.value.problems} == {"target.message", "target.until"}


async def test_echo_says_its_message() -> None:
    target = EchoTarget()
    outcome = await target.execute(attempt_context(input="ignored"), target.check({"message": {"a": 1}}))
    assert outcome.result == b'{"a":1}'


async def test_echo_without_a_message_says_the_input_of_the_run() -> None:
    target = EchoTarget()
    outcome = await target.execute(attempt_context(input=[1, "two"]), target.check({}))
    assert outcome.result == b'[1,"two"]'


async def test_echo_with_nothing_to_say_has_no_result() -> None:
    target = EchoTarget()
    assert await target.execute(attempt_context(), target.check({})) is SUCCESS


async def test_echo_fails_for_good_on_an_input_that_json_cannot_hold() -> None:
    outcome = await EchoTarget().execute(attempt_context(input=object()), {"message": None})
    assert outcome.verdict is Verdict.FAIL
    assert "JSON" in outcome.error


def test_echo_refuses_a_message_that_json_cannot_hold() -> None:
    with pytest.raises(InvalidArgument, match=r"target\.message: holds what JSON cannot"):
        EchoTarget().check({"message": object()})


async def test_sleep_sleeps_on_the_clock_it_was_given() -> None:
    clock = Slept()
    target = SleepTarget(clock.sleep)
    outcome = await target.execute(attempt_context(timeout=timedelta(minutes=2)), target.check({"for": "1m30s"}))
    assert clock.spans == [timedelta(seconds=90)]
    assert outcome is SUCCESS


async def test_sleep_stops_at_the_timeout_and_says_so() -> None:
    clock = Slept()
    target = SleepTarget(clock.sleep)
    outcome = await target.execute(attempt_context(timeout=timedelta(seconds=2)), target.check({"for": "1h"}))
    assert clock.spans == [timedelta(seconds=2)]
    assert (outcome.verdict, outcome.timed_out) == (Verdict.RETRY, True)
    assert outcome.error == "timed out after 2s"


async def test_a_sleep_exactly_as_long_as_the_timeout_succeeds() -> None:
    target = SleepTarget(Slept().sleep)
    assert await target.execute(attempt_context(timeout=timedelta(seconds=2)), {"for": "2s"}) is SUCCESS


@pytest.mark.parametrize("config", [{}, {"for": 5}, {"for": "5"}, {"for": "-1s"}, {"for": None}])
def test_sleep_refuses_what_is_no_duration(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as refused:
        SleepTarget(Slept().sleep).check(config)
    assert [problem.field for problem in refused.value.problems] == ["target.for"]


async def test_fail_fails_until_the_attempts_are_used_up() -> None:
    target = FailTarget()
    config = target.check({"message": "not yet", "times": 2})
    outcomes = [await target.execute(attempt_context(attempt=n), config) for n in (1, 2, 3)]
    assert [outcome.verdict for outcome in outcomes] == [Verdict.RETRY, Verdict.RETRY, Verdict.SUCCESS]
    assert outcomes[0].error == "not yet"


async def test_fail_without_retry_fails_for_good() -> None:
    target = FailTarget()
    outcome = await target.execute(attempt_context(), target.check({"retry": False}))
    assert outcome.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"message": 3}, "message"),
        ({"retry": "no"}, "retry"),
        ({"times": True}, "times"),
        ({"times": -1}, "times"),
        ({"times": 1.5}, "times"),
    ],
)
def test_fail_refuses_fields_of_the_wrong_type(config: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        FailTarget().check(config)
    assert [problem.field for problem in refused.value.problems] == [f"target.{field}"]


def test_a_misspelt_field_is_recognised() -> None:
    with pytest.raises(InvalidArgument, match="did you mean 'message'"):
        FailTarget().check({"mesage": "oh"})
