"""The clients against a real server: the life of a job, and lists that follow their pages."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import assert_type

import pytest

from ksana import AsyncClient, Client
from ksana.client import Conflict, Invalid, Job, NotFound, Run
from ksana.domain.errors import InvalidArgument
from ksana.domain.states import State
from tests.cli.nodes import serving


def live(url: str) -> None:
    """What a program that blocks does with a server."""
    with Client(url) as k:
        job = k.jobs.create("ping", target={"kind": "echo", "config": {"message": "pong"}}, every="1h", tags=["a"])
        assert_type(job, Job)
        run = k.jobs.trigger(job, wait="20s")
        assert_type(run, Run)
        assert (run.ok, [attempt.result for attempt in k.runs.attempts(run)]) == (True, ["pong"])
        changed = k.jobs.change(job, version=1, cron="0 6 * * *", tz="Europe/Berlin", retry={"max_attempts": 2})
        assert (changed.version, changed.retry.max_attempts) == (2, 2)
        with pytest.raises(Conflict) as conflict:
            k.jobs.change(job, version=1, name="late")
        assert (conflict.value.status, conflict.value.code) == (412, "VERSION_CONFLICT")
        assert not k.jobs.pause(job).enabled
        assert k.jobs.resume(job.id).enabled
        again = [k.jobs.trigger(job, idempotency_key="once").id for _ in range(2)]
        assert again[0] == again[1]
        for _ in range(3):
            k.jobs.trigger(job, wait=20)
        runs = [run.id for run in k.runs.list(job=job, state="success", since="1h", page_size=2)]
        assert runs == sorted(runs, reverse=True)
        assert len(runs) == 5
        others = [k.jobs.create(f"j{i}", target={"kind": "noop"}).id for i in range(4)]
        assert [one.id for one in k.jobs.list(name="j", page_size=2)] == others
        preview = k.schedules.preview(cron="0 6 * * *", tz="Europe/Berlin", count=2)
        assert (preview.normalized, len(preview.next)) == ("0 0 6 * * *", 2)
        k.jobs.delete(job)
        with pytest.raises(NotFound):
            k.jobs.get(job)
        with pytest.raises(Invalid) as wrong:
            k.jobs.create("", target={"kind": "noop"})
        assert [problem.field for problem in wrong.value.problems] == ["name"]
        assert wrong.value.request_id


async def test_a_server_is_used_from_programs_that_block_and_from_programs_that_await(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as node:
        await asyncio.to_thread(live, node.url)
        monkeypatch.setenv("KSANA_URL", node.url)
        async with AsyncClient() as k:
            job = await k.jobs.create(
                "nap", target={"kind": "sleep", "config": {"for": "1h"}}, timeouts={"total": "2h"}
            )
            assert_type(job, Job)
            run = await k.jobs.trigger(job)
            canceled = await k.runs.cancel(run)
            assert canceled.state is State.CANCELED
            assert (await k.runs.wait(run)).state is State.CANCELED
            assert (await k.runs.retry(run)).id == run.id
            assert [run.job_name async for run in k.runs.list(name="nap")] == ["nap"]
            many = [k.jobs.get(job) for _ in range(5)]
            assert [one.id for one in await asyncio.gather(*many)] == [job.id] * 5
            await k.runs.cancel(run)
            await work(k)


async def work(k: AsyncClient) -> None:
    """What workers do."""
    mail = {"to": "somebody"}
    first = await k.queue.enqueue("mail", mail, idempotency_key="m-1")
    assert (await k.queue.enqueue("mail", mail, idempotency_key="m-1")).deduplicated
    second = await k.queue.enqueue("mail", delay="1h", max_attempts=1)
    about = await k.queue.enqueue_action("memory", "o-1", "verify", "2040-01-01T00:00:00Z")
    assert about.queue == "governance"
    [item] = await k.queue.pull("mail", "w-1", limit=10, wait="5s")
    assert (item.job_id, item.payload) == (first.job_id, mail)
    await k.queue.heartbeat(item, lease="1m", progress={"sent": 1})
    failed = await k.queue.fail(item, "no route", retry_after=0)
    assert (failed.status, failed.attempt) == ("queued", 1)
    [again] = await k.queue.pull("mail", "w-2")
    with pytest.raises(Conflict) as stale:
        await k.queue.ack(item)
    assert stale.value.code == "STALE_LEASE"
    await k.queue.release(again)
    [last] = await k.queue.pull("mail", "w-2")
    assert (await k.queue.ack(last, output={"sent": True})).status == "succeeded"
    assert (await k.queue.get(last)).output == {"sent": True}
    assert (await k.queue.get(second.job_id)).status == "queued"


def test_a_key_goes_along_and_one_that_cannot_be_sent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSANA_KEY", "ksk_1_x")
    assert Client()._wire.manners.headers["Authorization"] == "Bearer ksk_1_x"
    with pytest.raises(InvalidArgument, match="key"):
        AsyncClient(key="two\nlines")
