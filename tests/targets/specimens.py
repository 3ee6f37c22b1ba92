"""One specimen of every target, with configs that behave in known ways. A new target adds a line to CASES."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ksana.domain.outcomes import AttemptContext
from ksana.domain.ports import Target
from ksana.targets.builtin import EchoTarget, FailTarget, NoopTarget, PrintTarget, SleepTarget
from ksana.targets.celery import CeleryTarget
from ksana.targets.celery.fleets import Answer, Fleets, Message
from ksana.targets.http import HttpTarget, TargetPolicy
from ksana.targets.python import PythonTarget, cancelled
from ksana.targets.signals import Fail, Retry
from tests.kit.sink import Drop, Hang, Raw, Reply, Sink
from tests.targets.probe import Probe


async def _nothing_to_wait_for(count: int) -> None:
    raise AssertionError("this target has no config that hangs")


@dataclass
class Specimen:
    """A target, and configs of it: one that succeeds, some that fail each in its way, one that hangs.

    `seen` gives (attempt, fence) of every successful call as the callee was told; `settles_at` waits until so
    many hanging calls are under way.
    """

    target: Target
    succeeds: dict[str, Any] | None = None
    fails: list[dict[str, Any]] = field(default_factory=list)
    hangs: dict[str, Any] | None = None
    seen: Callable[[], list[tuple[int, int]]] = list
    settles_at: Callable[[int], Awaitable[None]] = _nothing_to_wait_for


class Case(NamedTuple):
    """How to open a specimen, and what it has: configs that `succeeds`, `fails`, `hangs`; `seen`; `fields` if it takes
    only those it knows; and `stops` if cancelling an attempt ends its call at once."""

    kind: str
    open: Callable[[], AbstractAsyncContextManager[Specimen]]
    has: frozenset[str]


@asynccontextmanager
async def noop() -> AsyncIterator[Specimen]:
    yield Specimen(NoopTarget(), succeeds={"anything": [1]})


@asynccontextmanager
async def prints() -> AsyncIterator[Specimen]:
    yield Specimen(PrintTarget(), succeeds={"anything": [1]})


@asynccontextmanager
async def echo() -> AsyncIterator[Specimen]:
    yield Specimen(EchoTarget(), succeeds={"message": {"said": ["hello", 1]}})


@asynccontextmanager
async def fail() -> AsyncIterator[Specimen]:
    yield Specimen(
        FailTarget(),
        succeeds={"times": 0},
        fails=[{}, {"message": "no such luck"}, {"retry": False}, {"times": 3}],
    )


@asynccontextmanager
async def sleep() -> AsyncIterator[Specimen]:
    probe = Probe()

    async def virtual_sleep(span: timedelta) -> None:
        with probe:
            await (asyncio.sleep(0) if span < timedelta(seconds=10) else asyncio.Event().wait())

    yield Specimen(
        SleepTarget(virtual_sleep),
        succeeds={"for": "5s"},
        hangs={"for": "24h"},
        settles_at=probe.settles_at,
    )


@asynccontextmanager
async def python_in_thread() -> AsyncIterator[Specimen]:
    probe = Probe()
    told: list[tuple[int, int]] = []

    def succeed(run: AttemptContext) -> dict[str, int]:
        told.append((run.attempt, run.fence))
        return {"attempt": run.attempt}

    def hang() -> None:
        with probe:
            cancelled(within=timedelta(seconds=60))

    functions: dict[str, Callable[..., Any]] = {
        "succeed": succeed,
        "hang": hang,
        **{raiser.__name__: raiser for raiser in _RAISERS},
    }
    target = PythonTarget(functions, threads=4)
    yield _python_specimen(target, told, probe)
    await target.close()


@asynccontextmanager
async def python_in_loop() -> AsyncIterator[Specimen]:
    probe = Probe()
    told: list[tuple[int, int]] = []

    async def succeed(run: AttemptContext) -> dict[str, int]:
        await asyncio.sleep(0)
        told.append((run.attempt, run.fence))
        return {"attempt": run.attempt}

    async def hang() -> None:
        with probe:
            await asyncio.Event().wait()

    functions: dict[str, Callable[..., Any]] = {
        "succeed": succeed,
        "hang": hang,
        **{raiser.__name__: _async(raiser) for raiser in _RAISERS},
    }
    target = PythonTarget(functions, threads=1)
    yield _python_specimen(target, told, probe)
    await target.close()


@asynccontextmanager
async def http() -> AsyncIterator[Specimen]:
    policy = TargetPolicy.of(allow_loopback=True, allow_private=False)
    target = HttpTarget(policy=policy, now=lambda: datetime(2026, 1, 5, 9, 0, tzinfo=UTC))
    async with Sink() as sink:
        good = sink.on("/good", Reply())

        def told() -> list[tuple[int, int]]:
            headers = [(r.header("X-Ksana-Attempt"), r.header("X-Ksana-Fence")) for r in sink.to("/good")]
            return [(int(attempt or 0), int(fence or 0)) for attempt, fence in headers]

        async def settles_at(count: int) -> None:
            if count:
                await sink.wait_for(count, path="/hang")
            else:
                await sink.wait_until(lambda: not sink.open, "every connection to close")

        yield Specimen(
            target,
            succeeds={"url": good},
            fails=[
                {"url": sink.on("/broken", Reply(status=500))},
                {"url": sink.on("/missing", Reply(status=404))},
                {"url": sink.on("/dropped", Drop())},
                {"url": sink.on("/nonsense", Raw())},
                {"url": "http://10.0.0.1/private"},
            ],
            hangs={"url": sink.on("/hang", Hang())},
            seen=told,
            settles_at=settles_at,
        )
        await target.close()


class _Fleet(Fleets):
    """A fleet that does as its tasks are called, without a broker."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Message] = []

    def send(self, broker: str, message: Message, connect_timeout: float) -> None:
        if message.task == "refused":
            raise ConnectionRefusedError(f"no way to {broker}")
        self.sent.append(message)

    def ask(self, backend: str, task_id: str) -> Answer:
        [task] = [message.task for message in self.sent if message.id == task_id][-1:]
        states = {"fine": "SUCCESS", "fails": "FAILURE", "revoked": "REVOKED"}
        return Answer(states.get(task, "STARTED"), {"said": task})


