from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from ksana.domain.errors import InvalidArgument
from ksana.domain.outcomes import SUCCESS, AttemptContext, Outcome, Verdict
from ksana.targets.python import PythonTarget, cancelled
from ksana.targets.signals import Fail, Retry
from tests.targets.contexts import TINY, attempt_context
from tests.targets.probe import Probe

SAMPLE = "tests.targets.sample_jobs"
_DEADLINE = 20.0

customer: contextvars.ContextVar[str] = contextvars.ContextVar("customer", default="nobody")


async def outcome_of(function: Callable[..., Any], *args: Any, timeout: timedelta | None = None) -> Outcome:
    target = PythonTarget({"it": function}, threads=2)
    context = attempt_context() if timeout is None else attempt_context(timeout=timeout)
    try:
        config = target.check({"function": "it", "args": list(args)})
        return await asyncio.wait_for(target.execute(context, config), _DEADLINE)
    finally:
        await target.close()


def also_async(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


both_ways = pytest.mark.parametrize("way", [lambda function: function, also_async], ids=["thread", "async"])
Way = Callable[[Callable[..., Any]], Callable[..., Any]]


def refused(target: PythonTarget, config: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidArgument) as error:
        target.check(config)
    return [(problem.field.removeprefix("target."), problem.message) for problem in error.value.problems]


@both_ways
async def test_what_a_function_returns_is_the_result_as_json(way: Way) -> None:
    def report() -> dict[str, Any]:
        return {"rows": 3, "at": datetime(2026, 1, 5, tzinfo=UTC), "names": ("a", "b")}

    outcome = await outcome_of(way(report))
    assert outcome.verdict is Verdict.SUCCESS
    assert outcome.result == b'{"rows":3,"at":"2026-01-05T00:00:00Z","names":["a","b"]}'


@both_ways
async def test_a_function_that_returns_nothing_has_no_result(way: Way) -> None:
    assert await outcome_of(way(lambda: None)) is SUCCESS


@both_ways
async def test_a_result_that_json_cannot_hold_fails_for_good(way: Way) -> None:
    outcome = await outcome_of(way(lambda: {"connection": threading.Lock()}))
    assert (outcome.verdict, outcome.result) == (Verdict.FAIL, None)
    assert "it did its work but returned dict, which JSON cannot hold" in outcome.error


async def test_a_result_beyond_the_limit_fails_for_good() -> None:
    target = PythonTarget({"it": lambda: "x" * 100}, max_result_bytes=64)
    outcome = await target.execute(attempt_context(), {"function": "it"})
    assert outcome.verdict is Verdict.FAIL
    assert "102 bytes of JSON; at most 64 are kept" in outcome.error
    await target.close()


async def test_a_plain_function_that_returns_an_awaitable_is_told_to_be_async() -> None:
    async def work() -> None: ...

    outcome = await outcome_of(lambda: work())
    assert outcome.verdict is Verdict.FAIL
    assert "declare it with async def" in outcome.error


@both_ways
async def test_an_exception_is_worth_a_retry_and_keeps_its_traceback(way: Way) -> None:
    def look_up_the_row() -> None:
        raise LookupError("no row 7")

    outcome = await outcome_of(way(look_up_the_row))
    assert (outcome.verdict, outcome.error) == (Verdict.RETRY, "LookupError: no row 7")
    assert outcome.exchange is not None
    trace = outcome.exchange.response_body.decode()
    assert "in look_up_the_row" in trace
    assert trace.endswith("LookupError: no row 7\n")
    assert "calls.py" not in trace
    assert (outcome.exchange.request_line, outcome.exchange.truncated) == ("it", False)


@both_ways
async def test_a_huge_error_is_cut_and_the_end_of_its_traceback_kept(way: Way) -> None:
    def complain() -> None:
        raise ValueError("x" * 100_000 + "the end")

    outcome = await outcome_of(way(complain))
    assert len(outcome.error) == 1024
    assert outcome.error.startswith("ValueError: xxx")
    assert outcome.exchange is not None
    assert outcome.exchange.truncated
    assert len(outcome.exchange.response_body) == 16 * 1024
    assert outcome.exchange.response_body.endswith(b"the end\n")


@both_ways
async def test_an_error_no_database_would_take_is_made_harmless(way: Way) -> None:
    def complain() -> None:
        raise ValueError("nul \0 and surrogate \udc80")

    outcome = await outcome_of(way(complain))
    assert outcome.error == r"ValueError: nul \x00 and surrogate \udc80"


async def test_an_exception_that_cannot_be_shown_is_still_reported() -> None:
    class ShyError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def complain() -> None:
        raise ShyError

    outcome = await outcome_of(complain)
    assert outcome.error == "ShyError: (its message cannot be shown)"


@both_ways
@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), StopIteration()])
async def test_no_exception_reaches_the_server(way: Way, error: BaseException) -> None:
    def leave() -> None:
        raise error

    outcome = await outcome_of(way(leave))
    assert outcome.verdict is Verdict.RETRY
    assert outcome.error


