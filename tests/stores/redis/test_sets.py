"""The sets by which everything is found say what the values say, whatever happened, and nothing stays behind."""

import pytest
from redis.asyncio import Redis

from ksana.domain.archive import Section
from ksana.domain.changes import JobChange
from ksana.domain.errors import StoreUnavailable
from ksana.domain.queries import RunQuery
from ksana.domain.retention import Retention
from ksana.domain.states import FINAL, UNFINISHED, Reason, State
from ksana.stores.redis.store import RedisStore
from tests.stores.builders import HOUR, NOW, a_job
from tests.stores.everything import CARRIED, fill
from tests.stores.model import ModelStore
from tests.stores.redis.keys import names_under, sets_told_again, sets_under
from tests.stores.test_model import Life

STEPS = 200


async def test_after_a_random_life_every_set_says_what_the_values_say(
    store: RedisStore, client: Redis, fresh_redis_prefix: str
) -> None:
    starts = {what: (await store.reserve_ids(what, 1)).stop for what in ("job", "run", "node")}
    life = Life(7, store, ModelStore(starts, await store.identity()))
    for _ in range(STEPS):
        await life.step()
    assert await sets_under(client, fresh_redis_prefix) == await sets_told_again(store, life.jobs)
    assert {run.state for run in (await store.find_runs(RunQuery(limit=10_000))).items} & UNFINISHED


async def test_what_is_restored_stands_in_the_same_sets_and_leaves_nothing_behind(
    store: RedisStore, client: Redis, fresh_redis_prefix: str
) -> None:
    things = await fill(store)
    jobs = [job.id for job in things[Section.JOBS]]
    assert await sets_under(client, fresh_redis_prefix) == await sets_told_again(store, jobs)
    for job in await store.get_jobs(jobs):
        change = JobChange(version=job.version, job=job, cancels=UNFINISHED - {State.STOPPING}, reason=Reason.OPERATOR)
        await store.change_jobs([change])
    later = max(run.due_at for run in things[Section.RUNS]) + HOUR
    await store.prune(Retention(later, later, 0, 1000))
    left = {run.state for run in (await store.find_runs(RunQuery(limit=1000))).items}
    assert left <= {State.DEAD_LETTER, State.STOPPING} | UNFINISHED
    assert not left & (FINAL - {State.DEAD_LETTER})
    runs = {run.id for run in (await store.find_runs(RunQuery(limit=1000))).items}
    kinds = ("run:", "input:", "attempts:", "ledger:", "artifact:", "checkpoint:")
    others = {run_id for section in CARRIED if section in _STRAYS for run_id in _run_ids(things[section])}
    for name in await names_under(client, fresh_redis_prefix):
        if name.startswith(kinds):
            assert int(name.partition(":")[2]) in runs | (others - {run.id for run in things[Section.RUNS]}), name


_STRAYS = (Section.ATTEMPTS, Section.CALLBACKS, Section.KEPT)


def _run_ids(items: list[object]) -> set[int]:
    return {item.run_id for item in items}  # type: ignore[attr-defined]


async def test_what_a_newer_version_wrote_is_left_alone(
    store: RedisStore, client: Redis, fresh_redis_prefix: str
) -> None:
    await store.close()
    await client.hset(f"{{{fresh_redis_prefix}}}:standing", "layout", "99")
    with pytest.raises(StoreUnavailable, match="newer version"):
        await store.open()
    with pytest.raises(StoreUnavailable, match="not open"):
        await store.ping()


async def test_stores_of_two_prefixes_do_not_know_of_each_other(redis_url: str, fresh_redis_prefix: str) -> None:
    one, other = (RedisStore(f"{redis_url}?prefix={fresh_redis_prefix}{name}") for name in "ab")
    await one.open()
    await other.open()
    try:
        await one.add_jobs([a_job(1, ref="mine")])
        await other.add_jobs([a_job(1, ref="mine", name="other")])
        assert [job.name for job in await one.get_jobs([1])] == ["job 1"]
        assert await one.identity() != await other.identity()
        assert (await one.counts(NOW)).jobs == {("v2", True): 1}
    finally:
        await one.close()
        await other.close()