@asynccontextmanager
async def celery() -> AsyncIterator[Specimen]:
    probe, fleet = Probe(), _Fleet()

    async def watched_sleep(span: timedelta) -> None:
        with probe, suppress(TimeoutError):
            async with asyncio.timeout(span.total_seconds()):
                await asyncio.Event().wait()

    target = CeleryTarget(environ={}, sleep=watched_sleep, may_name_hosts=True, fleets=fleet)
    where = {"broker": "amqp://broker//", "backend": "redis://results/0"}
    yield Specimen(
        target,
        succeeds={"task": "fine", **where},
        fails=[
            {"task": "refused", **where},
            {"task": "fails", **where},
            {"task": "revoked", **where},
            {"task": "fine"},
        ],
        hangs={"task": "hangs", **where},
        seen=lambda: [(one.headers["ksana"]["attempt"], one.headers["ksana"]["fence"]) for one in fleet.sent],
        settles_at=probe.settles_at,
    )
    await target.close()


def _python_specimen(target: PythonTarget, told: list[tuple[int, int]], probe: Probe) -> Specimen:
    return Specimen(
        target,
        succeeds={"function": "succeed"},
        fails=[{"function": raiser.__name__} for raiser in _RAISERS],
        hangs={"function": "hang"},
        seen=lambda: told,
        settles_at=probe.settles_at,
    )


def raise_error() -> None:
    raise LookupError("no row 7")


def raise_exit() -> None:
    raise SystemExit(3)


def raise_interrupt() -> None:
    raise KeyboardInterrupt


def raise_stop() -> None:
    raise StopIteration


def raise_cancelled() -> None:
    raise asyncio.CancelledError


def raise_retry() -> None:
    raise Retry(timedelta(seconds=9), "busy")


def raise_fail() -> None:
    raise Fail("no such customer")


def raise_timeout() -> None:
    raise TimeoutError


def return_what_json_cannot_hold() -> object:
    return object()


_RAISERS: list[Callable[[], object]] = [
    raise_error,
    raise_exit,
    raise_interrupt,
    raise_stop,
    raise_cancelled,
    raise_retry,
    raise_fail,
    raise_timeout,
    return_what_json_cannot_hold,
]


def _async(function: Callable[[], object]) -> Callable[[], Awaitable[object]]:
    async def call() -> object:
        return function()

    return call


_ALL = frozenset({"succeeds", "fields", "fails", "hangs", "seen", "stops"})

CASES = [
    Case("noop", noop, frozenset({"succeeds"})),
    Case("print", prints, frozenset({"succeeds"})),
    Case("echo", echo, frozenset({"succeeds", "fields"})),
    Case("fail", fail, frozenset({"succeeds", "fields", "fails"})),
    Case("sleep", sleep, frozenset({"succeeds", "fields", "hangs", "stops"})),
    Case("python-thread", python_in_thread, _ALL),
    Case("python-async", python_in_loop, _ALL),
    # The HTTP client ends a request under way at its own timeout only, not when its caller is cancelled.
    Case("http", http, _ALL - {"stops"}),
    Case("celery", celery, _ALL),
]
