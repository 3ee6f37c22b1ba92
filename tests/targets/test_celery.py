"""The Celery target: what its config may say, what is shown of addresses, and a real fleet of one worker."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from redis.asyncio import Redis

from ksana.domain.errors import InvalidArgument
from ksana.domain.outcomes import Outcome, Verdict
from ksana.engine.clock import SystemClock
from ksana.targets.celery import CeleryTarget
from ksana.targets.celery.config import masked
from ksana.targets.celery.fleets import Answer, Fleets, Message, NotInstalled
from tests.kit.processes import program
from tests.targets.contexts import AMPLE, attempt_context

RABBITMQ = os.environ.get("KSANA_TEST_RABBITMQ_URL", "amqp://guest:guest@127.0.0.1:5672//")

WORKER = """
from celery import Celery

app = Celery("fleet", broker="{broker}", backend="{backend}")
app.conf.update(result_expires=60, worker_hijack_root_logger=False)

@app.task(name="add")
def add(x, y):
    return x + y

@app.task(name="tell", bind=True)
def tell(self):
    about = self.request.headers["ksana"]
    return [about["run_id"], about["attempt"], about["input"]]

@app.task(name="boom")
def boom():
    raise LookupError("no row 7")
"""


def target_of(environ: Mapping[str, str], **more: Any) -> CeleryTarget:
    return CeleryTarget(environ=environ, sleep=SystemClock().sleep, **more)


class Recording(Fleets):
    """Takes everything, or raises."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.sent: list[tuple[str, Message]] = []
        self._error = error

    def send(self, broker: str, message: Message, connect_timeout: float) -> None:
        if self._error is not None:
            raise self._error
        self.sent.append((broker, message))

    def ask(self, backend: str, task_id: str) -> Answer:
        raise ConnectionRefusedError(f"{backend} refused")


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({}, "target.task"),
        ({"task": "t", "args": "a"}, "target.args"),
        ({"task": "t", "kwargs": {1: 2}}, "target.kwargs"),
        ({"task": "t", "broker": "env:DATABASE_URL"}, "target.broker"),
        ({"task": "t", "broker": "amqp://u:p@h//"}, "target.broker"),
        ({"task": "t", "broker": "redis://:p@h/0"}, "target.broker"),
        ({"task": "t", "broker": 7}, "target.broker"),
        ({"task": "t", "backend": "rpc://"}, "target.backend"),
        ({"task": "t", "backend": "env:CELERY_RESULT_BACKEND", "mode": "async"}, "target.backend"),
        ({"task": "t", "queue": ""}, "target.queue"),
        ({"task": "t", "priority": 256}, "target.priority"),
        ({"task": "t", "expires": "soon"}, "expires"),
        ({"task": "t", "mode": "later"}, "target.mode"),
    ],
)
def test_a_config_that_cannot_work_is_refused_by_its_field(config: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        target_of({}, may_name_hosts=True).check(config)
    assert [problem.field.removeprefix("target.") for problem in refused.value.problems] == [
        field.removeprefix("target.")
    ]


def test_a_server_that_others_reach_takes_brokers_from_its_environment_alone() -> None:
    with pytest.raises(InvalidArgument, match="env:CELERY_"):
        target_of({}).check({"task": "t", "broker": "amqp://internal//"})
    checked = target_of({}).check({"task": "t"})
    assert checked == {"task": "t", "args": [], "kwargs": {}, "broker": "env:CELERY_BROKER_URL", "mode": "sync"}


async def test_what_is_sent_is_what_the_job_and_the_run_say() -> None:
    fleet = Recording()
    target = target_of({"CELERY_BROKER_URL": "amqp://u:p%40ss@h//"}, fleets=fleet)
    config = target.check(
        {"task": "bill", "args": [1], "kwargs": {"a": 1}, "queue": "q", "priority": 5, "expires": "1m"}
    )
    first = await target.execute(attempt_context(attempt=1, fence=4), config)
    second = await target.execute(
        attempt_context(attempt=2, fence=6, input={"args": [2], "kwargs": {"b": 2}, "mode": "async"}), config
    )
    (broker, sent), (_, again) = fleet.sent
    assert (broker, sent.args, sent.kwargs) == ("amqp://u:p%40ss@h//", [1], {"a": 1})
    assert (sent.queue, sent.priority, sent.expires) == ("q", 5, 60.0)
    assert (again.args, again.kwargs) == ([2], {"a": 1, "b": 2})
    assert "callback_url" in again.headers["ksana"]
    assert sent.id != again.id
    assert (first.verdict, second.verdict) == (Verdict.SUCCESS, Verdict.WAIT)
    assert msgspec.json.decode(first.result or b"") == {"task_id": sent.id}
    assert "ss@" not in repr(first)
    await target.close()


async def test_no_password_is_shown_whatever_goes_wrong() -> None:
    url = "amqp://shop:s3cr%40t@h:5672//"
    leaking = ConnectionError(f"cannot reach {url}: password s3cr@t was wrong (s3cr%40t)")
    target = target_of({"CELERY_BROKER_URL": url}, fleets=Recording(leaking))
    outcome = await target.execute(attempt_context(), target.check({"task": "t"}))
    assert outcome.verdict is Verdict.RETRY
    assert "s3cr" not in repr(outcome)
    assert masked("redis://:x@h/0 and https://u:y@h") == "redis://:***@h/0 and https://u:***@h"
    missing = target_of({"CELERY_BROKER_URL": url}, fleets=Recording(NotInstalled("pip install")))
    assert (await missing.execute(attempt_context(), missing.check({"task": "t"}))).error == "pip install"
    await target.close()
    await missing.close()


def listens(url: str) -> bool:
    host, _, port = url.rpartition("@")[2].strip("/").partition(":")
    try:
        socket.create_connection((host, int(port or 5672)), 1).close()
    except OSError:
        return False
    return True


@asynccontextmanager
async def fleet(directory: Path, backend: str, queue: str) -> AsyncIterator[None]:
    """One worker process on a queue of its own, which goes with it."""
    (directory / "fleet.py").write_text(WORKER.format(broker=RABBITMQ, backend=backend))
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "INFO")
    command = (sys.executable, "-m", "celery", "-A", "fleet", "worker", "-P", "solo", "-Q", queue, "-n", queue, *quiet)
    where = {"CELERY_BROKER_URL": RABBITMQ, "CELERY_RESULT_BACKEND": backend}
    async with program(*command, directory=directory, environment=where) as process:
        try:
            await process.line("ready")
            yield
        finally:
            # A worker that is asked to stop takes its time.
            await process.kill()
            await asyncio.to_thread(forget, queue, nobodys(queue))


