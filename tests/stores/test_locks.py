"""Nodes in each other's way: what one holds in an open transaction must not stop another's work."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from ksana.domain.audit import AuditEntry
from ksana.domain.items import Enqueued, Item, Pull, new_item, stored_queue
from ksana.domain.limits import QueueSettings
from ksana.domain.ports import Store
from ksana.domain.states import Event
from ksana.stores.sql import firing, limits, turns
from ksana.stores.sql.catalog import Catalog
from ksana.stores.sql.due_items import DueItems
from ksana.stores.sql.families import Families
from ksana.stores.sql.moving import apply_moves, prepare
from ksana.stores.sql.store import SqlStore
from ksana.stores.sql.tx import Step, Tx
from tests.stores.builders import (
    HOUR,
    NOW,
    a_claim,
    a_job,
    a_move,
    a_planned_job,
    a_run,
    claim,
    fires,
    ids,
    put,
    slot_run,
)
from tests.stores.conftest import MakeStore

# Far beyond any answer, well below the lock timeout: who waits for a lock fails here.
DEADLINE = 5


@pytest.fixture(params=["postgres", "mysql"])
async def nodes(request: pytest.FixtureRequest) -> AsyncIterator[tuple[SqlStore, Store]]:
    make: MakeStore = request.getfixturevalue(f"{request.param}_stores")
    one, other = make(), make()
    assert isinstance(one, SqlStore)
    await one.open()
    await other.open()
    yield one, other
    await one.close()
    await other.close()


@asynccontextmanager
async def held_open(store: SqlStore, step: Step[Any]) -> AsyncIterator[Any]:
    """Run a step and keep its transaction open."""
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    release = asyncio.Event()

    async def wait(tx: Any) -> None:
        done.set_result(await step(tx))
        await release.wait()

    holding = asyncio.ensure_future(store._database.write(wait))
    yield await done
    release.set()
    await holding


async def test_an_open_claim_locks_no_more_than_it_took(nodes: tuple[SqlStore, Store]) -> None:
    one, other = nodes
    await one.add_jobs([a_job(1)])
    await put(one, *[a_run(n) for n in range(1, 61)])
    async with held_open(one, lambda tx: turns.turn(tx, Catalog(), Families(), prepare([]), a_claim(limit=10))) as turn:
        async with asyncio.timeout(DEADLINE):
            rest = await claim(other)
    taken = [row[0] for row in turn.claimed]
    assert sorted(taken + ids(rest)) == list(range(1, 61))
    assert len(taken) == 10


async def test_an_open_claim_holds_up_no_new_work(nodes: tuple[SqlStore, Store]) -> None:
    one, other = nodes
    await one.add_jobs([a_job(1), a_planned_job(7100)])
    await put(one, *[a_run(n) for n in range(1, 21)])
    async with held_open(one, lambda tx: turns.turn(tx, Catalog(), Families(), prepare([]), a_claim(limit=100))):
        async with asyncio.timeout(DEADLINE):
            await put(other, a_run(101), a_run(102, 7100))
            await other.fire_due(NOW, 10, fires(runs=lambda due: [slot_run(due, 103)]))
            await other.add_jobs([a_job(3)])
            assert sorted(ids(await claim(other))) == [101, 102, 103]


async def test_an_open_fire_holds_up_no_other_job(nodes: tuple[SqlStore, Store]) -> None:
    one, other = nodes
    # Ids of this test alone: rows deleted a moment ago under the same key would be in the way for a while.
    jobs = range(7001, 7011)
    await one.add_jobs([a_planned_job(n) for n in jobs])
    decide = fires(runs=lambda due: [slot_run(due, due.job.id)])
    async with held_open(one, lambda tx: firing.fire_due(tx, Catalog(), NOW, 3, decide)) as fired:
        async with asyncio.timeout(DEADLINE):
            rest = await other.fire_due(NOW, 100, decide)
            await put(other, a_run(99, 7010))
            await claim(other)
    assert sorted(ids(fired.runs) + ids(rest.runs)) == list(jobs)


async def test_an_open_move_holds_up_no_other_move(nodes: tuple[SqlStore, Store]) -> None:
    one, other = nodes
    await one.add_jobs([a_job(1)])
    await put(one, *[a_run(n) for n in range(1, 21)])
    runs = [claimed.run for claimed in await claim(one)]
    moves = [a_move(run, Event.SUCCEED) for run in runs]
    async with held_open(one, lambda tx: apply_moves(tx, prepare(moves[::2]))):
        async with asyncio.timeout(DEADLINE):
            assert (await other.turn(moves[1::2], a_claim())).lost == frozenset()


async def test_a_queue_that_is_locked_shows_as_set_and_holds_up_no_other(nodes: tuple[SqlStore, Store]) -> None:
    one, other = nodes
    assert isinstance(other, SqlStore)
    # Names of this test alone, as above.
    mail, sms = stored_queue("mail 7"), stored_queue("sms 7")
    settings = QueueSettings(queue=mail, concurrency=5, updated_at=NOW)
    entry = AuditEntry(id=1, at=NOW, actor="", action="", subject="queue", subject_id="mail 7")
    await one.set_queue(settings, entry)
    runs = [new_item(n, queue, Item(), NOW, due_at=NOW) for n, queue in ((7001, "mail 7"), (7002, "sms 7"))]
    await one.enqueue([Enqueued(run) for run in runs])
    pull = Pull(queue=sms, now=NOW, limit=5, holder="w", until=NOW + HOUR)
    async with held_open(one, lambda tx: limits.lock_limits(tx, mail)) as locked:
        async with asyncio.timeout(DEADLINE):
            looked = await other._database.write(lambda tx: look(tx, msgspec.structs.replace(pull, queue=mail)))
            assert [run.id for run in (await other.pull(pull)).runs] == [7002]
    assert locked.settings == settings
    assert looked == ([7001], True)


async def look(tx: Tx, pull: Pull) -> tuple[list[int], bool]:
    items = DueItems(tx, pull)
    return [run.id for run in await items.page()], items.is_queue_set
