"""Calls of async functions: those that never wait share a task, and must carry nothing from one to the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ksana.domain.outcomes import Outcome, Verdict
from ksana.domain.ports import Begun
from ksana.targets.python import PythonTarget
from tests.targets.contexts import TINY, attempt_context


class Desk:
    """Begins calls of one function, and notes what is told of them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.told: list[Outcome] = []
        self.tasks: list[asyncio.Task[Any] | None] = []

        async def watched(number: int) -> Any:
            self.tasks.append(asyncio.current_task())
            return await function(number)

        self.target = PythonTarget({"it": watched})

    def begin(self, number: int, **said: Any) -> Begun:
        config = {"function": "it", "args": [number]}
        begun = self.target.begin(attempt_context(**said), config, self.told.append)
        assert not isinstance(begun, Outcome)
        return begun

    @property
    def results(self) -> list[bytes | None]:
        return [outcome.result for outcome in self.told]


async def rounds(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_functions_that_never_wait_share_a_task_but_no_context() -> None:
    mark: ContextVar[int] = ContextVar("mark", default=0)
    seen: list[int] = []

    async def marks(number: int) -> int:
        seen.append(mark.get())
        mark.set(number)
        return number

    desk = Desk(marks)
    for number in (1, 2, 3):
        desk.begin(number)
    assert desk.told == []
    await rounds()
    assert desk.results == [b"1", b"2", b"3"]
    assert (seen, len(set(desk.tasks))) == ([0, 0, 0], 1)


async def test_a_function_that_waits_has_its_task_to_itself_and_holds_nobody_up() -> None:
    gate = asyncio.Event()

    async def first_waits(number: int) -> int:
        task = asyncio.current_task()
        if number == 1:
            async with asyncio.timeout(60):
                await gate.wait()
        assert asyncio.current_task() is task
        return number

    desk = Desk(first_waits)
    for number in (1, 2, 3):
        desk.begin(number)
    await rounds()
    assert desk.results == [b"2", b"3"]
    gate.set()
    await rounds()
    desk.begin(4)
    await rounds()
    assert desk.results == [b"2", b"3", b"1", b"4"]
    assert desk.tasks[0] not in desk.tasks[1:]


async def test_a_function_that_cancels_its_task_and_returns_spoils_no_other() -> None:
    async def cancels(number: int) -> int:
        task = asyncio.current_task()
        assert task is not None
        if number == 1:
            task.cancel()
        await asyncio.sleep(0) if number == 3 else None
        return number

    desk = Desk(cancels)
    for number in (1, 2, 3):
        desk.begin(number)
    await rounds()
    assert desk.results == [b"1", b"2", b"3"]


async def test_one_given_up_before_it_began_never_runs() -> None:
    async def answer(number: int) -> int:
        return number

    desk = Desk(answer)
    first = desk.begin(1)
    desk.begin(2)
    first.give_up()
    await rounds()
    assert (desk.results, len(desk.tasks)) == ([b"2"], 1)


async def test_one_given_up_is_cancelled_and_nothing_is_told_of_it() -> None:
    events: list[str] = []

    async def hang(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            events.append("tidied")

    desk = Desk(hang)
    begun = desk.begin(1)
    await rounds()
    begun.give_up()
    begun.give_up()
    await rounds()
    assert (events, desk.told) == (["tidied"], [])


async def test_one_whose_time_is_up_may_still_be_given_up_while_it_tidies_up() -> None:
    late: set[int] = set()
    are_both_late, gate = asyncio.Event(), asyncio.Event()

    async def hang(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            late.add(number)
            if len(late) == 2:
                are_both_late.set()
            await gate.wait()

    desk = Desk(hang)
    begun, other = desk.begin(1, timeout=TINY), desk.begin(2, timeout=TINY)
    await asyncio.wait_for(are_both_late.wait(), 20)
    begun.give_up()
    gate.set()
    await rounds()
    assert [(outcome.verdict, outcome.timed_out) for outcome in desk.told] == [(Verdict.RETRY, True)]
    other.give_up()


async def test_a_target_that_closes_tells_of_what_it_has_not_begun() -> None:
    async def answer(number: int) -> int:
        return number

    desk = Desk(answer)
    desk.begin(1)
    await desk.target.close()
    await rounds()
    assert [outcome.verdict for outcome in desk.told] == [Verdict.RETRY]
    assert desk.tasks == []
