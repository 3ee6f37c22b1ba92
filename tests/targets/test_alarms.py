from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from ksana.targets.alarms import Alarms
from ksana.testing.virtual_loop import VirtualLoop


class Waits:
    """Alarms on a loop whose time is moved by the test."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.alarms = Alarms(self.loop)

    def begin(self, seconds: float) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self.loop.create_future()
        self.alarms.set(future, seconds)
        return future

    def at(self, seconds: float) -> None:
        self.loop.move_to(seconds)
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.run_until_complete(asyncio.sleep(0))


@pytest.fixture
def waits() -> Iterator[Waits]:
    waits = Waits()
    yield waits
    waits.loop.close()


def test_each_rings_at_its_own_time_and_not_before(waits: Waits) -> None:
    first, short = waits.begin(10), waits.begin(3)
    waits.at(2)
    second = waits.begin(10)
    assert not (first.done() or short.done())
    waits.at(3)
    assert (first.done(), short.done()) == (False, True)
    waits.at(10)
    assert (first.done(), second.done()) == (True, False)
    waits.at(12)
    assert second.done()
    assert [each.result() for each in (first, second, short)] == [None, None, None]
    assert waits.loop.next_timer is None


def test_those_that_were_answered_leave_the_others_their_time(waits: Waits) -> None:
    answered, waiting = waits.begin(10), waits.begin(10)
    answered.set_result("answer")
    waits.alarms.clear(answered, 10)
    waits.at(5)
    late = waits.begin(10)
    waits.at(10)
    assert (answered.result(), waiting.done(), late.done()) == ("answer", True, False)
    waits.alarms.clear(waiting, 10)
    waits.at(15)
    assert late.done()


def test_an_answer_nobody_has_looked_at_yet_is_kept(waits: Waits) -> None:
    answered = waits.begin(10)
    answered.set_result("answer")
    waits.at(10)
    assert answered.result() == "answer"


def test_nothing_is_left_to_ring_when_nobody_waits(waits: Waits) -> None:
    both = [waits.begin(10), waits.begin(10)]
    for each in both:
        waits.alarms.clear(each, 10)
    assert waits.loop.next_timer is None
    waits.alarms.clear(both[0], 10)
    again = waits.begin(10)
    waits.at(10)
    assert again.done()
