"""Targets that need nothing but themselves: noop, echo, print, sleep, fail and wait."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec

from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.outcomes import SUCCESS, AttemptContext, Outcome, Verdict
from ksana.targets.checks import not_json, refuse, refuse_no_map, unknown_fields
from ksana.targets.services import TargetServices

_FAIL_MESSAGE = "failed as configured"
_PRINTED = 2000

_log = logging.getLogger(__name__)


class _Simple:
    """What the targets here share: they hold nothing and wait for nobody."""

    def awaits_callback(self, config: dict[str, Any], input: Any = None) -> bool:
        return False

    async def close(self) -> None:
        return None


class NoopTarget(_Simple):
    """Succeeds at once. Takes any config, because doing nothing with it is what was asked for."""

    kind = "noop"

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        return _anything(self.kind, config)

    def foretell(self, config: dict[str, Any]) -> Outcome | None:
        return SUCCESS

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        return SUCCESS


class EchoTarget(_Simple):
    """Succeeds with its `message` as result, or with the run's input if there is no message."""

    kind = "echo"

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        problems = unknown_fields(self.kind, config, ("message",))
        message = config.get("message")
        refuse(problems + not_json("message", message))
        return {"message": message}

    def foretell(self, config: dict[str, Any]) -> Outcome | None:
        message = config.get("message")
        return None if message is None else Outcome(Verdict.SUCCESS, result=msgspec.json.encode(message))

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        if (foretold := self.foretell(config)) is not None:
            return foretold
        if context.input is None:
            return SUCCESS
        if problems := not_json("input", context.input):
            return Outcome(Verdict.FAIL, error=f"input {problems[0].message}")
        return Outcome(Verdict.SUCCESS, result=msgspec.json.encode(context.input))


class PrintTarget(_Simple):
    """Writes its config, whatever it is, into the log of the node, and succeeds with it as result."""

    kind = "print"

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        return _anything(self.kind, config)

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        said = msgspec.json.encode(config)
        line = said.decode()
        _log.info("run %d, %s: %s", context.run_id, context.job_name, line[:_PRINTED])
        return Outcome(Verdict.SUCCESS, result=said)


class WaitTarget(_Simple):
    """Waits until somebody says that it is done. `message` tells them what for."""

    kind = "wait"

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        problems = unknown_fields(self.kind, config, ("message",))
        message = config.get("message", "")
        if not isinstance(message, str):
            problems.append(Problem("message", "is for people to read, so it must be a string"))
        refuse(problems)
        return {"message": message}

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        _log.info("run %d, %s: waits for somebody. %s", context.run_id, context.job_name, config.get("message", ""))
        return Outcome(Verdict.WAIT)


class SleepTarget(_Simple):
    """Succeeds after the span in `for`, as the injected clock counts it."""

    kind = "sleep"

    def __init__(self, sleep: Callable[[timedelta], Awaitable[None]]) -> None:
        self._sleep = sleep

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        problems = unknown_fields(self.kind, config, ("for",))
        if "for" not in config:
            problems.append(Problem("for", 'is missing; say how long, for example "5s"'))
        else:
            try:
                parse_duration(config["for"], "for")
            except InvalidArgument as error:
                problems += error.problems
        refuse(problems)
        return {"for": config["for"]}

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        span = parse_duration(config["for"], "for")
        await self._sleep(min(span, context.timeout))
        if span > context.timeout:
            return Outcome(Verdict.RETRY, error=f"timed out after {format_duration(context.timeout)}", timed_out=True)
        return SUCCESS


class FailTarget(_Simple):
    """Fails with its `message`, in the first `times` attempts or always; for good if `retry` is false."""

    kind = "fail"

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        problems = unknown_fields(self.kind, config, ("message", "retry", "times"))
        message = config.get("message", _FAIL_MESSAGE)
        retry = config.get("retry", True)
        times = config.get("times")
        if not isinstance(message, str):
            problems.append(Problem("message", "is the text of the error, so it must be a string"))
        if not isinstance(retry, bool):
            problems.append(Problem("retry", "must be true or false"))
        if times is not None and (type(times) is not int or times < 0):
            problems.append(Problem("times", "must be a whole number of attempts, or absent to fail always"))
        refuse(problems)
        return {"message": message, "retry": retry, "times": times}

    def foretell(self, config: dict[str, Any]) -> Outcome | None:
        return _failure(config) if config.get("times") is None else None

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        times = config.get("times")
        return SUCCESS if times is not None and context.attempt > times else _failure(config)


def _failure(config: dict[str, Any]) -> Outcome:
    verdict = Verdict.RETRY if config.get("retry", True) else Verdict.FAIL
    return Outcome(verdict, error=config.get("message", _FAIL_MESSAGE))


def _anything(kind: str, config: dict[str, Any]) -> dict[str, Any]:
    """The config as it is, if it is a map that can be stored."""
    refuse_no_map(kind, config)
    refuse([found for name, value in config.items() for found in not_json(name, value)])
    return config


def build_noop(services: TargetServices) -> NoopTarget:
    return NoopTarget()


def build_echo(services: TargetServices) -> EchoTarget:
    return EchoTarget()


def build_print(services: TargetServices) -> PrintTarget:
    return PrintTarget()


def build_wait(services: TargetServices) -> WaitTarget:
    return WaitTarget()


def build_sleep(services: TargetServices) -> SleepTarget:
    return SleepTarget(services.sleep)


def build_fail(services: TargetServices) -> FailTarget:
    return FailTarget()
