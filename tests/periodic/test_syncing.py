"""Code says what jobs are, operators say whether they run and what is overridden; a start undoes neither."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ksana import Ksana
from ksana.domain.audit import AuditQuery
from ksana.domain.errors import AlreadyExists
from ksana.domain.jobs import Job, JobSpec, TargetSpec
from ksana.domain.policies import Retry
from ksana.domain.queries import JobQuery
from ksana.domain.schedules import CronSchedule, Every
from ksana.engine.engine import Engine
from ksana.periodic.syncing import sync
from ksana.stores.open import open_store
from ksana.targets.builtin import NoopTarget
from ksana.targets.python import PythonTarget
from tests.kit.clock import NodeClock, VirtualClock

replace = msgspec.structs.replace


class Shop:
    """A store that several deployments come to, one after the other."""

    def __init__(self, url: str) -> None:
        self.clock = VirtualClock()
        self.functions: dict[str, Callable[..., Any]] = {}
        self.engine = Engine(
            open_store(url),
            {"python": PythonTarget(self.functions, lazy=True), "noop": NoopTarget()},
            clock=NodeClock(self.clock),
        )

    async def deploy(self, *whens: Callable[[Ksana], Any], name: str = "app", prune: bool = False) -> None:
        app = Ksana()
        for when in whens:
            when(app)(report)
        await sync(self.engine, app.definitions, name, prune=prune)

    async def jobs(self) -> dict[str, Job]:
        return {job.ref: job for job in (await self.engine.store.find_jobs(JobQuery(surface="code"))).items}

    async def job(self) -> Job:
        [job] = (await self.jobs()).values()
        return job

    async def override(self, **fields: Any) -> Job:
        return await self.engine.jobs.change((await self.job()).id, lambda job: replace(job, **fields))


def report() -> None: ...


@pytest.fixture
async def shop(fresh_sqlite_path: Path) -> AsyncIterator[Shop]:
    shop = Shop(f"sqlite:///{fresh_sqlite_path}")
    await shop.engine.store.open()
    yield shop
    await shop.engine.store.close()


async def test_a_definition_becomes_a_job_and_the_same_again_changes_nothing(shop: Shop) -> None:
    await shop.deploy(lambda app: app.cron("0 9 * * *", retries=2))
    first = await shop.job()
    assert (first.name, first.surface, first.retry.max_attempts) == ("report", "code", 3)
    assert first.next_fire_at is not None
    await shop.deploy(lambda app: app.cron("0 9 * * *", retries=2))
    assert await shop.job() == first


async def test_what_code_says_now_replaces_what_it_said_before(shop: Shop) -> None:
    await shop.deploy(lambda app: app.cron("0 9 * * *", retries=2))
    await shop.deploy(lambda app: app.cron("0 10 * * *", tz="Asia/Shanghai", timeout="1m", kwargs={"a": 1}))
    job = await shop.job()
    assert job.schedule == CronSchedule("0 10 * * *", "Asia/Shanghai")
    assert (job.retry.max_attempts, job.timeouts.total) == (1, timedelta(minutes=1))
    assert job.target.config["kwargs"] == {"a": 1}


async def test_an_override_outlives_deployments_until_it_says_the_same_as_code(shop: Shop) -> None:
    await shop.deploy(lambda app: app.cron("0 9 * * *", retries=2))
    overriding = CronSchedule("0 3 * * *")
    await shop.override(schedule=overriding)
    await shop.deploy(lambda app: app.cron("0 10 * * *", retries=5))
    job = await shop.job()
    assert (job.schedule, job.retry.max_attempts) == (overriding, 6)
    assert job.extras["code"]["schedule"]["expr"] == "0 10 * * *"
    await shop.override(schedule=CronSchedule("0 10 * * *"))
    await shop.deploy(lambda app: app.cron("0 11 * * *", retries=5))
    assert (await shop.job()).schedule == CronSchedule("0 11 * * *")


async def test_a_paused_job_stays_paused(shop: Shop) -> None:
    await shop.deploy(lambda app: app.every("30s"))
    await shop.engine.jobs.pause((await shop.job()).id)
    await shop.deploy(lambda app: app.every("1m", retries=3))
    job = await shop.job()
    assert (job.enabled, job.next_fire_at) == (False, None)
    assert job.retry == Retry(max_attempts=4)
    assert isinstance(job.schedule, Every)
    assert job.schedule.every == timedelta(minutes=1)


async def test_an_interval_goes_on_counting_through_deployments(shop: Shop) -> None:
    await shop.deploy(lambda app: app.every("1h"))
    first = await shop.job()
    shop.clock.move_to(shop.clock.time + timedelta(minutes=50))
    await shop.deploy(lambda app: app.every("1h", retries=1))
    assert (await shop.job()).next_fire_at == first.next_fire_at
    operators = Every(timedelta(hours=1), shop.clock.time)
    await shop.override(schedule=operators)
    await shop.deploy(lambda app: app.every("1h"))
    assert (await shop.job()).schedule == operators
    await shop.deploy(lambda app: app.every("2h"))
    assert (await shop.job()).schedule == Every(timedelta(hours=2), first.created_at)


async def test_what_others_made_is_not_touched(shop: Shop) -> None:
    """A job of an API by the same name, and one of another program."""
    spec = JobSpec(name="report", ref="report", target=TargetSpec("noop"))
    by_api = await shop.engine.jobs.create("v2", spec)
    await shop.deploy(lambda app: app.every("1s", name="theirs"), name="other")
    theirs = (await shop.jobs())["theirs"]
    await shop.deploy(lambda app: app.every("1s"), prune=True)
    assert await shop.engine.jobs.get(by_api.id) == by_api
    assert await shop.engine.jobs.get(theirs.id) == theirs
    with pytest.raises(AlreadyExists, match="'theirs' belongs to the app 'other'"):
        await shop.deploy(lambda app: app.every("1s", name="theirs"))


async def test_what_left_the_code_is_said_and_deleted_only_if_asked(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    await shop.deploy(lambda app: app.every("1s", name="old"), lambda app: app.every("1s", name="new"))
    await shop.deploy(lambda app: app.every("1s", name="new"))
    assert list(await shop.jobs()) == ["old", "new"]
    assert [record.levelno for record in caplog.records if "old is no longer in the code" in record.message] == [
        logging.WARNING
    ]
    await shop.deploy(lambda app: app.every("1s", name="new"), prune=True)
    assert list(await shop.jobs()) == ["new"]
    await shop.deploy(lambda app: app.every("1s", name="old"), lambda app: app.every("1s", name="new"))
    assert sorted(await shop.jobs()) == ["new", "old"]


async def test_several_nodes_may_start_at_once(shop: Shop) -> None:
    await asyncio.gather(*(shop.deploy(lambda app: app.every("1s")) for _ in range(4)))
    assert list(await shop.jobs()) == ["report"]


async def test_what_an_older_program_wrote_is_said_anew(shop: Shop) -> None:
    await shop.deploy(lambda app: app.cron("0 9 * * *"))
    await shop.override(extras={"app": "app", "code": {"schedule": "in words"}}, schedule=CronSchedule("0 3 * * *"))
    await shop.deploy(lambda app: app.cron("0 9 * * *"))
    assert (await shop.job()).schedule == CronSchedule("0 9 * * *")


async def test_what_code_brings_along_is_in_the_audit_as_done_by_code(shop: Shop) -> None:
    await shop.deploy(lambda app: app.cron("0 9 * * *"))
    await shop.deploy(lambda app: app.cron("0 9 * * *"))
    await shop.override(enabled=False)
    await shop.deploy(prune=True)
    entries = (await shop.engine.store.find_audit(AuditQuery(subject="job"))).items
    assert [(entry.actor, entry.action) for entry in entries] == [("code", "job.delete"), ("code", "job.create")]
