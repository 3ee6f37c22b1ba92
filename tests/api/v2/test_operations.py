"""Operations: one act on many jobs or runs, its progress, and calling it off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from ksana.api.kit import Scope
from ksana.domain.errors import InvalidState
from ksana.domain.items import Item, NewItem
from ksana.engine.operations import MOST_AT_ONCE
from tests.api.v2.world import DEADLINE, World

PATH = "/api/v2/operations"


async def until(world: World, begun: Any, is_so: Callable[[Any], bool]) -> Any:
    """The operation once it is so."""
    async with asyncio.timeout(DEADLINE):
        while True:
            seen = await world.seen(f"{PATH}/{begun['id']}")
            if is_so(seen):
                return seen
            await asyncio.sleep(0)


async def over(world: World, begun: Any) -> Any:
    return await until(world, begun, lambda seen: seen["state"] != "running")


async def wake_next(world: World) -> None:
    """Let time come to where the operation waits for."""
    async with asyncio.timeout(DEADLINE):
        while True:
            await asyncio.sleep(0)
            if (wake_at := world.clock.next_wake_at) is not None:
                break
    world.clock.move_to(wake_at)


async def begin(world: World, **body: Any) -> Any:
    answer = await world.post(PATH, body)
    assert answer.status == 202, answer.body
    assert answer.headers["location"] == f"{PATH}/{answer.json()['id']}"
    return answer.json()


async def test_jobs_found_by_a_filter_are_paused_and_resumed(world: World) -> None:
    for name in ("bill a", "bill b", "mail"):
        await world.job(name, schedule={"kind": "every", "every": "1m"})
    begun = await begin(world, action="pause", filter={"name": "BILL"}, reason="month end", until="2h")
    assert (begun["state"], begun["total"], begun["reason"], begun["actor"]) == ("running", 2, "month end", "loopback")
    seen = await over(world, begun)
    assert (seen["state"], seen["done"], seen["failed"], seen["errors"]) == ("done", 2, 0, [])
    assert seen["ended_at"] >= seen["started_at"]
    enabled = {job["name"]: job["enabled"] for job in (await world.seen("/api/v2/jobs"))["items"]}
    assert enabled == {"bill a": False, "bill b": False, "mail": True}
    ends = {(job["paused_until"], job["pause_reason"]) for job in (await world.seen("/api/v2/jobs"))["items"][:2]}
    assert ends == {("2030-01-01T14:00:00.000Z", "month end")}
    await over(world, await begin(world, action="resume", filter={"enabled": False}))
    assert (await world.seen("/api/v2/jobs?enabled=false"))["total"] == 0


async def test_what_cannot_be_done_is_told_one_by_one(world: World) -> None:
    job = await world.job()
    seen = await over(world, await begin(world, action="delete", ids=[job["id"], 77, 77]))
    assert (seen["total"], seen["done"], seen["failed"]) == (2, 1, 1)
    assert seen["errors"] == [{"id": 77, "message": "there is no job 77"}]


async def test_tags_are_put_on_and_taken_off(world: World) -> None:
    job = await world.job(tags=["old", "kept"])
    await over(world, await begin(world, action="tag", ids=[job["id"]], tags=["new", "kept"], remove_tags=["old"]))
    assert (await world.seen(f"/api/v2/jobs/{job['id']}"))["tags"] == ["kept", "new"]


async def test_jobs_are_run_and_failed_runs_retried_and_waiting_ones_canceled(world: World) -> None:
    job = await world.job("f", "fail", retry={"max_attempts": 1})
    other = await world.job("n")
    await over(world, await begin(world, action="run", filter={}))
    await world.work()
    runs = await world.seen("/api/v2/runs")
    assert sorted(run["state"] for run in runs["items"]) == ["FAILED", "SUCCESS"]
    # Without a state, a retry is for what failed.
    seen = await over(world, await begin(world, action="retry", filter={"since": "2030-01-01T00:00:00Z"}))
    assert (seen["total"], seen["done"]) == (1, 1)
    await world.run(other)
    seen = await over(world, await begin(world, action="cancel", filter={}))
    assert (seen["total"], seen["done"]) == (2, 2)
    states = {run["state"] for run in (await world.seen(f"/api/v2/runs?job_id={job['id']}"))["items"]}
    assert states == {"CANCELED"}


async def test_a_dry_run_tells_how_many_and_shows_some(world: World) -> None:
    jobs = [await world.job(f"j{n:02}") for n in range(12)]
    answer = await world.post(PATH, {"action": "delete", "filter": {"name": "j"}, "dry_run": True})
    assert answer.status == 200
    seen = answer.json()
    assert (seen["id"], seen["state"], seen["total"], seen["done"]) == (None, None, 12, 0)
    assert seen["sample"][0] == {"id": jobs[0]["id"], "name": "j00", "state": None}
    assert len(seen["sample"]) == 10
    run = await world.run(jobs[3])
    answer = await world.post(PATH, {"action": "cancel", "ids": [run["id"], 999], "dry_run": True})
    assert answer.json()["sample"] == [{"id": run["id"], "name": "j03", "state": "SCHEDULED"}]
    assert (await world.seen(PATH))["total"] == 0


async def test_a_rate_spreads_it_out_and_it_can_be_called_off(world: World) -> None:
    jobs = [await world.job(f"j{n}") for n in range(3)]
    begun = await begin(world, action="run", ids=[job["id"] for job in jobs], rate=0.1)
    # The next one is due ten seconds later on the clock, which nobody else moves.
    await wake_next(world)
    await until(world, begun, lambda seen: seen["done"] == 2)
    assert world.clock.ticks() == 10.0
    answer = await world.post(f"{PATH}/{begun['id']}/cancel")
    seen = answer.json()
    assert (answer.status, seen["state"], seen["done"], seen["total"]) == (200, "canceled", 2, 3)
    assert (await world.seen("/api/v2/runs"))["total"] == 2
    again = await world.post(f"{PATH}/{begun['id']}/cancel")
    assert again.json() == seen


async def test_a_store_that_is_away_for_a_moment_is_waited_for(world: World) -> None:
    job = await world.job()
    with world.store.away("change_jobs", times=1):
        begun = await begin(world, action="pause", ids=[job["id"]])
        await wake_next(world)
        seen = await over(world, begun)
    assert (seen["done"], seen["failed"]) == (1, 0)


async def test_a_job_is_run_once_though_the_answer_of_the_store_got_lost(world: World) -> None:
    jobs = [await world.job(name) for name in ("a", "b")]
    with world.store.away("add_run", after_commit=True, times=1):
        begun = await begin(world, action="run", ids=[job["id"] for job in jobs])
        await wake_next(world)
        seen = await over(world, begun)
    assert (seen["done"], seen["failed"]) == (2, 0)
    assert sorted(run["job_id"] for run in (await world.seen("/api/v2/runs"))["items"]) == [job["id"] for job in jobs]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"action": "pause"}, "ids"),
        ({"action": "pause", "ids": [1], "filter": {}}, "ids"),
        ({"action": "pause", "ids": []}, "ids"),
        ({"action": "dance", "ids": [1]}, "action"),
        ({"action": "tag", "ids": [1]}, "tags"),
        ({"action": "run", "ids": [1], "tags": ["a"]}, "tags"),
        ({"action": "pause", "filter": {"state": ["FAILED"]}}, "filter.state"),
        ({"action": "cancel", "filter": {"enabled": True}}, "filter.enabled"),
        ({"action": "cancel", "filter": {"since": "yesterday"}}, "filter.since"),
        ({"action": "redrive", "filter": {"state": ["FAILED"]}}, "filter.state"),
        ({"action": "purge", "filter": {}}, "filter.queue"),
        ({"action": "pause", "filter": {}, "until": "2001-01-01T00:00:00Z"}, "until"),
        ({"action": "resume", "filter": {}, "until": "1h"}, "until"),
        ({"action": "purge", "filter": {"queue": "mail", "state": ["SUCCESS"]}}, "filter.state"),
        ({"action": "pause", "filter": {"nmae": "x"}}, "filter.nmae"),
        ({"action": "pause", "ids": [1], "rate": 0}, "rate"),
    ],
)
async def test_what_makes_no_sense_is_refused_by_name(world: World, body: Any, field: str) -> None:
    answer = await world.post(PATH, body)
    assert answer.status == 400
    assert field in [problem["field"] for problem in answer.json()["problems"]]


async def test_an_action_needs_the_scope_of_the_verb_it_stands_for(world: World) -> None:
    job = await world.job()
    key = await world.key(Scope.JOB_WRITE)
    headers = {"X-API-Key": key}
    refused = await world.post(PATH, {"action": "run", "ids": [job["id"]]}, headers=headers)
    assert (refused.status, refused.json()["code"]) == (403, "FORBIDDEN")
    assert "run:write" in refused.json()["message"]
    allowed = await world.post(PATH, {"action": "pause", "ids": [job["id"]]}, headers=headers)
    assert (allowed.status, allowed.json()["actor"]) == (202, "key 1")


async def test_calling_off_needs_the_scope_of_the_action(world: World) -> None:
    job = await world.job()
    begun = await begin(world, action="pause", ids=[job["id"]])
    headers = {"X-API-Key": await world.key(Scope.RUN_CONTROL)}
    refused = await world.post(f"{PATH}/{begun['id']}/cancel", headers=headers)
    assert (refused.status, "job:write" in refused.json()["message"]) == (403, True)


async def test_operations_are_listed_newest_first(world: World) -> None:
    job = await world.job()
    first = await over(world, await begin(world, action="pause", ids=[job["id"]]))
    world.clock.move_to(world.clock.time.replace(minute=30))
    second = await over(world, await begin(world, action="resume", ids=[job["id"]]))
    assert (await world.seen(PATH))["items"] == [second, first]
    assert (await world.seen(f"{PATH}?sort=started_at&state=done"))["items"] == [first, second]
    assert (await world.seen(f"{PATH}?state=running"))["items"] == []
    assert (await world.get(f"{PATH}/nobody")).status == 404


async def test_each_act_is_in_the_audit_with_the_reason_of_the_operation(world: World) -> None:
    jobs = [await world.job(name) for name in ("a", "b")]
    await over(world, await begin(world, action="pause", ids=[job["id"] for job in jobs], reason="month end"))
    entries = (await world.seen("/api/v2/audit?action=job.pause"))["items"]
    assert {(one["subject_id"], one["actor"], one["reason"]) for one in entries} == {
        (str(job["id"]), "loopback", "month end") for job in jobs
    }


async def test_dead_letters_of_a_queue_are_put_back(world: World) -> None:
    queue = world.engine.queue
    await queue.enqueue([NewItem(queue="mail", item=Item(max_attempts=1)) for _ in range(3)])
    for item in await queue.pull("mail", "w", limit=2, lease=timedelta(minutes=1)):
        await queue.fail(item.id, "smtp is down")
    begun = await begin(world, action="redrive", filter={"queue": "mail", "error": "smtp"})
    assert begun["total"] == 2
    assert (await over(world, begun))["done"] == 2
    assert len(await queue.pull("mail", "w", limit=5, lease=timedelta(minutes=1))) == 3
    again = await over(world, await begin(world, action="redrive", ids=[1]))
    assert "is no dead letter, but RUNNING" in again["errors"][0]["message"]


async def test_a_purge_takes_what_waits_in_a_queue_and_nothing_else(world: World) -> None:
    queue, lease = world.engine.queue, timedelta(minutes=1)
    await queue.enqueue([NewItem(queue="mail", item=Item(max_attempts=1)) for _ in range(5)])
    await queue.enqueue([NewItem(queue="post", item=Item())])
    dead, held = await queue.pull("mail", "w", limit=2, lease=lease)
    await queue.fail(dead.id, "smtp is down")
    tried = (await world.post(PATH, {"action": "purge", "filter": {"queue": "mail"}, "dry_run": True})).json()
    assert (tried["total"], [one["state"] for one in tried["sample"]]) == (3, ["SCHEDULED"] * 3)
    seen = await over(world, await begin(world, action="purge", filter={"queue": "mail"}, reason="sent twice"))
    assert (seen["done"], seen["failed"]) == (3, 0)
    states = [run.state for run in await world.engine.store.get_runs(range(1, 7))]
    assert states == ["DEAD_LETTER", "RUNNING", "CANCELED", "CANCELED", "CANCELED", "SCHEDULED"]
    told = (await world.seen("/api/v2/audit?action=run.purge"))["items"]
    assert {(one["subject_id"], one["reason"]) for one in told} == {(str(id), "sent twice") for id in (3, 4, 5)}

    rest = {"queue": "mail", "state": ["RUNNING", "DEAD_LETTER"]}
    assert (await over(world, await begin(world, action="purge", filter=rest)))["done"] == 2
    left = await world.engine.store.get_runs([dead.id, held.id])
    assert [(run.state, run.error) for run in left] == [("CANCELED", "smtp is down"), ("CANCELED", "")]
    with pytest.raises(InvalidState):
        await queue.ack(held.id)
    assert (await world.seen("/api/v2/queues"))["items"][0]["queue"] == "post"


async def test_what_a_worker_takes_before_the_purge_comes_to_it_stays(world: World) -> None:
    queue = world.engine.queue
    await queue.enqueue([NewItem(queue="mail", item=Item()) for _ in range(2)])
    begun = await begin(world, action="purge", filter={"queue": "mail"}, rate=1)
    await until(world, begun, lambda seen: seen["done"] == 1)
    [taken] = await queue.pull("mail", "w", limit=2, lease=timedelta(minutes=1))
    await wake_next(world)
    seen = await over(world, begun)
    assert seen["errors"] == [{"id": taken.id, "message": f"item {taken.id} is RUNNING by now; it stays"}]
    assert (await queue.get(taken.id)).state == "RUNNING"


async def test_an_engine_that_stops_calls_its_operations_off(world: World) -> None:
    jobs = [await world.job(f"j{n}") for n in range(2)]
    begun = await begin(world, action="pause", ids=[job["id"] for job in jobs], rate=0.001)
    await until(world, begun, lambda seen: seen["done"] == 1)
    await world.engine.operations.stop()
    seen = await world.seen(f"{PATH}/{begun['id']}")
    assert (seen["state"], seen["done"], seen["total"]) == ("canceled", 1, 2)


async def test_only_so_many_go_on_at_once(world: World) -> None:
    jobs = [await world.job(f"j{n}") for n in range(2)]
    body = {"action": "pause", "ids": [job["id"] for job in jobs], "rate": 0.001}
    answers = [await world.post(PATH, body) for _ in range(MOST_AT_ONCE + 1)]
    assert [answer.status for answer in answers] == [202] * MOST_AT_ONCE + [409]
    assert "wait for one to end, or cancel one" in answers[-1].json()["message"]
    await world.engine.operations.stop()