@both_ways
async def test_retry_says_when(way: Way) -> None:
    def later() -> None:
        raise Retry(timedelta(seconds=90), "the printer is busy")

    outcome = await outcome_of(way(later))
    assert (outcome.verdict, outcome.retry_after) == (Verdict.RETRY, timedelta(seconds=90))
    assert outcome.error == "the printer is busy"


@both_ways
async def test_retry_without_a_delay_leaves_it_to_the_policy(way: Way) -> None:
    def later() -> None:
        raise Retry

    outcome = await outcome_of(way(later))
    assert (outcome.verdict, outcome.retry_after) == (Verdict.RETRY, None)
    assert outcome.error


@pytest.mark.parametrize("delay", [timedelta(seconds=-1), 30])
def test_retry_refuses_what_is_no_delay(delay: Any) -> None:
    with pytest.raises(ValueError, match="timedelta of zero or more"):
        Retry(delay)


@both_ways
async def test_fail_is_final_and_keeps_its_cause(way: Way) -> None:
    customers: dict[str, int] = {}

    def give_up() -> None:
        try:
            customers["gone"]
        except KeyError as error:
            raise Fail("no such customer") from error

    outcome = await outcome_of(way(give_up))
    assert (outcome.verdict, outcome.error) == (Verdict.FAIL, "no such customer")
    assert outcome.exchange is not None
    assert b"KeyError: 'gone'" in outcome.exchange.response_body


@both_ways
async def test_the_function_gets_its_arguments_and_the_context(way: Way) -> None:
    def tell(run: AttemptContext, day: str) -> list[Any]:
        return [run.attempt, run.input, day]

    # functools.wraps keeps the signature, so the async twin asks for the same.
    target = PythonTarget({"tell": way(tell)})
    config = target.check({"function": "tell", "kwargs": {"day": "monday"}})
    outcome = await target.execute(attempt_context(attempt=2, input={"by": "hand"}), config)
    assert msgspec.json.decode(outcome.result or b"") == [2, {"by": "hand"}, "monday"]
    await target.close()


@both_ways
async def test_a_function_cannot_change_the_stored_config(way: Way) -> None:
    target = PythonTarget({"it": way(lambda items: items.append(1))})
    config = target.check({"function": "it", "args": [[]]})
    await target.execute(attempt_context(), config)
    assert config["args"] == [[]]
    await target.close()


@both_ways
async def test_nothing_within_the_stored_arguments_can_be_changed(way: Way) -> None:
    def spoil(deep: dict[str, Any], *, pair: tuple[list[int], int]) -> None:
        deep["rows"][0]["n"] = 2
        deep["rows"].append(None)
        pair[0].clear()

    target = PythonTarget({"it": way(spoil)})
    config = {"function": "it", "args": [{"rows": [{"n": 1}]}], "kwargs": {"pair": ([1], 2)}}
    assert await target.execute(attempt_context(), config) is SUCCESS
    assert config == {"function": "it", "args": [{"rows": [{"n": 1}]}], "kwargs": {"pair": ([1], 2)}}
    await target.close()


