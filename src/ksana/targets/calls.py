"""One call of a function: what it is given, and how its end becomes an Outcome, whatever it raises.

A result that JSON cannot hold is a failure that is not retried: the work is done, and would be done again.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import inspect
import threading
import traceback
from datetime import timedelta
from typing import Any

import msgspec

from ksana.domain.outcomes import SUCCESS, AttemptContext, Exchange, Outcome, Verdict
from ksana.targets.functions import Function
from ksana.targets.signals import Fail, Retry

MAX_ERROR_CHARS = 1024
MAX_TRACEBACK_BYTES = 16 * 1024

_NEVER = threading.Event()
_given_up: contextvars.ContextVar[threading.Event] = contextvars.ContextVar("_given_up", default=_NEVER)


def cancelled(within: timedelta = timedelta(0)) -> bool:
    """Whether the attempt running this code was given up, waiting up to `within` to find out.

    For functions in threads, which nothing can stop from outside: ask now and then, and return if it says so.
    """
    return _given_up.get().wait(within.total_seconds())


class Call:
    """`run` or `run_async` is called once; `given_up` is set when nobody waits for the answer any more."""

    def __init__(self, function: Function, context: AttemptContext, config: dict[str, Any], max_bytes: int) -> None:
        self.name: str = config["function"]
        self.timeout = context.timeout
        self.given_up = threading.Event()
        self._call = function.call
        # Copied, because the config is shared by all attempts and a function may change what it is given.
        args, kwargs = copy.deepcopy((config.get("args", []), config.get("kwargs", {})))
        self._args, self._kwargs = function.arguments(args, kwargs, context)
        self._max_bytes = max_bytes

    def run(self) -> Outcome:
        _given_up.set(self.given_up)
        try:
            return self._success(self._call(*self._args, **self._kwargs))
        except BaseException as error:
            return self._failure(error)

    async def run_async(self) -> Outcome:
        _given_up.set(self.given_up)
        try:
            return self._success(await self._call(*self._args, **self._kwargs))
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and self.given_up.is_set():
                raise
            # SystemExit and KeyboardInterrupt would stop the loop if they left the task.
            return self._failure(error)

    def _success(self, value: Any) -> Outcome:
        if value is None:
            return SUCCESS
        if inspect.isawaitable(value):
            if inspect.iscoroutine(value):
                value.close()
            return Outcome(Verdict.FAIL, error=f"{self.name} returned an awaitable; declare it with async def")
        try:
            result = msgspec.json.encode(value)
        except Exception as error:
            return Outcome(
                Verdict.FAIL,
                error=bounded(
                    f"{self.name} did its work but returned {type(value).__name__}, "
                    f"which JSON cannot hold ({error}); return plain values, or nothing"
                ),
            )
        if len(result) > self._max_bytes:
            return Outcome(
                Verdict.FAIL,
                error=f"{self.name} did its work but returned {len(result)} bytes of JSON; "
                f"at most {self._max_bytes} are kept",
            )
        return Outcome(Verdict.SUCCESS, result=result)

    def _failure(self, error: BaseException) -> Outcome:
        trace, truncated = _traceback(error)
        exchange = Exchange(request_line=self.name, response_body=trace, truncated=truncated)
        match error:
            case Fail():
                return Outcome(Verdict.FAIL, error=bounded(_text(error)), exchange=exchange)
            case Retry():
                return Outcome(Verdict.RETRY, error=bounded(_text(error)), retry_after=error.delay, exchange=exchange)
            case _:
                said = _text(error)
                line = f"{type(error).__name__}: {said}" if said else type(error).__name__
                return Outcome(Verdict.RETRY, error=bounded(line), exchange=exchange)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message cannot be shown)"


def bounded(text: str) -> str:
    # Lone surrogates and NUL are text to Python and an error to databases.
    clean = text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    return clean if len(clean) <= MAX_ERROR_CHARS else clean[: MAX_ERROR_CHARS - 1] + "…"


def _traceback(error: BaseException) -> tuple[bytes, bool]:
    # The first frame is ours and tells the reader nothing.
    frames = error.__traceback__.tb_next if error.__traceback__ is not None else None
    text = "".join(traceback.format_exception(type(error), error, frames)).encode("utf-8", "backslashreplace")
    # The end says what happened, so the end is kept.
    return text[-MAX_TRACEBACK_BYTES:], len(text) > MAX_TRACEBACK_BYTES
