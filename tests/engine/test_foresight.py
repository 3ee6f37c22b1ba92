"""Slots of one instant are worked out before it. Whatever comes in between, they become what they would have become."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import cast

import pytest
from msgspec.structs import replace

from ksana.domain.fires import DueJob, Lateness
from ksana.domain.foresight import Foreseen, Prospect, Sight
from ksana.domain.policies import MisfireRule, OnUncertain, OverlapRule
from ksana.domain.ports import Store
from ksana.domain.states import Reason, State
from ksana.engine import foresight
from ksana.engine.foresight import Foresight
from tests.domain.test_fires import Counting
from tests.engine.conftest import Create
from tests.kit.clock import NodeClock, VirtualClock
from tests.kit.script import Reply
from tests.kit.world import World
from tests.stores.builders import a_planned_job

SECOND = timedelta(seconds=1)


def heard(world: World, verb: str) -> list[str]:
    """Fills when the store is next asked for that."""
    calls: list[str] = []

    async def note() -> None:
        calls.append(verb)

    world.main.gate.before[verb] = note
    return calls


async def test_what_was_foreseen_fires_on_time_and_what_has_changed_is_decided_anew(create_any_world: Create) -> None:
    world = await create_any_world(foresees_from=2, workers=4, queues=("default", "more"))
    calm, renamed, paused, deleted = [await world.job(every="1s") for _ in range(4)]
    busy = await world.job(every="1s", overlap=OverlapRule.SKIP, timeout="1h")
    other = await world.job(every="1s", queue="elsewhere")
    await world.advance("1s")
    foreseen = heard(world, "fire_foreseen")
    world.sink.improvise = lambda context: Reply(hangs=context.job_id == busy.id)
    await world.advance("1s")
    assert foreseen == ["fire_foreseen"]
    assert await world.states(calm) == [State.SUCCESS] * 2
    assert await world.states(other) == [State.SCHEDULED] * 2

    renamed = await world.main.engine.jobs.change(renamed.id, lambda job: replace(job, name="new"))
    await world.main.engine.jobs.pause(paused.id)
    await world.main.engine.jobs.delete(deleted.id)
    decided = heard(world, "fire_due")
    await world.advance("1s")
    assert decided == ["fire_due"]
    assert await world.states(calm) == [State.SUCCESS] * 3
    assert [run.job_version for run in await world.runs(renamed)] == [1, 1, renamed.version]
    assert await world.states(paused) == await world.states(deleted) == [State.SUCCESS] * 2
    assert await world.states(busy) == [State.SUCCESS, State.RUNNING, State.SKIPPED]
    assert all(delivery.at == delivery.context.planned_at for delivery in world.sink.deliveries)


@pytest.mark.parametrize("after_commit", [False, True])
async def test_a_foreseen_fire_without_an_answer_is_neither_lost_nor_doubled(
    create_any_world: Create, after_commit: bool
) -> None:
    world = await create_any_world(foresees_from=1, batch=2)
    jobs = [await world.job(every="2s", on_uncertain=OnUncertain.FAIL) for _ in range(5)]
    await world.advance("1s")
    with world.store_away("fire_foreseen", after_commit=after_commit, times=2) as outage:
        await world.advance("2s")
    assert outage.hits == 2
    await world.advance("3s")
    for job in jobs:
        assert await world.states(job) == [State.SUCCESS] * 3
    assert world.sink.count == len({one.context.run_id for one in world.sink.deliveries}) == 15


async def test_what_is_found_too_late_is_a_misfire_though_it_was_foreseen(create_world: Create) -> None:
    world = await create_world(foresees_from=1)
    job = await world.job(every="2s", misfire=MisfireRule.SKIP)
    await world.advance("1s")
    world.freeze("a")
    await world.advance("20s")
    await world.thaw("a")
    await world.settle()
    assert {record.reason for record in await world.gaps(job)} == {Reason.MISFIRE}
    assert all(delivery.at - delivery.context.planned_at <= 5 * SECOND for delivery in world.sink.deliveries)


class Many:
    """A store in which so many jobs come due a second after noon, and that knows how often it was asked."""

    def __init__(self, at: datetime, count: int) -> None:
        self.count = count
        self.asked = self.looks = 0
        self._at = at

    async def bursts(self, after: datetime, until: datetime, least: int) -> list[tuple[datetime, int]]:
        self.asked += 1
        return [(self._at, self.count)] if self.count >= least and after < self._at <= until else []

    async def look_ahead(
        self, at: datetime, after_id: int, limit: int, foresee: Callable[[DueJob], Prospect | None]
    ) -> Sight:
        self.looks += 1
        found = [foresee(DueJob(a_planned_job(1), at, at, 0))] * min(limit, self.count - after_id)
        through = after_id + limit if after_id + limit <= self.count else None
        return Sight(Foreseen(cast(list[Prospect], found)), through)


async def test_a_burst_is_worked_out_once_and_what_is_too_much_at_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foresight, "_CAPACITY", 40)
    time = VirtualClock()
    clock = NodeClock(time)
    at = clock.now() + 2 * SECOND
    store = Many(at, 100)
    ahead = Foresight(
        cast(Store, store),
        clock,
        Counting(),
        node_id=1,
        queues=("default",),
        lateness=Lateness(),
        batch=10,
        least=5,
        poll=SECOND,
    )

    async def look(has_fired: bool = False) -> datetime:
        return await ahead.look(clock.now() + 2 * SECOND if clock.now() > at else at, has_fired)

    assert await ahead.look(at + SECOND, has_fired=False) == at + SECOND
    assert store.asked == 0, "there is time to look again"
    await look()
    assert (store.asked, store.looks) == (1, 4)
    # It was just asked, and comes back before long only if cursors may have come into view meanwhile.
    assert await look() == at
    assert await look(has_fired=True) == await look() == clock.now() + SECOND / 4
    assert store.asked == 1
    time.move_to(clock.now() + SECOND / 4)
    assert await look() == at
    assert (store.asked, store.looks) == (2, 4), "there is no room for more"

    assert ahead.take(at - SECOND / 100) is None, "it is not due yet"
    taken = [ahead.take(at) for _ in range(2)]
    assert [one is not None and len(one.prospects) for one in taken] == [10] * 2
    time.move_to(clock.now() + SECOND / 4)
    await look()
    assert (store.asked, store.looks) == (3, 6), "it goes on where it stopped"
    store.count = 200
    time.move_to(clock.now() + SECOND / 4)
    await look()
    assert store.looks == 10, "with twice as many it starts over"
    # The instant has come: there is something better to do.
    time.move_to(at)
    assert [ahead.take(at) is not None for _ in range(5)] == [True] * 4 + [False]
    await look()
    assert store.looks == 10
    clock.set_off(-timedelta(hours=1))
    asked = store.asked
    await ahead.look(clock.now() + SECOND, has_fired=False)
    assert store.asked == asked + 1, "a clock that was set back makes nobody blind"
