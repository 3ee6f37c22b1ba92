"""Jobs over HTTP: what is stored, what is shown, what is refused."""

from typing import Any

import pytest

from tests.api.kit.client import Answer
from tests.api.v2.world import World

NOW = "2030-01-01T12:00:00.000Z"

FULL = {
    "name": "sync",
    "description": "nightly",
    "tags": ["billing", "night", "billing"],
    "enabled": True,
    "target": {"kind": "http", "config": {"url": "http://example.test/sync", "json": {"run": "{{run_id}}"}}},
    "schedule": {
        "kind": "cron",
        "expr": "0 2 * * *",
        "timezone": "Asia/Shanghai",
        "start_at": "2030-02-01T00:00:00+08:00",
        "end_at": "2031-01-01T00:00:00Z",
        "jitter": "30s",
    },
    "queue": "slow",
    "priority": "high",
    "retry": {
        "max_attempts": 4,
        "strategy": "exponential",
        "initial_delay": "1s",
        "multiplier": 3,
        "max_delay": "1m",
    },
    "overlap": {"rule": "skip", "max_concurrency": 2},
    "misfire": {"rule": "catch_up", "limit": 7},
    "timeouts": {"total": "20s", "connect": "2s", "callback": "10m"},
    "on_uncertain": "fail",
}


def problems(answer: Answer) -> dict[str, str]:
    """The fields a 400 names."""
    assert answer.status == 400, answer.body
    body = answer.json()
    assert body["code"] == "INVALID_ARGUMENT"
    return {problem["field"]: problem["message"] for problem in body["problems"]}


async def test_a_job_needs_only_a_name_and_a_target(world: World) -> None:
    answer = await world.post("/api/v2/jobs", {"name": "ping", "target": {"kind": "noop"}})
    assert answer.status == 201
    assert answer.headers["location"] == "/api/v2/jobs/1"
    assert answer.headers["etag"] == '"1"'
    assert answer.json() == {
        "id": 1,
        "surface": "v2",
        "ref": "",
        "name": "ping",
        "description": "",
        "tags": [],
        "enabled": True,
        "version": 1,
        "target": {"kind": "noop", "config": {}},
        "schedule": None,
        "schedule_words": None,
        "queue": "default",
        "priority": "normal",
        "retry": {
            "max_attempts": 1,
            "strategy": "fixed",
            "initial_delay": "5s",
            "multiplier": 2.0,
            "max_delay": "1h",
        },
        "overlap": {"rule": "queue", "max_concurrency": 1},
        "misfire": {"rule": "fire_once", "limit": 0},
        "timeouts": {"total": "10s", "connect": "5s", "callback": "5m"},
        "on_uncertain": "retry",
        "created_at": NOW,
        "updated_at": NOW,
        "paused_at": None,
        "paused_until": None,
        "pause_reason": "",
        "next_slot_at": None,
        "next_fire_at": None,
        "last_run": None,
    }


async def test_everything_said_about_a_job_is_kept(world: World) -> None:
    made = await world.job(**FULL)  # type: ignore[arg-type]
    assert made == await world.seen(f"/api/v2/jobs/{made['id']}")
    said = {**FULL, "tags": ["billing", "night"]}
    said["target"] = {
        "kind": "http",
        "config": {
            "method": "POST",
            "url": "http://example.test/sync",
            "headers": {},
            "json": {"run": "{{run_id}}"},
            "mode": "sync",
        },
    }
    said["schedule"] = {
        **FULL["schedule"],  # type: ignore[dict-item]
        "start_at": "2030-01-31T16:00:00.000Z",
        "end_at": "2031-01-01T00:00:00.000Z",
    }
    said["retry"] = {**FULL["retry"], "multiplier": 3.0, "max_delay": "1m"}  # type: ignore[dict-item]
    said["timeouts"] = {"total": "20s", "connect": "2s", "callback": "10m"}
    assert {name: made[name] for name in said} == said
    assert made["next_slot_at"] == "2030-01-31T18:00:00.000Z"
    assert "2030-01-31T18:00:00.000Z" <= made["next_fire_at"] < "2030-01-31T18:00:30.000Z"


