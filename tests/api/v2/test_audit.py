"""Who changed what: every change through the API leaves one entry, and what happens by itself leaves none."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ksana.api.kit import Scope
from ksana.domain.keys import KEY_RANDOM_BYTES, new_key
from ksana.domain.ports import Store
from ksana.engine.auditing import Actor
from ksana.engine.key_verbs import add_key
from tests.api.v2.world import World

CHAIN: dict[str, Any] = {
    "nodes": [
        {"id": "a", "type": "fail", "retry": {"maxAttempts": 1}},
        {"id": "b", "type": "noop", "deps": ["a"]},
    ]
}


async def entries(world: World, query: str = "") -> list[Any]:
    """The entries that a query finds, the oldest first."""
    page = await world.seen(f"/api/v2/audit{query}")
    assert page["total"] >= len(page["items"])
    items: list[Any] = page["items"][::-1]
    return items


async def actions(world: World, query: str = "") -> list[tuple[str, str, str]]:
    return [(one["action"], one["subject_id"], one["reason"]) for one in await entries(world, query)]


async def test_a_job_leaves_an_entry_with_each_change(world: World) -> None:
    job = await world.job("first")
    path = f"/api/v2/jobs/{job['id']}"
    await world.patch(path, {"name": "second"})
    await world.patch(path, {"name": "second"})
    await world.post(f"{path}/pause", {"reason": "the disk is full"})
    await world.post(f"{path}/pause")
    await world.post(f"{path}/resume")
    await world.delete(path)
    id = str(job["id"])
    assert await actions(world, "?subject=job") == [
        ("job.create", id, ""),
        ("job.change", id, ""),
        ("job.pause", id, "the disk is full"),
        ("job.resume", id, ""),
        ("job.delete", id, ""),
    ]
    created, changed, *_, deleted = await entries(world)
    assert (created["before"], created["after"]["name"]) == (None, "first")
    assert (changed["before"]["name"], changed["after"]["name"]) == ("first", "second")
    assert (deleted["before"]["name"], deleted["after"]) == ("second", None)
    assert {one["actor"] for one in await entries(world)} == {"loopback"}


async def test_runs_leave_entries_for_what_people_do_and_none_for_what_happens(world: World) -> None:
    job = await world.job(kind="fail", schedule={"kind": "every", "every": "1m"})
    await world.advance("1m")
    run = await world.run(job)
    await world.work()
    path = f"/api/v2/runs/{run['id']}"
    await world.post(f"{path}/retry", {"reason": "the host is back"})
    await world.work()
    await world.post(f"{path}/complete", {"reason": "done by hand"})
    await world.post(f"{path}/complete", {"reason": "again"})
    other = await world.run(job)
    await world.post(f"/api/v2/runs/{other['id']}/cancel", {"reason": "not needed"})
    first, second = str(run["id"]), str(other["id"])
    assert await actions(world, "?subject=run") == [
        ("run.trigger", first, ""),
        ("run.retry", first, "the host is back"),
        ("run.complete", first, "done by hand"),
        ("run.trigger", second, ""),
        ("run.cancel", second, "not needed"),
    ]
    retried = (await entries(world, f"?subject=run&subject_id={first}"))[1]
    assert (retried["before"]["state"], retried["after"]["state"]) == ("FAILED", "RETRYING")


async def test_acts_on_chains_leave_one_entry_each(world: World) -> None:
    run = await world.run(await world.job("chain", "chain", CHAIN))
    await world.work()
    path = f"/api/v2/runs/{run['id']}"
    await world.post(f"{path}/retry")
    await world.work()
    await world.post(f"{path}/steps/a/retry", {"reason": "once more"})
    await world.work()
    await world.post(f"{path}/steps/a/complete", {"reason": "enough"})
    await world.work()
    step = str((await world.seen(f"{path}/steps"))[0]["run_id"])
    again = await world.run({"id": run["job_id"]})
    await world.post(f"/api/v2/runs/{again['id']}/cancel")
    await world.post(f"/api/v2/runs/{again['id']}/cancel")
    id, other = str(run["id"]), str(again["id"])
    assert (await actions(world, "?subject=run"))[1:] == [
        ("run.retry", id, ""),
        ("run.retry", step, "once more"),
        ("run.complete", step, "enough"),
        ("run.trigger", other, ""),
        ("run.stop", other, ""),
    ]


async def test_a_refused_change_leaves_nothing(world: World) -> None:
    job = await world.job()
    run = await world.run(job)
    for path, body in (
        (f"/api/v2/runs/{run['id']}/retry", {}),
        ("/api/v2/runs/99/cancel", {}),
        (f"/api/v2/jobs/{job['id']}/pause", {"reason": "x" * 1025}),
        ("/api/v2/jobs", {"name": "", "target": {"kind": "noop"}}),
    ):
        assert (await world.post(path, body)).status >= 400
    assert [one["action"] for one in await entries(world)] == ["job.create", "run.trigger"]


async def test_the_actor_is_the_name_of_the_key_and_the_request_is_named(world: World) -> None:
    key = await world.key(Scope.ADMIN)
    headers = {"X-API-Key": key, "X-Request-Id": "mine-1"}
    await world.post("/api/v2/jobs", {"name": "j", "target": {"kind": "noop"}}, headers=headers)
    answer = await world.get("/api/v2/audit?actor=key+1", headers=headers)
    [entry] = answer.json()["items"]
    assert (entry["actor"], entry["request_id"]) == ("key 1", "mine-1")
    assert (await world.get("/api/v2/audit?actor=somebody", headers=headers)).json()["total"] == 0


async def test_a_repeated_request_is_entered_once(world: World) -> None:
    body = {"name": "j", "target": {"kind": "noop"}}
    for _ in range(2):
        answer = await world.post("/api/v2/jobs", body, headers={"Idempotency-Key": "k"})
        assert answer.status == 201
    assert len(await entries(world)) == 1


async def test_other_surfaces_are_audited_alike(world: World) -> None:
    timer = {"id": "ping", "http": {"url": "https://ksana.invalid/"}, "schedule": {"kind": "every", "every": "1m"}}
    assert (await world.post("/jobs", timer)).status == 201
    assert (await world.post("/jobs/ping/run-now")).status < 300
    assert [one["action"] for one in await entries(world)] == ["job.create", "run.trigger"]


async def test_entries_are_found_by_time_and_page(world: World) -> None:
    for name in ("a", "b", "c"):
        await world.job(name)
        world.clock.move_to(world.clock.time.replace(minute=world.clock.time.minute + 1))
    assert len(await entries(world, "?since=2030-01-01T12:01:00Z")) == 2
    assert len(await entries(world, "?until=2030-01-01T12:01:00Z")) == 1
    page = await world.seen("/api/v2/audit?page=2&page_size=2")
    assert ([one["after"]["name"] for one in page["items"]], page["total"]) == (["a"], 3)
    rest = await world.seen(f"/api/v2/audit?before_id={page['items'][0]['id'] + 1}")
    assert [one["after"]["name"] for one in rest["items"]] == ["a"]


@pytest.mark.parametrize("query", ["since=soon", "sort=actor", "subject=", "who=me"])
async def test_a_question_that_is_none_is_refused(world: World, query: str) -> None:
    assert (await world.get(f"/api/v2/audit?{query}")).status == 400


async def test_a_change_that_is_made_stays_made_when_the_audit_cannot_be_written(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    job = await world.job()
    with world.store.away("add_audit"):
        paused = await world.post(f"/api/v2/jobs/{job['id']}/pause")
    assert (paused.status, paused.json()["enabled"]) == (200, False)
    assert f"job.pause of job {job['id']} by loopback is done, but not in the audit" in caplog.text


async def test_a_backfill_leaves_one_entry(world: World) -> None:
    job = await world.job(schedule={"kind": "cron", "expr": "0 * * * *"})
    body = {"since": "2030-01-01T09:00:00Z", "until": "2030-01-01T11:00:00Z"}
    await world.post(f"/api/v2/jobs/{job['id']}/backfill", {**body, "dry_run": True})
    await world.post(f"/api/v2/jobs/{job['id']}/backfill", body)
    [entry] = await entries(world, "?subject=backfill")
    assert (entry["action"], entry["subject_id"], entry["after"]["count"]) == ("job.backfill", str(job["id"]), 3)


@pytest.mark.parametrize(
    ("scopes", "shown"),
    [
        ([Scope.JOB_READ], {"job"}),
        ([Scope.JOB_READ, Scope.RUN_READ], {"job", "run"}),
        ([Scope.JOB_READ, Scope.QUEUE_READ], {"job", "object", "queue"}),
        ([Scope.ADMIN], {"job", "run", "object", "queue", "key"}),
    ],
)
async def test_what_was_there_is_shown_to_those_who_may_read_it(
    world: World, scopes: list[Scope], shown: set[str]
) -> None:
    await world.run(await world.job())
    governor, ops = world.engine.governor, Actor("ops")
    await governor.put("cognition", "cg_1", {"attributes": {"owner": "a"}}, ops)
    await governor.set_queue("mail", {"concurrency": 1}, ops)
    made = new_key(b"k" * KEY_RANDOM_BYTES, name="ci", scopes=[Scope.JOB_READ], created_at=world.clock.time)
    await add_key(cast(Store, world.store), made.stored, ops)
    key = await world.key(*scopes)
    seen = (await world.get("/api/v2/audit", headers={"X-API-Key": key})).json()["items"]
    assert len(seen) == 5
    assert {one["subject"] for one in seen if one["after"] is not None} == shown
