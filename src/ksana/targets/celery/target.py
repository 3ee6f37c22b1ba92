"""The Celery target: one attempt sends one task, and ends as the task does, or as soon as the broker has it.

A task that is sent may be executed although its attempt was given up; it is told which run, attempt and fence it is
(`self.request.headers["ksana"]`), by which it can tell.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar

import msgspec

from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.outcomes import AttemptContext, Exchange, Outcome, Verdict
from ksana.domain.times import format_instant
from ksana.targets.celery.config import KIND, CeleryConfig, address, checked, masked
from ksana.targets.celery.fleets import Answer, Fleets, Message, NotInstalled
from ksana.targets.threads import Exhausted, Threads

T = TypeVar("T")

_THREADS: Final = 8
_MOST_ABANDONED: Final = 32
_LONGEST_ERROR: Final = 1000
_FIRST_LOOK: Final = 0.05
_LONGEST_LOOK: Final = 1.0
_SLOWER: Final = 1.5
_IDS: Final = uuid.UUID("6a3f0c60-3d0b-5c1e-9d6e-9f1f2c8b7a10")

_ENDS: Final = frozenset({"SUCCESS", "FAILURE", "REVOKED"})


class _Late(Exception):
    """It took longer than the attempt may; what it says is why, if that is known."""


class CeleryTarget:
    """Config: `task`, `args`, `kwargs`; `broker` and `backend` (an address, or `env:CELERY_…`); `queue`, `priority`,
    `expires`; `mode`."""

    kind = KIND

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        sleep: Callable[[timedelta], Awaitable[None]],
        may_name_hosts: bool = False,
        fleets: Fleets | None = None,
    ) -> None:
        self._environ = environ
        self._sleep = sleep
        self._may_name_hosts = may_name_hosts
        self._fleets = fleets or Fleets()
        self._threads = Threads[tuple[Any, Exception | None]](_THREADS, _MOST_ABANDONED)

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        said = msgspec.structs.asdict(checked(config, self._may_name_hosts))
        return {name: value for name, value in said.items() if value is not None}

    def awaits_callback(self, config: dict[str, Any], input: Any = None) -> bool:
        return bool(config.get("mode") == "async") or (isinstance(input, dict) and input.get("mode") == "async")

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        said = checked(config, may_name_hosts=True)
        try:
            broker = address(said.broker, self._environ, "broker")
            is_async = self.awaits_callback(config, context.input)
            wants_result = said.backend is not None and not is_async
            backend = address(said.backend, self._environ, "backend") if said.backend and wants_result else ""
            message = _message(said, context, is_async, wants_result)
        except LookupError as error:
            # Worth another try: the node that takes it next may know.
            return Outcome(Verdict.RETRY, str(error.args[0]))
        except ValueError as error:
            return Outcome(Verdict.FAIL, f"not sent: {error}")
        exchange = _exchange(message, said, broker)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + context.timeout.total_seconds()
        connect = min(context.connect_timeout, context.timeout).total_seconds()
        try:
            await self._in_thread(lambda: self._fleets.send(broker, message, connect), deadline)
            if is_async:
                return Outcome(Verdict.WAIT, exchange=exchange)
            if not backend:
                accepted = msgspec.json.encode({"task_id": message.id})
                return Outcome(Verdict.SUCCESS, result=accepted, exchange=exchange)
            return _judged(await self._answer(backend, message.id, deadline), message, exchange)
        except _Late as late:
            why = f": {masked(str(late), broker, backend)}" if str(late) else ""
            sentence = f"{said.task} was not over within {format_duration(context.timeout)}{why}"
            return Outcome(Verdict.RETRY, sentence[:_LONGEST_ERROR], timed_out=True, exchange=exchange)
        except (NotInstalled, Exhausted) as error:
            return Outcome(Verdict.RETRY, str(error) or "too many calls to brokers hang", exchange=exchange)
        except Exception as error:
            # Brokers and backends raise what their libraries do; whatever it is, another try may find them well.
            sentence = masked(f"{type(error).__name__}: {error}", broker, backend)
            return Outcome(Verdict.RETRY, f"{said.task}: {sentence}"[:_LONGEST_ERROR], exchange=exchange)

    async def close(self) -> None:
        self._threads.close()
        await asyncio.to_thread(self._fleets.close)

    async def _answer(self, backend: str, task_id: str, deadline: float) -> Answer:
        """Look until the task is over, ever less often. While the backend is away the task may well be at work, so that
        is no reason to send another."""
        loop = asyncio.get_running_loop()
        pause, trouble = _FIRST_LOOK, ""
        while True:
            try:
                answer = await self._in_thread(lambda: self._fleets.ask(backend, task_id), deadline)
            except _Late:
                raise _Late(trouble) from None
            except (NotInstalled, Exhausted):
                raise
            except Exception as error:
                trouble = f"{type(error).__name__}: {error}"
            else:
                trouble = ""
                if answer.state in _ENDS:
                    return answer
            left = deadline - loop.time()
            if left <= 0:
                raise _Late(trouble)
            await self._sleep(timedelta(seconds=min(pause, left)))
            pause = min(pause * _SLOWER, _LONGEST_LOOK)

    async def _in_thread(self, work: Callable[[], T], deadline: float) -> T:
        def guarded() -> tuple[Any, Exception | None]:
            try:
                return work(), None
            except Exception as error:
                return None, error

        ticket = self._threads.submit(guarded)
        try:
            await asyncio.wait((ticket.future,), timeout=deadline - asyncio.get_running_loop().time())
            if not ticket.future.done():
                raise _Late
        finally:
            if not ticket.future.done():
                self._threads.give_up(ticket)
        value, error = ticket.future.result()
        if error is not None:
            raise error
        result: T = value
        return result


def _message(said: CeleryConfig, context: AttemptContext, is_async: bool, wants_result: bool) -> Message:
    """The task of this attempt. What the run was given may replace `args` and add to `kwargs`."""
    given = context.input if isinstance(context.input, dict) else {}
    args, kwargs = given.get("args", said.args), given.get("kwargs", {})
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise ValueError("the args of the input must be a list, and its kwargs a map")
    about: dict[str, Any] = {
        "run_id": context.run_id,
        "attempt": context.attempt,
        "fence": context.fence,
        "job": context.job_name,
        "planned_at": format_instant(context.planned_at),
        "input": context.input,
    }
    if is_async:
        about |= {"callback_url": context.callback_url, "callback_token": context.callback_token}
    expires = None if said.expires is None else parse_duration(said.expires, "expires")
    if expires is None and wants_result:
        # Begun after that it would be somebody else's: the run is tried again by then.
        expires = context.timeout
    return Message(
        # Each attempt is a task of its own: the backend would answer with the end of the one before.
        id=str(uuid.uuid5(_IDS, f"{context.trace_id}/{context.fence}")),
        task=said.task,
        args=args,
        kwargs={**said.kwargs, **kwargs},
        headers={"ksana": about, "traceparent": context.traceparent},
        queue=said.queue,
        priority=said.priority,
        expires=None if expires is None else expires.total_seconds(),
    )


def _exchange(message: Message, said: CeleryConfig, broker: str) -> Exchange:
    body = msgspec.json.encode({"args": message.args, "kwargs": message.kwargs})
    shown = {"broker": masked(broker, broker), "task_id": message.id}
    if said.queue is not None:
        shown["queue"] = said.queue
    return Exchange(f"send_task {message.task}", shown, body)


def _judged(answer: Answer, message: Message, exchange: Exchange) -> Outcome:
    if answer.state == "SUCCESS":
        return Outcome(Verdict.SUCCESS, result=_encoded(answer.result), exchange=exchange)
    if answer.state == "REVOKED":
        return Outcome(Verdict.FAIL, f"{message.task} was revoked", exchange=exchange)
    result = answer.result
    words = f"{type(result).__name__}: {result}" if isinstance(result, BaseException) else str(result)
    return Outcome(Verdict.RETRY, f"{message.task} failed: {masked(words)}"[:_LONGEST_ERROR], exchange=exchange)


def _encoded(result: Any) -> bytes | None:
    try:
        return None if result is None else msgspec.json.encode(result)
    except (TypeError, ValueError):
        return msgspec.json.encode(str(result))