@pytest.mark.parametrize(
    ("schedule", "shown", "next_slot_at"),
    [
        (
            {"kind": "once", "run_at": "2030-01-01T20:00:05+08:00"},
            {"kind": "once", "run_at": "2030-01-01T12:00:05.000Z"},
            "2030-01-01T12:00:05.000Z",
        ),
        (
            {"kind": "every", "every": "90s"},
            {
                "kind": "every",
                "every": "1m30s",
                "origin_at": NOW,
                "start_at": None,
                "end_at": None,
                "jitter": "0s",
            },
            "2030-01-01T12:01:30.000Z",
        ),
        (
            {"kind": "cron", "expr": "@every 5m"},
            {
                "kind": "every",
                "every": "5m",
                "origin_at": NOW,
                "start_at": None,
                "end_at": None,
                "jitter": "0s",
            },
            "2030-01-01T12:05:00.000Z",
        ),
        (
            {"kind": "cron", "expr": "*/5 * * * *"},
            {
                "kind": "cron",
                "expr": "*/5 * * * *",
                "timezone": "UTC",
                "start_at": None,
                "end_at": None,
                "jitter": "0s",
            },
            "2030-01-01T12:05:00.000Z",
        ),
    ],
)
async def test_a_schedule_is_shown_as_it_is_kept(
    world: World, schedule: dict[str, Any], shown: dict[str, Any], next_slot_at: str
) -> None:
    made = await world.job(schedule=schedule)
    assert made["schedule"] == shown
    assert made["next_slot_at"] == made["next_fire_at"] == next_slot_at


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"name": ""}, {"name"}),
        ({"name": "x" * 129}, {"name"}),
        ({"name": 3}, {"name"}),
        ({"nome": "x"}, {"nome"}),
        ({"target": None}, {"target"}),
        ({"target": {"kind": "nope"}}, {"target.kind"}),
        ({"target": {"kind": "echo", "config": {"a": 1}}}, {"target.config.a"}),
        ({"target": {"kind": "job", "config": {"job": 1}}}, {"target.kind"}),
        ({"target": {"kind": "chain", "config": {"nodes": [{"id": ""}]}}}, {"target.config.nodes[0].id"}),
        ({"target": {"kind": "noop", "config": []}}, {"target.config"}),
        ({"target": {"kind": "sleep"}}, {"target.config.for"}),
        ({"target": {"kind": "http"}}, {"target.config.url"}),
        (
            {"target": {"kind": "http", "config": {"url": "ftp://x", "method": "BREW", "headers": {"a b": "c"}}}},
            {"target.config.url", "target.config.method", "target.config.headers.a b"},
        ),
        ({"tags": "billing"}, {"tags"}),
        ({"tags": ["ok", ""]}, {"tags[1]"}),
        ({"queue": "schlange ü"}, {"queue"}),
        ({"priority": "urgent"}, {"priority"}),
        ({"enabled": "yes"}, {"enabled"}),
        ({"description": "x" * 4097}, {"description"}),
        ({"retry": {"max_attempts": 0}}, {"retry.max_attempts"}),
        ({"retry": {"initial_delay": "soon"}}, {"retry.initial_delay"}),
        ({"retry": {"max_delay": "9999h"}}, {"retry.max_delay"}),
        ({"retry": {"strategy": "linear"}}, {"retry.strategy"}),
        ({"overlap": {"rule": "kill"}}, {"overlap.rule"}),
        ({"overlap": {"max_concurrency": -1}}, {"overlap.max_concurrency"}),
        ({"misfire": {"limit": 1001}}, {"misfire.limit"}),
        ({"timeouts": {"total": "0s"}}, {"timeouts.total"}),
        ({"timeouts": {"connect": "-1s"}}, {"timeouts.connect"}),
        ({"on_uncertain": "guess"}, {"on_uncertain"}),
        ({"schedule": {}}, {"schedule.kind"}),
        ({"schedule": {"kind": "sometimes"}}, {"schedule.kind"}),
        ({"schedule": {"kind": "once"}}, {"schedule.run_at"}),
        ({"schedule": {"kind": "once", "run_at": "tomorrow"}}, {"schedule.run_at"}),
        ({"schedule": {"kind": "once", "run_at": "2030-01-01T12:00:00"}}, {"schedule.run_at"}),
        ({"schedule": {"kind": "every", "every": "99ms"}}, {"schedule.every"}),
        ({"schedule": {"kind": "every", "every": "1s", "jitter": "1s"}}, {"schedule.jitter"}),
        (
            {
                "schedule": {
                    "kind": "every",
                    "every": "1s",
                    "start_at": "2030-01-02T00:00:00Z",
                    "end_at": "2030-01-01T00:00:00Z",
                }
            },
            {"schedule.end_at"},
        ),
        ({"schedule": {"kind": "cron", "expr": "61 * * * *"}}, {"schedule.expr"}),
        ({"schedule": {"kind": "cron", "expr": "0 0 30 2 *"}}, {"schedule.expr"}),
        ({"schedule": {"kind": "cron", "expr": "@every x"}}, {"schedule.expr"}),
        ({"schedule": {"kind": "cron", "expr": "* * * * *", "timezone": "Mars/Olympus"}}, {"schedule.timezone"}),
        ({"schedule": {"kind": "cron", "expr": "* * * * *", "every": "1s"}}, {"schedule.every"}),
    ],
)
async def test_a_bad_job_is_refused_by_the_name_of_its_field(
    world: World, change: dict[str, Any], fields: set[str]
) -> None:
    answer = await world.post("/api/v2/jobs", {"name": "j", "target": {"kind": "noop"}, **change})
    assert set(problems(answer)) == fields
    assert (await world.seen("/api/v2/jobs"))["total"] == 0


