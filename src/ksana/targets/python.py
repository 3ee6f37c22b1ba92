"""Calls a Python function: async ones in the loop, others in a thread, each bounded by the attempt's timeout.

What a function returns is the result, as JSON; what it raises is an error to retry, and Retry and Fail say
more exactly what is meant.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from ksana.domain.durations import format_duration
from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.outcomes import AttemptContext, Outcome, Verdict
from ksana.targets.alarms import Alarms
from ksana.targets.calls import Call, bounded, cancelled
from ksana.targets.checks import not_json, refuse, unknown_fields
from ksana.targets.functions import Function, Functions
from ksana.targets.services import TargetServices
from ksana.targets.threads import Exhausted, Threads

MAX_ABANDONED_THREADS = 64
# How long a coroutine may tidy up after it was cancelled before it is left to itself.
CANCEL_GRACE = timedelta(seconds=1)

__all__ = ["PythonTarget", "build", "cancelled"]

_FIELDS = ("function", "args", "kwargs")
_log = logging.getLogger(__name__)


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
        self._threads = Threads[Outcome | None](threads, max_abandoned)
        self._thread_count = threads
        self._tasks: set[asyncio.Task[Outcome]] = set()
        self._alarms: Alarms | None = None

    @property
    def abandoned(self) -> int:
        """How many functions go on in a thread although their attempt was given up."""
        return self._threads.abandoned

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
        try:
            function = self._functions.find(config["function"])
        except InvalidArgument as error:
            # Worth another try: in a rolling deployment the node that takes it next may have the function.
            return Outcome(Verdict.RETRY, error=bounded(error.problems[0].message))
        call = Call(function, context, config, self._max_result_bytes)
        return await (self._in_loop(call) if function.is_async else self._in_thread(call))

    async def close(self) -> None:
        self._threads.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=CANCEL_GRACE.total_seconds())

    def _alarms_here(self) -> Alarms:
        loop, alarms = asyncio.get_running_loop(), self._alarms
        if alarms is None or alarms.loop is not loop:
            alarms = self._alarms = Alarms(loop)
        return alarms

    async def _in_loop(self, call: Call) -> Outcome:
        alarms, seconds = self._alarms_here(), call.timeout.total_seconds()
        over: asyncio.Future[None] = alarms.loop.create_future()
        # A task of its own, because a function may cancel the task it runs in, or ignore being cancelled.
        task = alarms.loop.create_task(call.run_async())
        self._tasks.add(task)

        def end(task: asyncio.Task[Outcome]) -> None:
            self._tasks.discard(task)
            if not over.done():
                over.set_result(None)

        task.add_done_callback(end)
        alarms.set(over, seconds)
        try:
            await over
            if task.done():
                return task.result()
        finally:
            alarms.clear(over, seconds)
            if not task.done():
                call.give_up()
                task.cancel()
                await asyncio.wait((task,), timeout=CANCEL_GRACE.total_seconds())
                if not task.done():
                    _log.warning("%s ignores that it was cancelled and goes on by itself", call.name)
        return _timed_out(f"timed out after {format_duration(call.timeout)}")

    async def _in_thread(self, call: Call) -> Outcome:
        try:
            ticket = self._threads.submit(functools.partial(contextvars.copy_context().run, call.run))
        except Exhausted:
            return Outcome(
                Verdict.RETRY,
                error=f"{self.abandoned} functions outlived their attempts and hold a thread each: have "
                "them ask ksana.targets.python.cancelled() now and then, and restart to be rid of these",
            )
        except RuntimeError as error:
            return Outcome(Verdict.RETRY, error=f"no thread to run the function in: {error}")
        alarms, seconds = self._alarms_here(), call.timeout.total_seconds()
        alarms.set(ticket.future, seconds)
        outcome = None
        try:
            outcome = await ticket.future
            if outcome is not None:
                return outcome
        finally:
            alarms.clear(ticket.future, seconds)
            if outcome is None:
                call.give_up()
                if self._threads.give_up(ticket):
                    _log.warning(
                        "%s was given up and goes on in its thread; %d such threads",
                        call.name,
                        self.abandoned,
                    )
        if ticket.has_begun:
            return _timed_out(f"timed out after {format_duration(call.timeout)}")
        return _timed_out(
            f"no thread was free within {format_duration(call.timeout)}: all {self._thread_count} are busy; "
            "raise executor.python_threads, or make the function async"
        )


def build(services: TargetServices) -> PythonTarget:
    return PythonTarget(
        services.functions,
        importable=services.python_importable,
        threads=services.python_threads,
        lazy=services.python_lazy,
        max_result_bytes=services.max_response_bytes,
    )


def _misfit(name: str, function: Function, args: list[Any], kwargs: dict[str, Any]) -> list[Problem]:
    if function.signature is None:
        return []
    try:
        args, kwargs = function.arguments(args, kwargs, None)
        function.signature.bind(*args, **kwargs)
    except TypeError as error:
        return [Problem("args", f"do not fit {name}{function.signature}: {error}")]
    return []


def _timed_out(error: str) -> Outcome:
    return Outcome(Verdict.RETRY, error=error, timed_out=True)
