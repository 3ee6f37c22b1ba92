"""Changing jobs over HTTP: versions, patches, pausing, deleting."""

from typing import Any

import pytest

from tests.api.v2.world import World

EVERY = {"kind": "every", "every": "1m"}


async def test_a_change_raises_the_version_and_the_etag(world: World) -> None:
    job = await world.job(tags=["a"], description="old")
    await world.advance("1s")
    answer = await world.patch(f"/api/v2/jobs/{job['id']}", {"name": "new", "tags": ["b", "c"], "priority": "low"})
    assert answer.status == 200
    assert answer.headers["etag"] == '"2"'
    changed = {"name": "new", "tags": ["b", "c"], "priority": "low", "version": 2}
    assert answer.json() == {**job, **changed, "updated_at": "2030-01-01T12:00:01.000Z"}
    assert await world.seen(f"/api/v2/jobs/{job['id']}") == answer.json()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "j"},
        {"name": None, "tags": None, "retry": None},
        {"retry": {}, "overlap": {}, "misfire": {}, "timeouts": {}},
        {"retry": {"max_attempts": 1}, "enabled": True},
        {"schedule": EVERY},
        {"target": {"kind": "noop"}},
        {"version": 1},
    ],
)
async def test_a_change_that_changes_nothing_keeps_the_version(world: World, body: dict[str, Any]) -> None:
    job = await world.job(schedule=EVERY)
    await world.advance("10s")
    answer = await world.patch(f"/api/v2/jobs/{job['id']}", body)
    assert answer.json() == job


async def test_policies_are_changed_field_by_field(world: World) -> None:
    job = await world.job(
        retry={"max_attempts": 3, "initial_delay": "2s"},
        overlap={"rule": "skip", "max_concurrency": 5},
        misfire={"rule": "catch_up", "limit": 9},
        timeouts={"total": "30s", "callback": "1h"},
    )
    body = {
        "retry": {"strategy": "exponential"},
        "overlap": {"max_concurrency": 6},
        "misfire": {"rule": "skip"},
        "timeouts": {"connect": "1s"},
    }
    changed = (await world.patch(f"/api/v2/jobs/{job['id']}", body)).json()
    assert changed["retry"] == {**job["retry"], "strategy": "exponential"}
    assert changed["overlap"] == {"rule": "skip", "max_concurrency": 6}
    assert changed["misfire"] == {"rule": "skip", "limit": 9}
    assert changed["timeouts"] == {"total": "30s", "connect": "1s", "callback": "1h"}


async def test_a_new_schedule_is_planned_from_now(world: World) -> None:
    job = await world.job(schedule={"kind": "every", "every": "1h"})
    await world.advance("10s")
    changed = (await world.patch(f"/api/v2/jobs/{job['id']}", {"schedule": EVERY})).json()
    assert changed["schedule"]["origin_at"] == "2030-01-01T12:00:10.000Z"
    assert changed["next_fire_at"] == "2030-01-01T12:01:10.000Z"


async def test_an_interval_keeps_its_grid_when_only_its_bounds_change(world: World) -> None:
    job = await world.job(schedule=EVERY)
    await world.advance("70s")
    body = {"schedule": {**EVERY, "end_at": "2030-01-02T00:00:00Z"}}
    changed = (await world.patch(f"/api/v2/jobs/{job['id']}", body)).json()
    assert changed["schedule"]["origin_at"] == job["schedule"]["origin_at"]
    assert changed["next_fire_at"] == "2030-01-01T12:02:00.000Z"


async def test_a_schedule_of_null_is_taken_away(world: World) -> None:
    job = await world.job(schedule=EVERY)
    changed = (await world.patch(f"/api/v2/jobs/{job['id']}", {"schedule": None})).json()
    assert (changed["schedule"], changed["next_slot_at"], changed["next_fire_at"]) == (None, None, None)
    await world.advance("2m")
    assert (await world.seen("/api/v2/runs"))["total"] == 0