async def test_all_problems_of_a_job_are_told_at_once(world: World) -> None:
    answer = await world.post(
        "/api/v2/jobs",
        {
            "name": " ",
            "target": {"kind": "http", "config": {"url": "nowhere"}},
            "schedule": {"kind": "every", "every": "often", "jitter": "5m", "end_at": "never"},
            "timeouts": {"total": "long"},
            "retry": {"max_delay": "2000h"},
        },
    )
    assert set(problems(answer)) == {
        "name",
        "target.config.url",
        "schedule.every",
        "schedule.end_at",
        "timeouts.total",
        "retry.max_delay",
    }


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "INVALID_JSON"),
        (b"{", "INVALID_JSON"),
        (b'{"name": "a", "name": "b", "target": {"kind": "noop"}}', "INVALID_JSON"),
        (b'{"name": "a", "target": {"kind": "echo", "config": {"message": NaN}}}', "INVALID_JSON"),
        (b"[]", "INVALID_ARGUMENT"),
        (b"null", "INVALID_ARGUMENT"),
    ],
)
async def test_a_body_that_is_no_job_is_refused(world: World, body: bytes, code: str) -> None:
    answer = await world.call("POST", "/api/v2/jobs", body=body)
    assert answer.status == 400
    shown = answer.json()
    assert shown["code"] == code
    assert shown["error"] == shown["message"]
    assert shown["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v2/jobs/99"),
        ("PATCH", "/api/v2/jobs/99"),
        ("DELETE", "/api/v2/jobs/99"),
        ("POST", "/api/v2/jobs/99/pause"),
        ("POST", "/api/v2/jobs/99/resume"),
        ("POST", "/api/v2/jobs/99/runs"),
        ("GET", "/api/v2/jobs/99/runs"),
        ("GET", "/api/v2/jobs/99/fires"),
    ],
)
async def test_a_job_that_does_not_exist_is_not_found(world: World, method: str, path: str) -> None:
    answer = await world.call(method, path, json_body={} if method == "PATCH" else None)
    assert answer.status == 404
    assert answer.json()["code"] == "NOT_FOUND"
    assert "99" in answer.json()["message"]


@pytest.mark.parametrize("id", ["x", "-1", "1.5", "9223372036854775808"])
async def test_an_id_that_is_no_number_is_refused(world: World, id: str) -> None:
    answer = await world.get(f"/api/v2/jobs/{id}")
    assert answer.status == 400
    assert answer.json()["code"] == "INVALID_ID"
    assert [problem["field"] for problem in answer.json()["problems"]] == ["id"]


async def _names(world: World, query: str) -> list[str]:
    return [job["name"] for job in (await world.seen(f"/api/v2/jobs?{query}"))["items"]]


