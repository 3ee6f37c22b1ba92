from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from ksana.domain.errors import InvalidArgument
from ksana.domain.outcomes import AttemptContext
from ksana.targets.functions import Function, Functions
from tests.targets import sample_jobs

SAMPLE = "tests.targets.sample_jobs"


def importing(*prefixes: str) -> Functions:
    return Functions({}, prefixes)


def registered(call: Callable[..., Any]) -> Function:
    return Functions({"it": call}, ()).find("it")


def refusal(functions: Functions, name: str) -> str:
    with pytest.raises(InvalidArgument) as refused:
        functions.find(name)
    [problem] = refused.value.problems
    assert problem.field == "function"
    return problem.message


def test_nothing_can_be_imported_by_default() -> None:
    message = refusal(Functions({}, ()), "os:system")
    assert "'os' may not be imported (allowed: none)" in message
    assert "add 'os' to python_importable" in message


@pytest.mark.parametrize("prefix", ["tests", "tests.targets", SAMPLE])
def test_a_function_of_an_allowed_module_is_imported(prefix: str) -> None:
    assert importing(prefix).find(f"{SAMPLE}:add").call is sample_jobs.add


@pytest.mark.parametrize("prefix", ["test", "tests.targets.sample", "targets"])
def test_a_prefix_means_whole_names_of_modules(prefix: str) -> None:
    assert "may not be imported" in refusal(importing(prefix), f"{SAMPLE}:add")


@pytest.mark.parametrize("path", ["add_one", "Ledger.total", "greet", "Ledger"])
def test_partials_methods_instances_and_classes_count_as_functions(path: str) -> None:
    assert callable(importing("tests").find(f"{SAMPLE}:{path}").call)


@pytest.mark.parametrize("path", ["getcwd", "current_directory", "listing"])
def test_what_an_allowed_module_got_from_elsewhere_stays_out_of_reach(path: str) -> None:
    assert "which may not be imported" in refusal(importing("tests"), f"{SAMPLE}:{path}")


@pytest.mark.parametrize("path", ["os.system", "path_of_other.system", "add.__globals__", "_private", "os"])
def test_neither_modules_nor_private_names_lead_anywhere(path: str) -> None:
    assert "there is no function" in refusal(importing("tests"), f"{SAMPLE}:{path}")


def test_a_misspelt_function_of_a_module_is_recognised() -> None:
    assert "did you mean 'add_async'?" in refusal(importing("tests"), f"{SAMPLE}:add_asink")


def test_a_misspelt_registered_name_is_recognised() -> None:
    message = refusal(Functions({"send_report": print}, ()), "send_reports")
    assert "no function is registered as 'send_reports'" in message
    assert "did you mean 'send_report'?" in message


def test_a_module_that_is_not_there_is_named() -> None:
    assert "No module named 'tests.nowhere'" in refusal(importing("tests"), "tests.nowhere:add")


def test_a_module_that_exits_when_imported_ends_nothing() -> None:
    message = refusal(importing("tests"), "tests.targets.sample_broken:main")
    assert "SystemExit: not meant to be imported" in message


def test_an_attribute_that_cannot_be_read_is_a_refusal() -> None:
    assert "this attribute cannot be read" in refusal(importing("tests"), f"{SAMPLE}:explosive")


def test_what_cannot_be_called_is_no_function() -> None:
    assert "is int, not a function" in refusal(importing("tests"), f"{SAMPLE}:number")


@pytest.mark.parametrize("name", ["", ":", "a:", ":b", "a:b:c", "a b:c", "a..b:c", "a:b()", "1a:b", "../x:y"])
def test_a_malformed_name_is_refused_before_anything_is_imported(name: str) -> None:
    assert "write a registered name, or package.module:function" in refusal(importing("tests", "a"), name)


def test_a_registered_name_may_look_like_a_path() -> None:
    functions = Functions({"jobs:clean up": print}, ())
    functions.refuse_malformed("jobs:clean up")
    assert functions.find("jobs:clean up").call is print


def test_a_function_may_be_registered_late_replaced_and_taken_back() -> None:
    table: dict[str, Callable[..., Any]] = {}
    functions = Functions(table, ())
    assert "no function is registered" in refusal(functions, "it")
    table["it"] = len
    assert functions.find("it").call is len
    table["it"] = abs
    assert functions.find("it").call is abs
    del table["it"]
    assert "no function is registered" in refusal(functions, "it")


def test_generators_are_refused_because_calling_them_runs_nothing() -> None:
    def lazy() -> Iterator[int]:
        yield 1

    async def lazy_async() -> AsyncIterator[int]:
        yield 1

    for generator in (lazy, lazy_async):
        assert "is a generator" in refusal(Functions({"it": generator}, ()), "it")


def test_async_functions_are_recognised_in_every_form() -> None:
    class Caller:
        async def __call__(self) -> None: ...

        async def method(self) -> None: ...

    assert registered(sample_jobs.add_async).is_async
    assert registered(functools.partial(sample_jobs.add_async, 1)).is_async
    assert registered(Caller()).is_async
    assert registered(Caller().method).is_async
    assert not registered(sample_jobs.add).is_async
    assert not registered(Caller).is_async


def by_bare_name_run(run, day): ...  # type: ignore[no-untyped-def]
def by_bare_name_context(day, context): ...  # type: ignore[no-untyped-def]
def by_annotation(day: str, about: AttemptContext) -> None: ...
def by_keyword_only(*days: str, run: AttemptContext) -> None: ...


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "expected"),
    [
        (by_bare_name_run, ["mon"], {}, (["C", "mon"], {})),
        (by_bare_name_run, [], {"day": "mon"}, ([], {"day": "mon", "run": "C"})),
        (by_bare_name_run, [], {"run": 1, "day": "mon"}, ([], {"run": 1, "day": "mon"})),
        (by_bare_name_context, ["mon"], {}, (["mon"], {"context": "C"})),
        (by_annotation, ["mon"], {}, (["mon"], {"about": "C"})),
        (by_keyword_only, ["mon", "tue"], {}, (["mon", "tue"], {"run": "C"})),
        (sample_jobs.add, [1], {"b": 2}, ([1], {"b": 2})),
    ],
)
def test_the_context_goes_where_it_is_asked_for(
    function: Callable[..., Any],
    args: list[Any],
    kwargs: dict[str, Any],
    expected: tuple[list[Any], dict[str, Any]],
) -> None:
    assert registered(function).arguments(args, kwargs, "C") == expected


def test_a_parameter_named_run_but_annotated_otherwise_is_not_the_context() -> None:
    def count(run: int) -> int:
        return run

    assert registered(count).arguments([4], {}, "C") == ([4], {})


def test_a_function_that_hides_its_signature_can_still_be_called() -> None:
    assert registered(getattr).arguments([1, 2], {}, "C") == ([1, 2], {})