@both_ways
async def test_context_variables_reach_the_function_and_its_changes_stay_there(way: Way) -> None:
    def swap() -> str:
        found = customer.get()
        customer.set("changed")
        return found

    customer.set("ada")
    outcome = await outcome_of(way(swap))
    assert outcome.result == b'"ada"'
    assert customer.get() == "ada"


async def test_plain_functions_run_beside_the_loop_and_async_ones_in_it() -> None:
    async def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    here = threading.current_thread() is threading.main_thread()
    assert (await outcome_of(where)).result == msgspec.json.encode(here)
    assert (await outcome_of(lambda: threading.current_thread() is threading.main_thread())).result == b"false"


async def test_a_function_of_an_allowed_module_is_called() -> None:
    target = PythonTarget({}, importable=("tests.targets",))
    for name, expected in [("add", b"5"), ("add_async", b"5"), ("add_one", b"3")]:
        config = {
            "function": f"{SAMPLE}:{name}",
            "args": [2],
            "kwargs": {} if name == "add_one" else {"b": 3},
        }
        if name == "add_one":
            config["args"] = [2]
        outcome = await target.execute(attempt_context(), target.check(config))
        assert outcome.result == expected
    await target.close()


async def test_a_function_that_is_gone_is_worth_a_retry() -> None:
    outcome = await PythonTarget({}).execute(attempt_context(), {"function": "gone"})
    assert outcome.verdict is Verdict.RETRY
    assert "no function is registered as 'gone'" in outcome.error


async def test_a_cancellation_the_function_made_itself_is_a_failure() -> None:
    async def cancel_myself() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    outcome = await outcome_of(cancel_myself)
    assert (outcome.verdict, outcome.error) == (Verdict.RETRY, "CancelledError")


async def test_a_timeout_of_the_functions_own_is_not_the_attempts() -> None:
    async def be_impatient() -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    outcome = await outcome_of(be_impatient)
    assert (outcome.verdict, outcome.timed_out, outcome.error) == (Verdict.RETRY, False, "TimeoutError")


async def test_an_async_function_is_cancelled_at_the_timeout_and_may_tidy_up() -> None:
    events: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            events.append("tidied")

    outcome = await outcome_of(hang, timeout=TINY)
    assert (outcome.timed_out, outcome.error) == (True, "timed out after 30ms")
    assert events == ["tidied"]


async def test_the_answer_of_an_async_function_that_shrugs_off_its_timeout_is_discarded() -> None:
    async def shrug() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "late"

    outcome = await outcome_of(shrug, timeout=TINY)
    assert (outcome.timed_out, outcome.result) == (True, None)


async def test_an_async_function_that_will_not_stop_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ksana.targets.loop_calls.CANCEL_GRACE", TINY)
    enough = asyncio.Event()
    probe = Probe()

    async def hold_on() -> None:
        with probe:
            while not enough.is_set():
                try:
                    await enough.wait()
                except asyncio.CancelledError:
                    continue

    outcome = await outcome_of(hold_on, timeout=TINY)
    assert outcome.timed_out
    enough.set()
    await probe.settles_at(0)


async def test_a_plain_function_is_told_that_it_was_given_up() -> None:
    probe = Probe()
    answers: list[bool] = []

    def work() -> None:
        answers.append(cancelled())
        with probe:
            answers.append(cancelled(within=timedelta(seconds=_DEADLINE)))

    target = PythonTarget({"it": work})
    attempt = asyncio.create_task(target.execute(attempt_context(), {"function": "it"}))
    await probe.settles_at(1)
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    await probe.settles_at(0)
    assert answers == [False, True]
    await target.close()


def test_outside_an_attempt_nothing_is_cancelled() -> None:
    assert not cancelled()


