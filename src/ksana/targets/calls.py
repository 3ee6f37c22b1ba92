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

_SCALARS = frozenset({str, int, float, bool, type(None)})


def cancelled(within: timedelta = timedelta(0)) -> bool:
    """Whether the attempt running this code was given up, waiting up to `within` to find out.

    For functions in threads, which nothing can stop from outside: ask now and then, and return if it says so.
    """
    return _patience.get().ends(within.total_seconds())


class _Patience:
    """Whether somebody still waits for the answer of a call. Few calls ask, so only those get an event to wait for."""

    __slots__ = ("_event", "is_over")

    def __init__(self) -> None:
        self.is_over = False
        self._event: threading.Event | None = None

    def end(self) -> None:
        # In this order, and in `ends` in the opposite one: so whoever is late sees what the other has done.
        self.is_over = True
        if self._event is not None:
            self._event.set()

    def ends(self, seconds: float) -> bool:
        """Wait for the end, up to so long; answer whether it has come."""
        if seconds > 0 and not self.is_over:
            with _making_events:
                event = self._event = self._event or threading.Event()
            if not self.is_over:
                event.wait(seconds)
        return self.is_over


_making_events = threading.Lock()
_ENDLESS = _Patience()
_patience: contextvars.ContextVar[_Patience] = contextvars.ContextVar("_patience", default=_ENDLESS)


class Call:
    """`run` or `run_async` is called once; `give_up` when nobody waits for the answer any more."""

    __slots__ = ("_args", "_call", "_kwargs", "_max_bytes", "_patience", "name", "seconds", "timeout")

    def __init__(self, function: Function, context: AttemptContext, config: dict[str, Any], max_bytes: int) -> None:
        self.name: str = config["function"]
        self.timeout = context.timeout
        self.seconds = context.timeout.total_seconds()
        self._patience = _Patience()
        self._call = function.call
        # Copied, because the config is shared by all attempts and a function may change what it is given.
        args, kwargs = config.get("args"), config.get("kwargs")
        args, kwargs = _copied(args) if args else [], _copied(kwargs) if kwargs else {}
        self._args, self._kwargs = function.arguments(args, kwargs, context)
        self._max_bytes = max_bytes

    def give_up(self) -> None:
        self._patience.end()

    def run(self) -> Outcome:
        _patience.set(self._patience)
        try:
            return self._success(self._call(*self._args, **self._kwargs))
        except BaseException as error:
            return self._failure(error)

    async def run_async(self) -> Outcome:
        _patience.set(self._patience)
        try:
            return self._success(await self._call(*self._args, **self._kwargs))
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and self._patience.is_over:
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


def timed_out(error: str) -> Outcome:
    return Outcome(Verdict.RETRY, error=error, timed_out=True)


def _copied(value: Any) -> Any:
    """A copy of what JSON can hold, which is nearly all there ever is, in a fraction of the time of deepcopy."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is list:
        return [_copied(item) for item in value]
    if kind is dict:
        return {key: _copied(item) for key, item in value.items()}
    return copy.deepcopy(value)


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
