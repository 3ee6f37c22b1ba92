"""The versions of a job."""

from __future__ import annotations

from tests.api.v2.world import World


async def test_each_change_of_a_job_is_a_version_with_what_changed(world: World) -> None:
    job = await world.job("report", "echo", {"message": {"day": 1}}, retry={"max_attempts": 2})
    path = f"/api/v2/jobs/{job['id']}"
    change = {"retry": {"max_attempts": 5}, "target": {"kind": "echo", "config": {"message": {"day": 2}}}}
    changed = (await world.patch(path, change)).json()
    await world.post(f"{path}/pause", {"reason": "too early"})
    await world.run(job)
    shown = await world.seen(f"{path}/versions")
    assert (shown["total"], shown["page"]) == (3, 1)
    paused, second, first = shown["items"]
    assert [(one["version"], one["action"]) for one in (first, second, paused)] == [
        (1, "job.create"),
        (2, "job.change"),
        (3, "job.pause"),
    ]
    assert first["changes"] == []
    assert sorted((one["path"], one["before"], one["after"]) for one in second["changes"]) == [
        ("retry.max_attempts", 2, 5),
        ("target.config.message.day", 1, 2),
    ]
    assert second["definition"] == changed
    assert paused["changes"] == [{"path": "enabled", "before": True, "after": False}]
    assert (paused["actor"], paused["reason"]) == ("loopback", "too early")
    assert (await world.seen(f"{path}/versions?page=3&page_size=1"))["items"] == [first]


async def test_a_deleted_job_still_tells_its_versions(world: World) -> None:
    job = await world.job("gone")
    await world.delete(f"/api/v2/jobs/{job['id']}")
    deleted, _ = (await world.seen(f"/api/v2/jobs/{job['id']}/versions"))["items"]
    assert (deleted["action"], deleted["version"], deleted["definition"]["name"]) == ("job.delete", 1, "gone")
    assert (await world.get("/api/v2/jobs/99/versions")).status == 404
    assert (await world.get(f"/api/v2/jobs/{job['id']}/versions?sort=actor")).status == 400