async def test_hung_functions_do_not_starve_the_others_and_are_counted() -> None:
    probe = Probe()
    release = threading.Event()

    def hang() -> None:
        with probe:
            release.wait(_DEADLINE)

    target = PythonTarget({"hang": hang, "work": lambda: "done"}, threads=1, max_abandoned=2)
    for expected in (1, 2):
        hung = asyncio.create_task(target.execute(attempt_context(), {"function": "hang"}))
        await probe.settles_at(expected)
        if expected == 1:
            waiting = asyncio.create_task(target.execute(attempt_context(), {"function": "work"}))
            await asyncio.sleep(0)
        hung.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hung
        assert (await asyncio.wait_for(waiting, _DEADLINE)).result == b'"done"'
    assert target.abandoned == 2
    refused = await target.execute(attempt_context(), {"function": "work"})
    assert refused.verdict is Verdict.RETRY
    assert "2 functions outlived their attempts" in refused.error
    release.set()
    await probe.settles_at(0)
    await target.close()


async def test_waiting_for_a_thread_counts_against_the_timeout_and_says_so() -> None:
    probe = Probe()
    release = threading.Event()

    def hold() -> None:
        with probe:
            release.wait(_DEADLINE)

    target = PythonTarget({"hold": hold, "work": lambda: "done"}, threads=1)
    holding = asyncio.create_task(target.execute(attempt_context(), {"function": "hold"}))
    await probe.settles_at(1)
    outcome = await target.execute(attempt_context(timeout=TINY), {"function": "work"})
    assert outcome.timed_out
    assert "no thread was free within 30ms: all 1 are busy" in outcome.error
    release.set()
    assert (await asyncio.wait_for(holding, _DEADLINE)) is SUCCESS
    await target.close()


async def test_a_closed_target_says_so() -> None:
    target = PythonTarget({"it": print})
    await target.close()
    outcome = await target.execute(attempt_context(), {"function": "it"})
    assert outcome.verdict is Verdict.RETRY
    assert "closed" in outcome.error


def test_check_fills_in_the_defaults() -> None:
    assert PythonTarget({"it": print}).check({"function": "it"}) == {
        "function": "it",
        "args": [],
        "kwargs": {},
    }


def test_check_names_every_field_at_fault() -> None:
    problems = refused(PythonTarget({}), {"args": "abc", "kwargs": [1], "functoin": "it"})
    assert {field for field, _ in problems} == {"function", "args", "kwargs", "functoin"}
    assert any("did you mean 'function'?" in message for _, message in problems)


def test_check_refuses_arguments_that_json_cannot_hold() -> None:
    [(field, message)] = refused(PythonTarget({"it": print}), {"function": "it", "args": [object()]})
    assert field == "args"
    assert "JSON" in message


@pytest.mark.parametrize(
    ("args", "kwargs", "complaint"),
    [
        ([], {}, "missing a required argument: 'a'"),
        ([1, 2, 3], {}, "too many positional arguments"),
        ([1], {"c": 3}, "unexpected keyword argument 'c'"),
    ],
)
def test_check_refuses_arguments_that_do_not_fit(args: list[Any], kwargs: dict[str, Any], complaint: str) -> None:
    def add(a: int, b: int = 0) -> int:
        return a + b

    config = {"function": "add", "args": args, "kwargs": kwargs}
    [(field, message)] = refused(PythonTarget({"add": add}), config)
    assert field == "args"
    assert complaint in message
    assert "add(a: 'int', b: 'int' = 0)" in message


def test_a_lazy_target_accepts_functions_it_cannot_find_but_not_nonsense() -> None:
    target = PythonTarget({}, lazy=True)
    assert target.check({"function": "elsewhere.jobs:work"})["function"] == "elsewhere.jobs:work"
    assert target.check({"function": "registered elsewhere"})["args"] == []
    assert [field for field, _ in refused(target, {"function": "a:b:c"})] == ["function"]
