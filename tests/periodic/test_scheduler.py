"""One scheduler, one look at a time: what is due, what is enqueued, what Redis keeps of it, what is said and counted.
The document's integration tests of execution, persistence and several schedules (B-72)."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from ksana.observe.logs import JsonFormatter
from ksana.observe.redaction import Redactor
from ksana.periodic import CronScheduler, Job, JobPriority, ScheduleState, StateError
from tests.periodic.room import NOON, Recorder, Room, lock_key

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "ksana")


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The log as it is written for machines."""
    form = JsonFormatter(Redactor([]))
    return [json.loads(form.format(record)) for record in caplog.records]


def counted(scheduler: CronScheduler) -> dict[str, float]:
    body, _ = scheduler.metrics.render()
    samples = (line.rpartition(" ") for line in body.decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


async def test_a_due_schedule_puts_its_job_into_the_queue_once(room: Room) -> None:
    """B-35, B-42, B-43, B-46, B-47, B-72: the planned instant and the one at which it was looked at."""
    schedule = room.schedule("0 * * * *", payload=b'{"a": 1}', priority=JobPriority.HIGH)
    scheduler = room.scheduler(interval=1.0)
    assert await scheduler.tick() == 0
    room.clock.move_to(NOON + HOUR + timedelta(seconds=2.7))
    assert await scheduler.tick() == 1
    assert await scheduler.tick() == 0
    [job] = room.queue.calls
    assert (job.name, job.payload, job.priority) == ("report", b'{"a": 1}', "high")
    assert job.metadata == {
        "schedule_id": schedule.id,
        "scheduled_at": "2030-01-01T13:00:00Z",
        "triggered_at": "2030-01-01T13:00:02Z",
        "trigger_type": "cron",
    }
    assert await room.hash(schedule) == {
        "last_run": "2030-01-01T13:00:02Z",
        "next_run": "2030-01-01T14:00:00Z",
        "run_count": "1",
        "last_success": "2030-01-01T13:00:02Z",
    }


async def test_the_state_is_what_redis_keeps(room: Room) -> None:
    """B-4, B-12, B-40, B-48, B-49, B-50: six fields, formats included, and nothing is known of one that never ran."""
    schedule = room.schedule("0 * * * *")
    scheduler = room.scheduler()
    assert await scheduler.get_state(schedule.id) == ScheduleState(id=schedule.id)
    await room.store(
        schedule,
        last_run="2025-11-10T15:00:00Z",
        next_run="2025-11-10T16:00:00Z",
        run_count="240",
        last_success="2025-11-10T15:00:05+00:00",
        last_error="boom",
    )
    state = await scheduler.get_state(schedule.id)
    day = NOON.replace(year=2025, month=11, day=10, hour=15)
    assert (state.id, state.last_run, state.next_run) == (schedule.id, day, day + HOUR)
    assert (state.run_count, state.last_error, state.last_success) == (240, "boom", day + timedelta(seconds=5))


async def test_a_client_that_decodes_for_itself_will_do(room: Room, redis_url: str) -> None:
    schedule = room.schedule()
    async with Redis.from_url(redis_url, decode_responses=True) as client:
        scheduler = room.scheduler()
        scheduler = CronScheduler(room.registry, room.queue, client, clock=scheduler._clock)
        await scheduler.tick()
        room.pass_time(minutes=1)
        assert await scheduler.tick() == 1
        assert (await scheduler.get_state(schedule.id)).run_count == 1


@pytest.mark.parametrize("cron", ["* * * * *", "0 0 1 1 *"])
async def test_nothing_fires_because_it_was_deployed(room: Room, cron: str) -> None:
    """B-7, B-40, B-50: one that never ran waits for its next slot, and gets it although nobody was there in time."""
    schedule = room.schedule(cron)
    scheduler = room.scheduler()
    assert not await scheduler.is_due(schedule, room.clock.time)
    assert await scheduler.tick() == 0
    planned = room.registry.next_run(schedule, room.clock.time)
    assert (await room.hash(schedule)) == {"next_run": planned.strftime("%Y-%m-%dT%H:%M:%SZ")}
    room.clock.move_to(planned + timedelta(seconds=20))
    assert await room.scheduler().is_due(schedule, room.clock.time)
    assert await room.scheduler().tick() == 1


@pytest.mark.parametrize("garbage", [b"yesterday", b"\xff\xfe", b"2025-13-45T00:00:00Z", b""])
async def test_times_that_make_no_sense_are_as_good_as_none(room: Room, garbage: bytes) -> None:
    """B-50."""
    schedule = room.schedule()
    await room.store(
        schedule, last_run=garbage, next_run=garbage, last_success=garbage, run_count="many", firing="what"
    )
    scheduler = room.scheduler()
    state = await scheduler.get_state(schedule.id)
    assert (state.last_run, state.next_run, state.last_success, state.run_count) == (None, None, None, 0)
    assert await scheduler.tick() == 0
    room.pass_time(minutes=1)
    await room.store(schedule, run_count="0")
    assert await scheduler.tick() == 1


async def test_due_is_what_comes_after_the_last_run(room: Room) -> None:
    """B-39."""
    schedule = room.schedule("0 * * * *")
    scheduler = room.scheduler()
    await room.store(schedule, last_run="2030-01-01T12:00:00Z")
    assert not await scheduler.is_due(schedule, NOON + HOUR - timedelta(microseconds=1))
    assert await scheduler.is_due(schedule, NOON + HOUR)
    await room.store(schedule, last_run="2030-01-01T10:00:00Z")
    assert await scheduler.is_due(schedule, NOON)
    assert await scheduler.tick() == 1
    assert room.queue.slots(schedule.id) == ["2030-01-01T12:00:00Z"]


async def test_slots_missed_while_nobody_was_there_become_one(room: Room) -> None:
    """B-4, B-41: the newest of them; then all goes on as planned, and no slot comes twice after a restart."""
    schedule = room.schedule("0 * * * *")
    await room.store(schedule, last_run="2030-01-01T09:00:00Z", next_run="2030-01-01T10:00:00Z", run_count="7")
    assert await room.scheduler().tick() == 1
    assert await room.scheduler().tick() == 0
    room.clock.move_to(NOON + HOUR)
    assert await room.scheduler().tick() == 1
    assert room.queue.slots(schedule.id) == ["2030-01-01T12:00:00Z", "2030-01-01T13:00:00Z"]
    assert (await room.scheduler().get_state(schedule.id)).run_count == 9


@pytest.mark.parametrize(
    ("cron", "planned", "first"),
    [
        ("0 8 * * *", "2030-01-02T09:00:00Z", "2030-01-02T08:00:00Z"),
        ("0 8 * * *", "2030-01-01T09:00:00Z", "2030-01-02T08:00:00Z"),
        ("*/15 * * * *", "2030-01-02T09:00:00Z", "2030-01-01T12:15:00Z"),
        ("0 9 * * *", "2030-01-02T09:00:00Z", "2030-01-02T09:00:00Z"),
    ],
)
async def test_a_new_expression_waits_for_its_own_next_slot(room: Room, cron: str, planned: str, first: str) -> None:
    """A redeployment with another expression neither fires at once nor waits for the old plan."""
    schedule = room.schedule(cron)
    await room.store(schedule, last_run="2029-12-31T09:00:00Z", next_run=planned)
    scheduler = room.scheduler()
    assert await scheduler.tick() == 0
    assert (await room.hash(schedule))["next_run"] == first
    room.clock.move_to(NOON + timedelta(hours=21, minutes=1))
    assert await scheduler.tick() == 1


async def test_a_clock_that_is_behind_brings_nothing_back(room: Room) -> None:
    schedule = room.schedule("0 * * * *")
    await room.store(schedule, last_run="2030-01-01T13:00:00Z", next_run="2030-01-01T14:00:00Z")
    assert await room.scheduler().tick() == 0
    assert (await room.hash(schedule))["next_run"] == "2030-01-01T14:00:00Z"


async def test_a_disabled_schedule_is_listed_and_left_alone(room: Room) -> None:
    """B-19, B-38."""
    schedule = room.schedule(enabled=False)
    await room.store(schedule, last_run="2029-01-01T00:00:00Z")
    assert await room.scheduler().tick() == 0
    assert room.registry.list() == [schedule]
    assert await room.hash(schedule) == {"last_run": "2029-01-01T00:00:00Z"}


async def test_one_that_fails_stops_no_other(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    """B-38, B-60, B-63, B-72: a queue that refuses, a zone that has gone, a key that is no hash."""
    refused, zoneless, broken, good = (room.schedule(job=name) for name in ("refused", "zoneless", "broken", "good"))
    for schedule in (refused, zoneless, good):
        await room.store(schedule, last_run="2030-01-01T11:59:00Z")
    msgspec.structs.force_setattr(zoneless, "timezone", "Atlantis/Capital")
    await room.client.set(f"bananas:schedules:{broken.id}", "text")

    class Picky(Recorder):
        async def enqueue(self, job: Job) -> None:
            self.fails = job.name == "refused"
            await super().enqueue(job)

    room.queue = Picky()
    assert await room.scheduler().tick() == 1
    assert [job.name for job in room.queue.kept.values()] == ["good"]
    said = {line["schedule_id"]: (line["level"], line["msg"]) for line in lines(caplog)}
    assert said == {
        refused.id: ("ERROR", "Failed to enqueue scheduled job"),
        zoneless.id: ("ERROR", "Failed to calculate next run"),
        broken.id: ("ERROR", "Failed to get schedule state"),
        good.id: ("INFO", "Scheduled job enqueued"),
    }
    with pytest.raises(StateError):
        await room.scheduler().get_state(broken.id)


async def test_an_error_that_nobody_foresaw_stops_no_other(
    room: Room, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = room.schedule(job="bad"), room.schedule(job="good")
    for schedule in (bad, good):
        await room.store(schedule, last_run="2030-01-01T11:59:00Z")
    scheduler = room.scheduler()
    fire = scheduler._firing.fire

    async def stumble(due: Any) -> bool:
        if due.schedule == bad:
            raise LookupError("surprise")
        return await fire(due)

    monkeypatch.setattr(scheduler._firing, "fire", stumble)
    assert await scheduler.tick() == 1
    assert [line["msg"] for line in lines(caplog) if line["level"] == "ERROR"] == ["Failed to execute schedule"]


async def test_a_failed_enqueue_is_tried_again_at_the_next_look(room: Room) -> None:
    """B-45, B-46, B-49: the slot is not lost, what went wrong is kept until it went right, and is no run."""
    schedule = room.schedule("0 * * * *")
    scheduler = room.scheduler()
    await scheduler.tick()
    room.clock.move_to(NOON + HOUR)
    room.queue.fails = 3
    for _ in range(3):
        assert await scheduler.tick() == 0
        assert await room.hash(schedule) == {
            "next_run": "2030-01-01T13:00:00Z",
            "last_error": "the queue is full",
        }
        room.pass_time(seconds=1)
    assert await scheduler.tick() == 1
    assert room.queue.slots(schedule.id) == ["2030-01-01T13:00:00Z"]
    assert len({job.id for job in room.queue.calls}) == 1
    assert await room.hash(schedule) == {
        "last_run": "2030-01-01T13:00:03Z",
        "next_run": "2030-01-01T14:00:00Z",
        "run_count": "1",
        "last_success": "2030-01-01T13:00:03Z",
    }


async def test_a_queue_that_fails_for_long_owes_only_the_newest_slot(room: Room) -> None:
    """B-41, B-45."""
    schedule = room.schedule("0 * * * *")
    scheduler = room.scheduler()
    await scheduler.tick()
    room.queue.fails = 3
    for _ in range(4):
        room.pass_time(hours=1)
        await scheduler.tick()
    assert room.queue.slots(schedule.id) == ["2030-01-01T16:00:00Z"]


async def test_what_is_enqueued_is_told_in_one_line(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    """B-17, B-61, B-65."""
    schedule = room.schedule("0 * * * *")
    await room.store(schedule, last_run="2030-01-01T11:00:00Z")
    await room.scheduler().tick()
    [line] = lines(caplog)
    shown = ("level", "msg", "component", "schedule_id", "job_name", "job_id", "priority", "next_run")
    assert {name: line[name] for name in shown} == {
        "level": "INFO",
        "msg": "Scheduled job enqueued",
        "component": "scheduler",
        "schedule_id": schedule.id,
        "job_name": "report",
        "job_id": room.queue.calls[0].id,
        "priority": "normal",
        "next_run": "2030-01-01T13:00:00Z",
    }


async def test_a_locked_schedule_is_skipped_without_a_word(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    """B-31, B-33, B-42, B-58, B-63, B-64, B-65: whoever holds the lock may take its sixty seconds, and no more."""
    schedule = room.schedule()
    await room.store(schedule, last_run="2030-01-01T11:59:00Z")
    await room.client.set(lock_key(schedule), "somebody", ex=60)
    scheduler = room.scheduler()
    assert await scheduler.tick() == 0
    [line] = lines(caplog)
    assert (line["level"], line["msg"], line["component"]) == (
        "DEBUG",
        "Schedule already locked by another instance",
        "scheduler",
    )
    seen = counted(scheduler)
    assert seen[f'scheduler_lock_contended_total{{schedule_id="{schedule.id}"}}'] == 1
    assert f'scheduler_lock_failures_total{{schedule_id="{schedule.id}"}}' not in seen
    await room.lapse(schedule)
    assert await scheduler.tick() == 1


async def test_the_lock_is_held_while_the_job_is_enqueued_and_no_longer(room: Room) -> None:
    """B-31, B-32, B-33: under its documented name, with a token, for sixty seconds."""
    schedule = room.schedule()
    await room.store(schedule, last_run="2030-01-01T11:59:00Z")
    held: list[tuple[Any, int]] = []

    class Watching(Recorder):
        async def enqueue(self, job: Job) -> None:
            held.append((await room.client.get(lock_key(schedule)), await room.client.pttl(lock_key(schedule))))
            await super().enqueue(job)

    room.queue = Watching()
    await room.scheduler().tick()
    [(token, ttl)] = held
    assert len(token) == 36
    assert 59_000 < ttl <= 60_000
    assert not await room.client.exists(lock_key(schedule))


async def test_a_queue_that_hangs_is_given_up_before_the_lease_ends(room: Room) -> None:
    """B-33, B-45: nobody knows whether the job arrived, so the same slot is enqueued again, under the same id."""
    schedule = room.schedule()
    await room.store(schedule, last_run="2030-01-01T11:59:00Z")

    class Hanging(Recorder):
        async def enqueue(self, job: Job) -> None:
            await super().enqueue(job)
            if len(self.calls) == 1:
                await asyncio.Event().wait()

    room.queue = Hanging()
    scheduler = room.scheduler(lock_ttl=0.1)
    assert await scheduler.tick() == 0
    assert (await room.hash(schedule))["last_error"] == "the queue did not answer within 0.075 s"
    room.pass_time(minutes=1)
    assert await room.scheduler().tick() == 1
    assert await room.scheduler().tick() == 1
    assert room.queue.slots(schedule.id) == ["2030-01-01T12:00:00Z", "2030-01-01T12:01:00Z"]
    assert [job.id for job in room.queue.calls][:2] == [room.queue.calls[0].id] * 2


async def test_every_series_of_the_document_is_counted(room: Room) -> None:
    """B-64: after a success, a failed enqueue and a Redis that does not answer."""
    schedule = room.schedule("0 * * * *")
    await room.store(schedule, last_run="2030-01-01T11:00:00Z")
    wire = room.wire()
    scheduler = room.scheduler(wire)
    room.queue.fails = 1
    await scheduler.tick()
    await scheduler.tick()

    async def refuse(send: Any) -> None:
        raise ConnectionError("gone")

    room.pass_time(hours=1)
    wire.at, wire.fault = wire.steps + 2, refuse
    await scheduler.tick()
    label = f'{{schedule_id="{schedule.id}"'
    seen = counted(scheduler)
    assert seen[f'scheduler_runs_total{label},status="success"}}'] == 1
    assert seen[f'scheduler_runs_total{label},status="error"}}'] == 1
    assert seen[f"scheduler_run_duration_seconds_count{label}}}"] == 2
    assert seen[f"scheduler_last_run_timestamp{label}}}"] == (NOON + timedelta(seconds=30)).timestamp()
    assert seen[f"scheduler_next_run_timestamp{label}}}"] == (NOON + 2 * HOUR).timestamp()
    assert seen[f"scheduler_lock_failures_total{label}}}"] == 1


async def test_a_redis_that_does_not_answer_is_told_and_asked_again(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    """B-39, B-57, B-63: at every step, with the id of the schedule and the error; nothing is due meanwhile."""
    schedule = room.schedule()
    async with Redis(port=1, retry=Retry(NoBackoff(), 0)) as nobody:
        away = CronScheduler(room.registry, room.queue, nobody, clock=room.scheduler()._clock)
        assert await away.tick() == 0
        assert not await away.is_due(schedule, room.clock.time)
        with pytest.raises(StateError):
            await away.get_state(schedule.id)
    assert [line["msg"] for line in lines(caplog)] == ["Failed to get schedule state"] * 2

    async def refuse(send: Any) -> None:
        raise ConnectionError("gone")

    for step, message in ((2, "Failed to acquire schedule lock"), (4, "Failed to update schedule state")):
        room.pass_time(minutes=1)
        await room.store(schedule, next_run=room.clock.time.strftime("%Y-%m-%dT%H:%M:00Z"))
        caplog.clear()
        wire = room.wire()
        wire.at, wire.fault = step, refuse
        scheduler = room.scheduler(wire)
        await scheduler.tick()
        [told] = [line for line in lines(caplog) if line["level"] == "ERROR"]
        assert (told["msg"], told["component"]) == (message, "scheduler")
        assert (told["schedule_id"], told["error"]) == (schedule.id, "gone")
        await scheduler.tick()
        assert "firing" not in await room.hash(schedule)
    assert len(room.queue.calls) == 2


async def test_a_look_costs_one_question_per_schedule_and_a_lock_only_when_due(room: Room) -> None:
    """B-67: and a run one write of its fields and one of its count."""
    due, idle = room.schedule("0 * * * *"), room.schedule("0 0 * * *")
    await room.store(due, last_run="2030-01-01T11:00:00Z")
    await room.store(idle, last_run="2030-01-01T00:00:00Z", next_run="2030-01-02T00:00:00Z")
    async with room.client.monitor() as monitor:
        await room.scheduler().tick()
        await room.client.echo(due.id)
        seen: list[list[str]] = []
        while not seen or seen[-1][0] != "ECHO":
            words = (await monitor.next_command())["command"].split()
            if words and (words[0] == "ECHO" or due.id in str(words) or idle.id in str(words)):
                seen.append([words[0].upper(), *words[1:]])
    commands = [(words[0], due.id in str(words)) for words in seen if words[0] not in ("EVAL", "ECHO", "TIME")]
    assert commands.count(("HGETALL", True)) == commands.count(("HGETALL", False)) == 1
    assert [command for command, is_due in commands if not is_due] == ["HGETALL"]
    assert [command for command, is_due in commands if is_due].count("SET") == 1
    assert [command for command, is_due in commands if is_due].count("HINCRBY") == 1
