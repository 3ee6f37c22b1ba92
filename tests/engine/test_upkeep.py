"""What is old is forgotten, what is unfinished never."""

from datetime import timedelta

from ksana.domain.audit import AuditEntry, AuditQuery
from ksana.domain.policies import OverlapRule, Retry
from ksana.domain.states import State
from ksana.engine.keeper import Upkeep
from tests.engine.conftest import Create
from tests.kit.script import FAIL, RETRY, Reply


async def test_old_finished_runs_are_forgotten_and_unfinished_ones_never(create_any_world: Create) -> None:
    world = await create_any_world(upkeep=Upkeep(timedelta(hours=1), 0))
    done = await world.job()
    world.sink.replies(FAIL)
    for _ in range(3):
        await world.trigger(done)
    waiting = await world.job(overlap=OverlapRule.QUEUE, max_concurrency=0)
    scheduled = await world.job(queue="nobody's")
    retrying = await world.job(retry=Retry(2, initial_delay=timedelta(days=20)))
    world.sink.replies(RETRY)
    running = await world.job(timeout="24h")
    world.sink.replies(Reply(hangs=True), job_id=running.id)
    for job in (waiting, scheduled, retrying, running):
        await world.trigger(job)
    await world.advance("3h")
    assert await world.runs(done) == []
    left = [await world.states(job) for job in (waiting, scheduled, retrying, running)]
    assert left == [[State.WAITING], [State.SCHEDULED], [State.RETRYING], [State.RUNNING]]


async def test_the_newest_runs_of_a_job_are_kept_however_old(create_world: Create) -> None:
    world = await create_world(upkeep=Upkeep(timedelta(hours=1), 2))
    job = await world.job()
    runs = [await world.trigger(job) for _ in range(5)]
    await world.advance("2h")
    assert [run.id for run in await world.runs(job)] == [run.id for run in runs[-2:]]


async def test_a_forgotten_run_does_not_let_its_slot_fire_again(create_world: Create) -> None:
    world = await create_world(upkeep=Upkeep(timedelta(minutes=10), 0))
    await world.job(every="1m")
    await world.advance("1h")
    await world.restart()
    await world.advance("10m")
    assert len(set(world.sink.slots)) == world.sink.count


async def test_what_takes_many_steps_is_forgotten_at_one_go(create_world: Create) -> None:
    world = await create_world(upkeep=Upkeep(timedelta(hours=1), 0))
    entries = [
        AuditEntry(id=n, at=world.now, actor="a", action="b", subject="job", subject_id="1") for n in range(1200)
    ]
    await world.store.add_audit(entries)
    await world.advance("2h")
    assert (await world.store.find_audit(AuditQuery())).items == []
