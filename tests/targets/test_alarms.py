from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ksana.targets.alarms import Alarms
from ksana.testing.virtual_loop import VirtualLoop


class Wait:
    """One that an alarm may ring for."""

    def __init__(self) -> None:
        self.rung = 0

    def ring(self) -> None:
        self.rung += 1


class Waits:
    """Alarms on a loop whose time is moved by the test."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.alarms = Alarms(self.loop)

    def begin(self, seconds: float) -> Wait:
        wait = Wait()
        self.alarms.set(wait, seconds)
        return wait

    def at(self, seconds: float) -> None:
        self.loop.move_to(seconds)
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.run_until_complete(asyncio.sleep(0))


@pytest.fixture
def waits() -> Iterator[Waits]:
    waits = Waits()
    yield waits
    waits.loop.close()


def test_each_rings_once_at_its_own_time_and_not_before(waits: Waits) -> None:
    first, short = waits.begin(10), waits.begin(3)
    waits.at(2)
    second = waits.begin(10)
    assert not (first.rung or short.rung)
    waits.at(3)
    assert (first.rung, short.rung) == (0, 1)
    waits.at(10)
    assert (first.rung, second.rung) == (1, 0)
    waits.at(12)
    assert [each.rung for each in (first, second, short)] == [1, 1, 1]
    assert waits.loop.next_timer is None


def test_those_that_were_answered_leave_the_others_their_time(waits: Waits) -> None:
    answered, waiting = waits.begin(10), waits.begin(10)
    waits.alarms.clear(answered, 10)
    waits.at(5)
    late = waits.begin(10)
    waits.at(10)
    assert (answered.rung, waiting.rung, late.rung) == (0, 1, 0)
    waits.alarms.clear(waiting, 10)
    waits.at(15)
    assert late.rung == 1


def test_one_that_rings_may_have_others_wait(waits: Waits) -> None:
    first, other = waits.begin(10), Wait()
    first.ring = lambda: waits.alarms.set(other, 10)  # type: ignore[method-assign]
    waits.at(10)
    assert other.rung == 0
    waits.at(20)
    assert other.rung == 1


def test_nothing_is_left_to_ring_when_nobody_waits(waits: Waits) -> None:
    both = [waits.begin(10), waits.begin(10)]
    for each in both:
        waits.alarms.clear(each, 10)
    assert waits.loop.next_timer is None
    waits.alarms.clear(both[0], 10)
    again = waits.begin(10)
    waits.at(10)
    assert again.rung == 1
