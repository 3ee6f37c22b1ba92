from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ksana.targets.threads import Awaited, Exhausted, Threads

_DEADLINE = 20.0


class Block:
    """Work that holds its thread until released."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.released = threading.Event()
        self.thread: threading.Thread | None = None

    def __call__(self) -> str:
        self.thread = threading.current_thread()
        self.has_begun.set()
        assert self.released.wait(_DEADLINE)
        return "late"

    async def begins(self) -> None:
        assert await asyncio.to_thread(self.has_begun.wait, _DEADLINE)

    async def ends(self) -> None:
        self.released.set()
        assert self.thread is not None
        await asyncio.to_thread(self.thread.join, _DEADLINE)
        assert not self.thread.is_alive()


async def answer(ticket: Awaited[str]) -> str:
    return await asyncio.wait_for(ticket.future, _DEADLINE)


async def test_work_is_done_in_a_daemon_thread() -> None:
    threads = Threads[bool](1, 1)
    ticket = threads.submit(lambda: threading.current_thread().daemon)
    assert await asyncio.wait_for(ticket.future, _DEADLINE)
    threads.close()


async def test_no_more_threads_work_than_the_size_allows() -> None:
    threads = Threads[str](2, 8)
    seen: set[str] = set()

    def note() -> str:
        seen.add(threading.current_thread().name)
        return "done"

    await asyncio.gather(*(answer(threads.submit(note)) for _ in range(200)))
    assert 1 <= len(seen) <= 2
    threads.close()


async def test_calls_that_block_are_spread_over_all_threads() -> None:
    threads = Threads[str](3, 8)
    blocks = [Block() for _ in range(3)]
    # None of them yields to the loop, so they are all there before a thread has come.
    tickets = [threads.submit(block) for block in blocks]
    for block in blocks:
        await block.begins()
    assert len({block.thread for block in blocks}) == 3
    for block in blocks:
        block.released.set()
    assert await asyncio.gather(*map(answer, tickets)) == ["late"] * 3
    threads.close()


async def test_a_short_call_does_not_wait_behind_one_that_blocks() -> None:
    threads = Threads[str](2, 8)
    for _ in range(50):
        block = Block()
        blocking, short = threads.submit(block), threads.submit(lambda: "prompt")
        assert await answer(short) == "prompt"
        block.released.set()
        assert await answer(blocking) == "late"
    threads.close()


async def test_answers_that_come_while_the_loop_is_busy_are_brought_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, brought = asyncio.get_running_loop(), 0
    call = loop.call_soon_threadsafe

    def count(*args: Any, **kwargs: Any) -> asyncio.Handle:
        nonlocal brought
        brought += 1
        return call(*args, **kwargs)

    monkeypatch.setattr(loop, "call_soon_threadsafe", count)
    threads = Threads[str](1, 8)
    tickets = [threads.submit(lambda: "done") for _ in range(100)]
    last = Block()
    last.released.set()
    tickets.append(threads.submit(last))
    # The loop stands still meanwhile.
    assert last.has_begun.wait(_DEADLINE)
    assert await asyncio.gather(*map(answer, tickets)) == ["done"] * 100 + ["late"]
    # The last answer may come after the loop has looked.
    assert brought <= 2
    threads.close()


async def test_every_answer_arrives_when_many_threads_and_the_loop_are_busy_at_once() -> None:
    threads = Threads[str](8, 8)

    async def ask_often(name: str) -> list[str]:
        return [await answer(threads.submit(lambda n=n: f"{name}{n}")) for n in range(40)]  # type: ignore[misc]

    answers = await asyncio.gather(*(ask_often(name) for name in "abcdefghijklmnop"))
    assert answers == [[f"{name}{n}" for n in range(40)] for name in "abcdefghijklmnop"]
    threads.close()


async def test_a_thread_lost_to_a_hanging_call_is_replaced() -> None:
    threads = Threads[str](1, 8)
    blocks = [Block() for _ in range(5)]
    for block in blocks:
        ticket = threads.submit(block)
        await block.begins()
        assert threads.give_up(ticket) is True
        assert await answer(threads.submit(lambda: "prompt")) == "prompt"
    assert threads.abandoned == 5
    for block in blocks:
        await block.ends()
    assert threads.abandoned == 0
    threads.close()


async def test_calls_that_wait_behind_a_hanging_one_get_the_replacement() -> None:
    threads = Threads[str](1, 8)
    block = Block()
    hanging = threads.submit(block)
    await block.begins()
    waiting = threads.submit(lambda: "prompt")
    threads.give_up(hanging)
    assert await answer(waiting) == "prompt"
    await block.ends()
    threads.close()


async def test_a_late_answer_is_discarded() -> None:
    threads = Threads[str](1, 8)
    block = Block()
    ticket = threads.submit(block)
    await block.begins()
    threads.give_up(ticket)
    await block.ends()
    assert await answer(threads.submit(lambda: "prompt")) == "prompt"
    assert ticket.future.cancelled()
    threads.close()


async def test_a_call_given_up_before_it_began_never_runs() -> None:
    threads = Threads[str](1, 8)
    block = Block()
    first = threads.submit(block)
    await block.begins()
    ran: list[str] = []

    def record() -> str:
        ran.append("ran")
        return ""

    waiting = threads.submit(record)
    assert threads.give_up(waiting) is False
    assert threads.abandoned == 0
    block.released.set()
    assert await answer(first) == "late"
    assert await answer(threads.submit(lambda: "prompt")) == "prompt"
    assert ran == []
    threads.close()


async def test_giving_up_twice_counts_once() -> None:
    threads = Threads[str](1, 8)
    block = Block()
    ticket = threads.submit(block)
    await block.begins()
    assert [threads.give_up(ticket), threads.give_up(ticket)] == [True, False]
    assert threads.abandoned == 1
    await block.ends()
    threads.close()


async def test_lost_threads_are_bounded() -> None:
    threads = Threads[str](1, 2)
    blocks = [Block(), Block()]
    for block in blocks:
        ticket = threads.submit(block)
        await block.begins()
        threads.give_up(ticket)
    with pytest.raises(Exhausted):
        threads.submit(lambda: "one more")
    await blocks[0].ends()
    assert await answer(threads.submit(lambda: "again")) == "again"
    await blocks[1].ends()
    threads.close()


async def test_closed_threads_go_home_and_take_no_more_work() -> None:
    threads = Threads[threading.Thread](1, 1)
    worker = await asyncio.wait_for(threads.submit(threading.current_thread).future, _DEADLINE)
    threads.close()
    await asyncio.to_thread(worker.join, _DEADLINE)
    assert not worker.is_alive()
    with pytest.raises(RuntimeError, match="closed"):
        threads.submit(threading.current_thread)


def test_a_call_may_outlive_the_loop_it_was_made_in() -> None:
    block = Block()
    threads = Threads[str](1, 1)

    async def leave_it_running() -> None:
        threads.submit(block)
        await block.begins()

    asyncio.run(leave_it_running())
    block.released.set()
    threads.close()
    assert block.thread is not None
    block.thread.join(_DEADLINE)
    assert not block.thread.is_alive()


async def test_an_idle_thread_holds_on_to_nothing() -> None:
    threads = Threads[str](1, 1)

    class Heavy:
        def __del__(self) -> None:
            freed.set()

    freed = threading.Event()

    def work_holding(heavy: Heavy) -> Callable[[], str]:
        return lambda: "done" if heavy else ""

    assert await answer(threads.submit(work_holding(Heavy()))) == "done"
    assert await asyncio.to_thread(freed.wait, _DEADLINE)
    threads.close()
