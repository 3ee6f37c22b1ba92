from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.policies import Misfire, MisfireRule, Overlap, OverlapRule, Priority, Retry, RetryStrategy

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def test_one_attempt_is_no_retry() -> None:
    assert not Retry().allows_another(1)
    assert [Retry(3).allows_another(failures) for failures in (1, 2, 3)] == [True, True, False]


def test_a_fixed_rest_stays_the_same() -> None:
    retry = Retry(5, initial_delay=7 * SECOND)
    assert {retry.delay_after(failures) for failures in range(1, 20)} == {7 * SECOND}


def test_an_exponential_rest_grows_to_its_cap() -> None:
    retry = Retry(9, RetryStrategy.EXPONENTIAL, SECOND, 3.0, 20 * SECOND)
    assert [retry.delay_after(n) / SECOND for n in range(1, 6)] == [1, 3, 9, 20, 20]


@given(st.integers(1, 10_000), st.floats(1, 100), st.integers(0, 2_592_000))
def test_no_rest_is_too_long_to_reckon_with(failures: int, multiplier: float, seconds: int) -> None:
    retry = Retry(10, RetryStrategy.EXPONENTIAL, seconds * SECOND, multiplier, HOUR)
    assert timedelta(0) <= retry.delay_after(failures) <= HOUR


@given(st.integers(-100, 100_000))
def test_a_target_can_lengthen_the_rest_but_not_shorten_it_or_pass_the_cap(seconds: int) -> None:
    retry = Retry(10, initial_delay=10 * SECOND, max_delay=HOUR)
    delay = retry.delay_after(1, seconds * SECOND)
    assert delay == max(10 * SECOND, min(seconds * SECOND, HOUR))


@pytest.mark.parametrize(
    ("misfire", "keeps"),
    [(Misfire(MisfireRule.SKIP, 9), 0), (Misfire(MisfireRule.FIRE_ONCE, 9), 1), (Misfire(MisfireRule.CATCH_UP, 9), 9)],
)
def test_a_misfire_rule_keeps_so_many_of_the_newest(misfire: Misfire, keeps: int) -> None:
    assert misfire.keeps == keeps


def test_only_parallel_runs_have_no_limit() -> None:
    limits = {rule: Overlap(rule, 4).limit for rule in OverlapRule}
    assert limits == {OverlapRule.QUEUE: 4, OverlapRule.SKIP: 4, OverlapRule.PARALLEL: None}


def test_priorities_can_be_compared() -> None:
    assert Priority.HIGH > Priority.NORMAL > Priority.LOW
