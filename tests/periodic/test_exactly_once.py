"""Several schedulers on one Redis: every slot once, whoever dies at whatever step. The document's integration test of
distributed locking (B-72)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from ksana.periodic import Job
from ksana.periodic.state import Claimed, States, Stored
from tests.kit.clock import NodeClock
from tests.periodic.room import MINUTE, NOON, Recorder, Room, Wire, lock_key

Send = Callable[[], Awaitable[Any]]

READ, CLAIM, ENQUEUE, SETTLE = STEPS = range(1, 5)


class Node:
    """A scheduler that can be made to die."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.revive()

    def revive(self) -> None:
        self.wire = Wire(self.room.client, self.room.queue)
        self.scheduler = self.room.scheduler(self.wire)

    async def tick(self) -> None:
        await self.scheduler.tick()

    async def tick_and(self, fate: str, step: int, *, after: bool) -> None:
        """Look once, and meet a fate just before or just after a step gets through."""
        reached = asyncio.Event()

        async def fault(send: Send) -> Any:
            if after:
                await send()
            if fate == "error":
                raise ConnectionError("lost")
            self.wire.is_cut = fate == "kill"
            reached.set()
            return await asyncio.Event().wait()

        self.wire.at, self.wire.fault = self.wire.steps + step, fault
        tick = asyncio.create_task(self.scheduler.tick())
        arrival = asyncio.create_task(reached.wait())
        await asyncio.wait({tick, arrival}, return_when=asyncio.FIRST_COMPLETED)
        arrival.cancel()
        tick.cancel()
        with suppress(asyncio.CancelledError):
            await tick
        self.wire.fault = None
        if fate == "kill":
            self.revive()


async def test_an_hour_of_dying_schedulers_enqueues_every_slot_exactly_once(room: Room) -> None:
    """B-3, B-6, B-33, B-47, B-72: every other minute one is killed without a word, cancelled, or cut off from an
    answer, before and after every step there is. What a dead one has claimed is taken over within a minute. A job comes
    twice only where its scheduler died between the queue and its word about it, and then under the same id."""
    schedule = room.schedule()
    nodes = [Node(room) for _ in range(3)]
    await nodes[0].tick()
    fates = iter(itertools.product(("kill", "cancel", "error"), STEPS, (False, True)))
    in_doubt: set[str] = set()
    for minute in range(60):
        room.clock.move_to(NOON + (minute + 1) * MINUTE)
        await room.lapse(schedule)
        first, second, third = (nodes[(minute + k) % 3] for k in range(3))
        if minute % 2 == 0 and (met := next(fates, None)):
            fate, step, after = met
            await first.tick_and(fate, step, after=after)
            if (step, after) in ((ENQUEUE, True), (SETTLE, False)):
                in_doubt.add(room.clock.time.strftime("%Y-%m-%dT%H:%M:%SZ"))
        for node in (second, third, first):
            room.pass_time(seconds=1)
            await node.tick()
    assert next(fates, None) is None

    wanted = [(NOON + k * MINUTE).strftime("%Y-%m-%dT%H:%M:%SZ") for k in range(1, 61)]
    assert sorted(room.queue.slots(schedule.id)) == wanted
    calls = [job.metadata["scheduled_at"] for job in room.queue.calls]
    assert {slot for slot in calls if calls.count(slot) > 1} <= in_doubt
    state = await room.hash(schedule)
    assert (state["run_count"], state.get("firing")) == ("60", None)


async def test_schedulers_that_look_at_the_same_moment_share_the_work(room: Room) -> None:
    """B-3, B-72: twenty schedules, five minutes, three schedulers, one hundred jobs."""
    schedules = [room.schedule() for _ in range(20)]
    schedulers = [room.scheduler() for _ in range(3)]
    await asyncio.gather(*(scheduler.tick() for scheduler in schedulers))
    for minute in range(1, 6):
        room.clock.move_to(NOON + minute * MINUTE)
        enqueued = await asyncio.gather(*(scheduler.tick() for scheduler in schedulers))
        assert sum(enqueued) == 20
    assert len(room.queue.calls) == 100
    for schedule in schedules:
        assert len(room.queue.slots(schedule.id)) == 5
        assert (await room.hash(schedule))["run_count"] == "5"


async def test_one_that_looked_before_another_fired_does_not_fire_again(room: Room) -> None:
    """B-3: the lock is free again, and what the second one knows is old."""
    room.schedule()
    first, second = Node(room), Node(room)
    await first.tick()
    room.clock.move_to(NOON + MINUTE)
    has_looked, gate = asyncio.Event(), asyncio.Event()

    async def wait(send: Send) -> Any:
        has_looked.set()
        await gate.wait()
        return await send()

    second.wire.at, second.wire.fault = second.wire.steps + CLAIM, wait
    late = asyncio.create_task(second.scheduler.tick())
    await has_looked.wait()
    await first.tick()
    gate.set()
    assert await late == 0
    assert len(room.queue.calls) == 1