async def test_a_bad_change_names_its_fields_and_changes_nothing(world: World) -> None:
    job = await world.job()
    path = f"/api/v2/jobs/{job['id']}"
    body = {"name": "", "target": {"kind": "http", "config": {"url": "x"}}, "timeouts": {"total": "x"}}
    answer = await world.patch(path, body)
    assert answer.status == 400
    fields = {problem["field"] for problem in answer.json()["problems"]}
    assert fields == {"name", "target.config.url", "timeouts.total"}
    assert (await world.patch(path, {"id": 7})).json()["problems"][0]["field"] == "id"
    assert await world.seen(path) == job


async def test_if_match_lets_only_the_named_version_change(world: World) -> None:
    path = f"/api/v2/jobs/{(await world.job())['id']}"
    first = await world.patch(path, {"name": "a"}, headers={"If-Match": '"1"'})
    assert (first.status, first.headers["etag"]) == (200, '"2"')
    stale = await world.patch(path, {"name": "b"}, headers={"If-Match": '"1"'})
    assert (stale.status, stale.json()["code"]) == (412, "VERSION_CONFLICT")
    any_version = await world.patch(path, {"name": "c"}, headers={"If-Match": "*"})
    assert any_version.status == 200
    assert (await world.patch(path, {"name": "d"}, headers={"If-Match": "3"})).status == 400
    assert (await world.seen(path))["name"] == "c"


async def test_a_version_in_the_body_lets_only_that_version_change(world: World) -> None:
    path = f"/api/v2/jobs/{(await world.job())['id']}"
    assert (await world.patch(path, {"version": 1, "name": "a"})).json()["version"] == 2
    stale = await world.patch(path, {"version": 1, "name": "b"})
    assert (stale.status, stale.json()["code"]) == (409, "VERSION_CONFLICT")
    both = await world.patch(path, {"version": 2, "name": "b"}, headers={"If-Match": '"1"'})
    assert [problem["field"] for problem in both.json()["problems"]] == ["version"]


@pytest.mark.parametrize("verb", ["pause", "resume", "delete"])
async def test_every_verb_honours_if_match(world: World, verb: str) -> None:
    path = f"/api/v2/jobs/{(await world.job())['id']}"
    method, target = ("DELETE", path) if verb == "delete" else ("POST", f"{path}/{verb}")
    answer = await world.call(method, target, headers={"If-Match": '"7"'})
    assert (answer.status, answer.json()["code"]) == (412, "VERSION_CONFLICT")
    assert (await world.call(method, target, headers={"If-Match": '"1"'})).status in (200, 204)


async def test_a_paused_job_plans_nothing_and_cancels_what_has_not_started(world: World) -> None:
    job = await world.job(schedule=EVERY)
    run = await world.run(job)
    path = f"/api/v2/jobs/{job['id']}"
    paused = await world.post(f"{path}/pause")
    assert paused.status == 200
    shown = paused.json()
    assert (shown["enabled"], shown["version"], shown["next_fire_at"]) == (False, 2, None)
    assert shown["paused_at"] == "2030-01-01T12:00:00.000Z"
    canceled = await world.seen(f"/api/v2/runs/{run['id']}")
    assert (canceled["state"], canceled["reason"]) == ("CANCELED", "paused")
    assert (await world.post(f"{path}/pause")).json() == shown
    await world.advance("5m")
    assert (await world.seen("/api/v2/runs"))["total"] == 1


async def test_a_resumed_job_goes_on_and_its_pause_is_in_the_fire_log(world: World) -> None:
    job = await world.job(schedule=EVERY)
    path = f"/api/v2/jobs/{job['id']}"
    await world.post(f"{path}/pause")
    await world.advance("150s")
    resumed = (await world.post(f"{path}/resume")).json()
    assert (resumed["enabled"], resumed["paused_at"], resumed["version"]) == (True, None, 3)
    assert resumed["next_fire_at"] == "2030-01-01T12:03:00.000Z"
    [gap] = await world.seen(f"{path}/fires")
    assert gap == {
        "from_at": "2030-01-01T12:01:00.000Z",
        "to_at": "2030-01-01T12:02:00.000Z",
        "count": 2,
        "decision": gap["decision"],
        "reason": "paused",
        "run_id": None,
        "recorded_at": "2030-01-01T12:02:30.000Z",
    }