def nobodys(queue: str) -> str:
    """A queue without a worker."""
    return f"{queue}_nobody"


def forget(*queues: str) -> None:
    from celery import Celery

    with Celery(set_as_current=False).connection_for_write(RABBITMQ) as connection:
        for queue in queues:
            connection.default_channel.queue_delete(queue)
            connection.default_channel.exchange_delete(queue)


async def test_tasks_of_a_real_fleet_end_runs(
    tmp_path: Path, redis_url: str, own_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not listens(RABBITMQ):
        pytest.skip("no RabbitMQ: nobody listens there; KSANA_TEST_RABBITMQ_URL may say where")
    environ = {"CELERY_BROKER_URL": RABBITMQ, "CELERY_RESULT_BACKEND": redis_url}
    # Celery would rather believe these.
    for name in environ:
        monkeypatch.setenv(name, "redis://127.0.0.1:1/0")
    target = target_of(environ)
    queue = f"{own_prefix}_celery"
    seen: list[Outcome] = []

    async def outcome(task: str, timeout: timedelta = AMPLE, **more: Any) -> Outcome:
        config = target.check({"task": task, "backend": "env:CELERY_RESULT_BACKEND", "queue": queue, **more})
        # Ids of tasks follow from it, and the backend is shared.
        context = msgspec.structs.replace(
            attempt_context(timeout=timeout, input={"day": 1}), trace_id=secrets.token_hex(16)
        )
        seen.append(await target.execute(context, config))
        return seen[-1]

    async with fleet(tmp_path, redis_url, queue):
        added = await outcome("add", args=[40], kwargs={"y": 2})
        assert (added.verdict, added.result, added.error) == (Verdict.SUCCESS, b"42", "")
        assert (await outcome("tell")).result == b'[7,1,{"day":1}]'
        failed = await outcome("boom")
        assert (failed.verdict, failed.error) == (Verdict.RETRY, "boom failed: LookupError: no row 7")
        accepted = await outcome("add", backend=None, args=[1, 1])
        assert accepted.verdict is Verdict.SUCCESS
        late = await outcome("add", timedelta(milliseconds=300), queue=nobodys(queue))
        assert (late.verdict, late.timed_out) == (Verdict.RETRY, True)
    await target.close()
    ids = [one.exchange.request_headers["task_id"] for one in seen if one.exchange is not None]
    async with Redis.from_url(redis_url) as redis:
        await redis.delete(*(f"celery-task-meta-{task_id}" for task_id in ids))


async def test_a_task_that_was_sent_is_not_sent_again_because_its_backend_is_away() -> None:
    fleet = Recording()
    url = "redis://:s3cret@127.0.0.1:1/0"
    target = target_of({"CELERY_BROKER_URL": "amqp://h//", "CELERY_RESULTS": url}, fleets=fleet)
    config = target.check({"task": "t", "backend": "env:CELERY_RESULTS"})
    outcome = await target.execute(attempt_context(timeout=timedelta(milliseconds=100)), config)
    assert (outcome.verdict, outcome.timed_out, len(fleet.sent)) == (Verdict.RETRY, True, 1)
    assert "refused" in outcome.error
    assert fleet.sent[0][1].expires == 0.1
    assert "s3cret" not in repr(outcome)
    await target.close()


async def test_a_broker_that_is_away_is_tried_again() -> None:
    target = target_of({"CELERY_BROKER_URL": "amqp://shop:s3cret@127.0.0.1:1//"})
    outcome = await target.execute(attempt_context(), target.check({"task": "t"}))
    assert (outcome.verdict, outcome.timed_out) == (Verdict.RETRY, False)
    assert "refused" in outcome.error
    assert "s3cret" not in repr(outcome)
    await target.close()
