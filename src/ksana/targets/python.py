"""Calls a Python function: async ones in the loop, others in a thread, each bounded by the attempt's timeout.

What a function returns is the result, as JSON; what it raises is an error to retry, and Retry and Fail say
more exactly what is meant.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping
from typing import Any

from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.outcomes import AttemptContext, Outcome, Verdict
from ksana.domain.ports import Begun
from ksana.targets.alarms import Alarms
from ksana.targets.calls import Call, bounded, cancelled
from ksana.targets.checks import not_json, refuse, unknown_fields
from ksana.targets.functions import Function, Functions
from ksana.targets.loop_calls import LoopCalls
from ksana.targets.services import TargetServices
from ksana.targets.thread_calls import ThreadCalls

MAX_ABANDONED_THREADS = 64

__all__ = ["PythonTarget", "build", "cancelled"]

_FIELDS = ("function", "args", "kwargs")


class PythonTarget:
    """Config: `function` (a registered name or `package.module:function`), `args`, `kwargs`.

    A function gets the AttemptContext in a parameter annotated so, or in a bare one named `run` or `context`.
    """

    kind = "python"
    reads_kept = True
    """Functions may ask what other steps handed on, and what their last attempt has saved."""

    def __init__(
        self,
        functions: Mapping[str, Callable[..., Any]],
        *,
        importable: tuple[str, ...] = (),
        threads: int = 4,
        lazy: bool = False,
        max_result_bytes: int = 16 * 1024 * 1024,
        max_abandoned: int = MAX_ABANDONED_THREADS,
    ) -> None:
        """`lazy` accepts configs whose function only other nodes can find."""
        self._functions = Functions(functions, importable)
        self._lazy = lazy
        self._max_result_bytes = max_result_bytes
        self._thread_calls = ThreadCalls(threads, max_abandoned)
        self._loop_calls: LoopCalls | None = None

    @property
    def abandoned(self) -> int:
        """How many functions go on in a thread although their attempt was given up."""
        return self._thread_calls.threads.abandoned

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        problems = unknown_fields(self.kind, config, _FIELDS)
        name, args, kwargs = config.get("function"), config.get("args", []), config.get("kwargs", {})
        if not isinstance(args, list | tuple):
            problems.append(Problem("args", "must be a list"))
        if not isinstance(kwargs, dict) or not all(isinstance(key, str) for key in kwargs):
            problems.append(Problem("kwargs", "must be a map of parameter names to values"))
        problems += not_json("args", args) + not_json("kwargs", kwargs)
        if not isinstance(name, str):
            problems.append(Problem("function", "is missing; name a registered function, or package.module:function"))
        else:
            try:
                self._functions.refuse_malformed(name)
                function = None if self._lazy else self._functions.find(name)
            except InvalidArgument as error:
                problems += error.problems
            else:
                if function is not None and not problems:
                    problems += _misfit(name, function, list(args), kwargs)
        refuse(problems)
        return {"function": name, "args": list(args), "kwargs": dict(kwargs)}

    def awaits_callback(self, config: dict[str, Any], input: Any = None) -> bool:
        return False

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        begun = self.begin(context, config, functools.partial(_settle, outcome))
        if isinstance(begun, Outcome):
            return begun
        try:
            return await outcome
        finally:
            begun.give_up()

    def begin(
        self, context: AttemptContext, config: dict[str, Any], tell: Callable[[Outcome], None]
    ) -> Begun | Outcome:
        try:
            function = self._functions.find(config["function"])
        except InvalidArgument as error:
            # Worth another try: in a rolling deployment the node that takes it next may have the function.
            return Outcome(Verdict.RETRY, error=bounded(error.problems[0].message))
        call = Call(function, context, config, self._max_result_bytes)
        here = self._here()
        return here.begin(call, tell) if function.is_async else self._thread_calls.begin(call, tell, here.alarms)

    async def close(self) -> None:
        self._thread_calls.threads.close()
        if self._loop_calls is not None:
            await self._loop_calls.close()

    def _here(self) -> LoopCalls:
        loop, calls = asyncio.get_running_loop(), self._loop_calls
        if calls is None or calls.alarms.loop is not loop:
            calls = self._loop_calls = LoopCalls(Alarms(loop))
        return calls


def build(services: TargetServices) -> PythonTarget:
    return PythonTarget(
        services.functions,
        importable=services.python_importable,
        threads=services.python_threads,
        lazy=services.python_lazy,
        max_result_bytes=services.max_response_bytes,
    )


def _settle(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)


def _misfit(name: str, function: Function, args: list[Any], kwargs: dict[str, Any]) -> list[Problem]:
    if function.signature is None:
        return []
    try:
        args, kwargs = function.arguments(args, kwargs, None)
        function.signature.bind(*args, **kwargs)
    except TypeError as error:
        return [Problem("args", f"do not fit {name}{function.signature}: {error}")]
    return []