async def test_a_lock_that_vanishes_lets_nobody_fire_twice(room: Room) -> None:
    """B-3: the lock saves work, and the claim in the state is what counts."""
    schedule = room.schedule()
    await room.scheduler().tick()
    room.clock.move_to(NOON + MINUTE)
    others: list[int] = []

    class Slow(Recorder):
        async def enqueue(self, job: Job) -> None:
            await super().enqueue(job)
            if len(self.calls) == 1:
                await room.client.delete(lock_key(schedule))
                others.append(await room.scheduler().tick())

    room.queue = Slow()
    assert await room.scheduler().tick() == 1
    assert others == [0]
    assert len(room.queue.calls) == 1


async def test_redis_going_away_between_queue_and_state_doubles_nothing(room: Room) -> None:
    """B-6, B-57: the scheduler remembers what it has enqueued until Redis can be told, even with a queue that does not
    tell ids apart."""
    schedule = room.schedule()
    node = Node(room)
    await node.tick()
    room.clock.move_to(NOON + MINUTE)

    async def lose(send: Send) -> Any:
        node.wire.is_cut = True
        raise ConnectionError("lost")

    node.wire.at, node.wire.fault = node.wire.steps + SETTLE, lose
    await node.tick()
    for _ in range(3):
        await node.tick()
    node.wire.is_cut = False
    await room.lapse(schedule)
    await node.tick()
    assert len(room.queue.calls) == 1
    assert (await room.hash(schedule))["run_count"] == "1"
    room.pass_time(minutes=1)
    await node.tick()
    assert len(room.queue.calls) == 2


@pytest.mark.parametrize(("step", "after"), [(ENQUEUE, False), (SETTLE, False)])
async def test_one_that_is_cancelled_leaves_nobody_waiting(room: Room, step: int, after: bool) -> None:
    """B-6, B-36: it says how far it came, so that others need not wait for its lease."""
    schedule = room.schedule()
    node = Node(room)
    await node.tick()
    room.clock.move_to(NOON + MINUTE)
    await node.tick_and("cancel", step, after=after)
    assert await room.scheduler().tick() == (step == ENQUEUE)
    assert len(room.queue.calls) == 1
    assert (await room.hash(schedule))["run_count"] == "1"


@pytest.mark.parametrize("behind", [0, 3, 10])
async def test_whoever_takes_over_enqueues_the_slot_that_was_claimed(room: Room, behind: int) -> None:
    """B-33: also long after, and with a clock that is behind; later slots follow as usual, and none comes back."""
    schedule = room.schedule("*/5 * * * *")
    node = Node(room)
    await node.tick()
    room.clock.move_to(NOON + 5 * MINUTE)
    await node.tick_and("kill", ENQUEUE, after=False)
    clock = NodeClock(room.clock)
    other = room.scheduler(clock=clock)
    assert await other.tick() == 0
    await room.lapse(schedule)
    room.pass_time(minutes=6)
    clock.set_off(-behind * MINUTE)
    assert await other.tick() == 1
    for minutes in range(2, 9):
        room.clock.move_to(NOON + (minutes + behind) * MINUTE)
        await other.tick()
    assert room.queue.slots(schedule.id)[0] == "2030-01-01T12:05:00Z"
    room.clock.move_to(NOON + (11 + behind) * MINUTE)
    await other.tick()
    assert room.queue.slots(schedule.id) == ["2030-01-01T12:05:00Z", "2030-01-01T12:10:00Z"]
    assert len(room.queue.calls) == 2


async def test_a_question_that_is_asked_again_has_the_same_answer(room: Room) -> None:
    """A client that lost an answer repeats what it sent, and must not lose what it has won by that."""
    schedule = room.schedule("0 * * * *")
    states, hour = States(room.client), timedelta(hours=1)
    [seen] = await states.read([schedule.id])
    assert isinstance(seen, Stored)
    for token, answer in (("one", Claimed.OURS), ("one", Claimed.OURS), ("two", Claimed.CHANGED)):
        assert await states.claim(seen, NOON, NOON + hour, token, MINUTE) is answer
    await states.settle(seen, "one", NOON)
    await states.settle(seen, "one", NOON)
    assert (await room.hash(schedule))["run_count"] == "1"
    await room.store(schedule, firing="2030-01-01T13:00:00Z dead 0")
    [seen] = await states.read([schedule.id])
    assert isinstance(seen, Stored)
    for token, answer in (("three", Claimed.OURS), ("three", Claimed.OURS), ("four", Claimed.CHANGED)):
        assert await states.take_over(seen, token, MINUTE) is answer