async def test_enabled_in_a_change_pauses_and_resumes(world: World) -> None:
    job = await world.job(schedule=EVERY)
    path = f"/api/v2/jobs/{job['id']}"
    paused = (await world.patch(path, {"enabled": False})).json()
    assert (paused["paused_at"], paused["next_fire_at"]) == ("2030-01-01T12:00:00.000Z", None)
    resumed = (await world.patch(path, {"enabled": True})).json()
    assert (resumed["paused_at"], resumed["next_fire_at"]) == (None, "2030-01-01T12:01:00.000Z")


async def test_a_deleted_job_is_gone_and_its_runs_remain(world: World) -> None:
    job = await world.job("gone", schedule=EVERY)
    run = await world.run(job)
    answer = await world.delete(f"/api/v2/jobs/{job['id']}")
    assert (answer.status, answer.body) == (204, b"")
    assert (await world.get(f"/api/v2/jobs/{job['id']}")).status == 404
    assert (await world.seen("/api/v2/jobs"))["total"] == 0
    assert (await world.delete(f"/api/v2/jobs/{job['id']}")).status == 404
    left = await world.seen(f"/api/v2/runs/{run['id']}")
    assert (left["state"], left["reason"], left["job_name"]) == ("CANCELED", "deleted", "gone")
    await world.advance("5m")
    assert (await world.seen("/api/v2/runs"))["total"] == 1


@pytest.mark.parametrize(
    ("until", "shown"),
    [("90m", "2030-01-01T13:30:00.000Z"), ("2030-01-02T09:00:00+08:00", "2030-01-02T01:00:00.000Z")],
)
async def test_a_pause_may_have_a_reason_and_an_end(world: World, until: str, shown: str) -> None:
    job = await world.job(schedule={"kind": "every", "every": "1m"})
    path = f"/api/v2/jobs/{job['id']}"
    answer = await world.post(f"{path}/pause", {"until": until, "reason": "moving house"})
    paused = answer.json()
    assert (paused["enabled"], paused["paused_until"], paused["pause_reason"]) == (False, shown, "moving house")
    assert await world.seen(path) == paused
    [entry] = (await world.seen("/api/v2/audit?action=job.pause"))["items"]
    assert (entry["reason"], entry["after"]["paused_until"]) == ("moving house", shown)
    resumed = (await world.post(f"{path}/resume")).json()
    assert (resumed["enabled"], resumed["paused_until"], resumed["pause_reason"]) == (True, None, "")


async def test_the_last_word_on_the_end_of_a_pause_holds_and_the_answer_says_so(world: World) -> None:
    job = await world.job(schedule={"kind": "every", "every": "1m"})

    async def paused(**said: str) -> Any:
        seen = (await world.post(f"/api/v2/jobs/{job['id']}/pause", said)).json()
        return seen["paused_until"], seen["pause_reason"], seen["version"]

    assert await paused(until="2h", reason="moving house") == ("2030-01-01T14:00:00.000Z", "moving house", 2)
    assert await paused() == (None, "moving house", 3)
    assert await paused() == (None, "moving house", 3)
    assert await paused(until="1h", reason="nearly done") == ("2030-01-01T13:00:00.000Z", "nearly done", 4)


@pytest.mark.parametrize("until", ["2030-01-01T11:59:59Z", "soon", "2030-01-02T09:00", "0s", ""])
async def test_a_pause_does_not_end_in_the_past_or_at_no_instant(world: World, until: str) -> None:
    job = await world.job(schedule={"kind": "every", "every": "1m"})
    answer = await world.post(f"/api/v2/jobs/{job['id']}/pause", {"until": until})
    assert answer.status == 400
    assert [problem["field"] for problem in answer.json()["problems"]] == ["until"]
    assert (await world.seen(f"/api/v2/jobs/{job['id']}"))["enabled"]
