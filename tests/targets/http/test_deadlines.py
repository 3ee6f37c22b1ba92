"""Deadlines that share timers: each rings once, never early, and not at all once it is forgotten."""

import asyncio

from ksana.targets.http.deadlines import Deadlines


async def test_a_deadline_rings_once_it_has_passed_and_not_before() -> None:
    loop = asyncio.get_running_loop()
    deadlines = Deadlines()
    rung: asyncio.Future[float] = loop.create_future()
    at = loop.time() + 0.03
    deadlines.remember(at, lambda: rung.set_result(loop.time()))
    assert await asyncio.wait_for(rung, 5) >= at


async def test_a_forgotten_deadline_does_not_ring_with_the_others_of_its_moment() -> None:
    loop = asyncio.get_running_loop()
    deadlines = Deadlines()
    rung: list[str] = []
    done = asyncio.Event()
    at = loop.time() + 0.02
    forgotten = deadlines.remember(at, lambda: rung.append("forgotten"))
    deadlines.remember(at, lambda: rung.append("kept"))
    deadlines.forget(forgotten)
    deadlines.remember(at + 0.05, done.set)
    await asyncio.wait_for(done.wait(), 5)
    assert rung == ["kept"]
    deadlines.forget(forgotten)


async def test_nothing_rings_after_the_close() -> None:
    loop = asyncio.get_running_loop()
    deadlines = Deadlines()
    rung: list[str] = []
    deadlines.remember(loop.time() + 0.02, lambda: rung.append("late"))
    deadlines.close()
    others, done = Deadlines(), asyncio.Event()
    others.remember(loop.time() + 0.05, done.set)
    await asyncio.wait_for(done.wait(), 5)
    assert rung == []