async def test_jobs_are_found_by_what_they_are(world: World) -> None:
    await world.job("alpha", tags=["red", "green"])
    await world.job("Beta", "echo", tags=["red"], schedule={"kind": "every", "every": "1h"})
    await world.job("gamma", enabled=False, schedule={"kind": "every", "every": "1m"})
    assert await _names(world, "") == ["alpha", "Beta", "gamma"]
    assert await _names(world, "name=BET") == ["Beta"]
    assert await _names(world, "name=a_pha") == []
    assert await _names(world, "kind=echo") == ["Beta"]
    assert await _names(world, "tag=red") == ["alpha", "Beta"]
    assert await _names(world, "tag=re") == []
    assert await _names(world, "enabled=false") == ["gamma"]
    assert await _names(world, "enabled=true&tag=green") == ["alpha"]
    assert await _names(world, "surface=v2&kind=noop") == ["alpha", "gamma"]
    assert await _names(world, "surface=tasks") == []


async def test_jobs_are_sorted_and_paged(world: World) -> None:
    for name in ("b", "c", "a"):
        await world.job(name)
    await world.patch("/api/v2/jobs/1", {"description": "changed"})
    assert await _names(world, "sort=name") == ["a", "b", "c"]
    assert await _names(world, "sort=-name") == ["c", "b", "a"]
    assert await _names(world, "sort=-id") == ["a", "c", "b"]
    page = await world.seen("/api/v2/jobs?sort=name&page=2&page_size=2")
    assert [job["name"] for job in page.pop("items")] == ["c"]
    assert page == {"total": 3, "page": 2, "page_size": 2}
    assert (await world.seen("/api/v2/jobs?page=5"))["items"] == []


async def test_jobs_are_sorted_by_change_and_by_next_fire(world: World) -> None:
    await world.job("late", schedule={"kind": "every", "every": "2h"})
    await world.advance("1s")
    await world.job("soon", schedule={"kind": "every", "every": "1h"})
    await world.advance("1s")
    await world.patch("/api/v2/jobs/1", {"description": "changed"})
    assert await _names(world, "sort=-updated_at") == ["late", "soon"]
    assert await _names(world, "sort=next_fire_at") == ["soon", "late"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("page=0", "page"),
        ("page_size=201", "page_size"),
        ("page=x", "page"),
        ("sort=colour", "sort"),
        ("enabled=maybe", "enabled"),
        ("nmae=x", "nmae"),
        ("kind=a&kind=b", "kind"),
    ],
)
async def test_a_bad_query_is_refused_by_the_name_of_its_parameter(world: World, query: str, field: str) -> None:
    assert set(problems(await world.get(f"/api/v2/jobs?{query}"))) == {field}


async def test_the_words_of_a_schedule_are_served_in_both_languages_and_end_with_its_zone(world: World) -> None:
    await world.job(schedule={"kind": "cron", "expr": "30 9 * * 1-5", "timezone": "Asia/Shanghai"})
    await world.job(name="often", schedule={"kind": "every", "every": "90s"})
    cron, every = (await world.seen("/api/v2/jobs"))["items"]
    assert cron["schedule_words"] == {
        "en": "At 09:30 from Monday through Friday (Asia/Shanghai)",
        "zh": "每周一至周五 09:30（上海时间）",
    }
    assert every["schedule_words"] == {"en": "Every 90 seconds", "zh": "每 90 秒"}


async def test_the_last_run_is_shown_with_its_job(world: World) -> None:
    job = await world.job()
    await world.run(job)
    last = await world.run(job)
    await world.work()
    path = f"/api/v2/jobs/{job['id']}"
    shown = await world.seen(path)
    assert (shown["last_run"]["id"], shown["last_run"]["state"]) == (last["id"], "SUCCESS")
    assert (await world.seen("/api/v2/jobs"))["items"] == [shown]
    changed = (await world.patch(path, {"description": "x"})).json()
    paused = (await world.post(f"{path}/pause")).json()
    resumed = (await world.post(f"{path}/resume")).json()
    assert changed["last_run"] == paused["last_run"] == resumed["last_run"] == shown["last_run"]
