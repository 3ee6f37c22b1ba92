"""What the engine relies on in every target, asked of each of them."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec
import pytest

from ksana.domain.errors import InvalidArgument
from ksana.domain.outcomes import Verdict
from tests.targets.contexts import TINY, attempt_context
from tests.targets.specimens import CASES, Case, Specimen

_T = TypeVar("_T")


def cases(having: str) -> pytest.MarkDecorator:
    chosen = [case for case in CASES if having in case.has]
    return pytest.mark.parametrize("case", chosen, ids=[case.kind for case in chosen])


async def in_time(work: Coroutine[Any, Any, _T]) -> _T:
    """A target that hangs for good fails its test instead of stopping all of them."""
    return await asyncio.wait_for(work, 20)


@cases("fields")
async def test_check_names_every_unknown_field(case: Case) -> None:
    async with case.open() as specimen:
        with pytest.raises(InvalidArgument) as refused:
            specimen.target.check({**(specimen.succeeds or {}), "colour": "red", "shape": 3})
        assert {"target.colour", "target.shape"} == {problem.field for problem in refused.value.problems}
        assert all(problem.message for problem in refused.value.problems)


@cases("succeeds")
async def test_a_checked_config_stays_as_it_is_when_stored_and_checked_again(case: Case) -> None:
    async with case.open() as specimen:
        for config in [specimen.succeeds, specimen.hangs, *specimen.fails]:
            if config is not None:
                before = copy.deepcopy(config)
                checked = specimen.target.check(config)
                assert config == before, "check must not change what it is given"
                stored = msgspec.json.decode(msgspec.json.encode(checked))
                assert stored == checked
                assert specimen.target.check(stored) == checked


@cases("succeeds")
async def test_a_good_config_succeeds(case: Case) -> None:
    async with case.open() as specimen:
        config = specimen.target.check(specimen.succeeds or {})
        outcome = await in_time(specimen.target.execute(attempt_context(), config))
        assert outcome.verdict is Verdict.SUCCESS
        assert (outcome.error, outcome.timed_out) == ("", False)
        assert specimen.target.awaits_callback(config) is False


async def test_what_a_target_foretells_is_what_it_answers() -> None:
    foretold = 0
    for case in CASES:
        async with case.open() as specimen:
            foretell = getattr(specimen.target, "foretell", lambda config: None)
            for config in [one for one in (specimen.succeeds, *specimen.fails) if one is not None]:
                checked = specimen.target.check(config)
                if (outcome := foretell(checked)) is None:
                    continue
                assert outcome == await in_time(specimen.target.execute(attempt_context(), checked)), config
                foretold += 1
    assert foretold >= 3


@cases("fails")
async def test_a_failure_is_an_outcome_that_says_why_and_never_an_exception(case: Case) -> None:
    async with case.open() as specimen:
        for failing in specimen.fails:
            config = specimen.target.check(failing)
            outcome = await in_time(specimen.target.execute(attempt_context(), config))
            assert outcome.verdict in (Verdict.RETRY, Verdict.FAIL), failing
            assert 0 < len(outcome.error) <= 1024, failing
            assert not outcome.timed_out, failing


@cases("fails")
async def test_a_target_goes_on_working_after_failures(case: Case) -> None:
    async with case.open() as specimen:
        for failing in specimen.fails:
            await in_time(specimen.target.execute(attempt_context(), specimen.target.check(failing)))
        config = specimen.target.check(specimen.succeeds or {})
        outcome = await in_time(specimen.target.execute(attempt_context(), config))
        assert outcome.verdict is Verdict.SUCCESS


@cases("hangs")
async def test_an_attempt_that_hangs_times_out_and_may_be_tried_again(case: Case) -> None:
    async with case.open() as specimen:
        config = specimen.target.check(specimen.hangs or {})
        outcome = await in_time(specimen.target.execute(attempt_context(timeout=TINY), config))
        assert outcome.verdict is Verdict.RETRY
        assert outcome.timed_out
        assert outcome.error
        await specimen.settles_at(0)


@cases("hangs")
async def test_cancelling_an_attempt_is_passed_on(case: Case) -> None:
    async with case.open() as specimen:
        await _cancel_one_under_way(specimen)


@cases("stops")
async def test_a_cancelled_attempt_leaves_nothing_running(case: Case) -> None:
    async with case.open() as specimen:
        await _cancel_one_under_way(specimen)
        await specimen.settles_at(0)


@cases("hangs")
async def test_attempts_that_hang_do_not_keep_others_from_working(case: Case) -> None:
    async with case.open() as specimen:
        target = specimen.target
        hanging, good = target.check(specimen.hangs or {}), target.check(specimen.succeeds or {})
        lost = await in_time(_all([target.execute(attempt_context(timeout=TINY), hanging) for _ in range(100)]))
        assert all(outcome.timed_out for outcome in lost)
        await specimen.settles_at(0)
        outcome = await in_time(target.execute(attempt_context(), good))
        assert outcome.verdict is Verdict.SUCCESS


@cases("seen")
async def test_the_callee_is_told_the_attempt_and_its_fence(case: Case) -> None:
    async with case.open() as specimen:
        config = specimen.target.check(specimen.succeeds or {})
        await in_time(specimen.target.execute(attempt_context(attempt=1, fence=4), config))
        await in_time(specimen.target.execute(attempt_context(attempt=2, fence=9), config))
        assert specimen.seen() == [(1, 4), (2, 9)]


@cases("succeeds")
async def test_a_hundred_attempts_at_once_all_succeed(case: Case) -> None:
    async with case.open() as specimen:
        config = specimen.target.check(specimen.succeeds or {})
        outcomes = await in_time(_all([specimen.target.execute(attempt_context(), config) for _ in range(100)]))
        assert [outcome.verdict for outcome in outcomes] == [Verdict.SUCCESS] * 100


@cases("succeeds")
async def test_closing_twice_does_no_harm(case: Case) -> None:
    async with case.open() as specimen:
        await specimen.target.close()
        await specimen.target.close()


async def _cancel_one_under_way(specimen: Specimen) -> None:
    config = specimen.target.check(specimen.hangs or {})
    attempt = asyncio.create_task(specimen.target.execute(attempt_context(), config))
    await specimen.settles_at(1)
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await in_time(_result(attempt))


async def _result(task: asyncio.Task[_T]) -> _T:
    return await task


async def _all(works: list[Coroutine[Any, Any, _T]]) -> list[_T]:
    return await asyncio.gather(*works)
