"""What a timer may say, how it is echoed, and what is refused with the name of the field."""

from __future__ import annotations

from typing import Any

import pytest

from ksana.api.services import JobDefaults
from ksana.domain.durations import parse_duration
from ksana.domain.policies import Retry, Timeouts
from tests.api.jobs.conftest import MakeTimers
from tests.api.jobs.timers import HTTP, Timers

EVERY = {"kind": "every", "every": "5m"}
GOOD: dict[str, Any] = {"name": "t", "http": HTTP, "schedule": EVERY}


async def test_a_job_may_leave_out_nearly_everything(timers: Timers) -> None:
    """K-28, K-20, K-18, K-19, K-26, X-53: defaults, empty text where nothing is set, and it is on."""
    answer = await timers.send("POST", "/jobs", {"http": {"url": HTTP["url"]}, "schedule": EVERY})
    made = answer.json()
    assert made == {
        "id": made["id"],
        "name": made["id"],
        "enabled": True,
        "type": "http",
        "http": {"method": "POST", "url": HTTP["url"], "headers": {}, "body": ""},
        "schedule": {"kind": "every", "every": "5m", "start_at": "", "jitter": "0s"},
        "timeout": "10s",
        "max_retries": 3,
        "retry_backoff": "5s",
        "last_run_at": "",
        "next_run_at": "2030-01-01T12:05:00Z",
        "last_status": "",
        "last_error": "",
    }


@pytest.mark.parametrize("unset", ["", None])
async def test_empty_and_null_mean_the_same_as_absent_in_a_new_job(timers: Timers, unset: Any) -> None:
    """K-19, K-26, K-28"""
    blank = dict.fromkeys(("id", "name", "type", "timeout", "retry_backoff"), unset)
    schedule = {**EVERY, "run_at": unset, "start_at": unset, "jitter": unset}
    made = await timers.create(**blank, schedule=schedule, http={**HTTP, "body": unset})
    assert (made["name"], made["type"], made["timeout"], made["retry_backoff"]) == (made["id"], "http", "10s", "5s")
    assert made["schedule"] == {"kind": "every", "every": "5m", "start_at": "", "jitter": "0s"}


async def test_defaults_come_from_the_settings(make_timers: MakeTimers) -> None:
    """K-28, K-83, K-84, K-85; an explicit 0 stays 0."""
    settings = JobDefaults(
        retry=Retry(initial_delay=parse_duration("7s")),
        timeouts=Timeouts(total=parse_duration("3s")),
        max_retries=9,
    )
    timers = await make_timers(defaults=settings)
    made = await timers.every("5m")
    assert (made["timeout"], made["max_retries"], made["retry_backoff"]) == ("3s", 9, "7s")
    assert (await timers.every("5m", max_retries=0))["max_retries"] == 0


async def test_a_setting_of_no_retries_is_not_taken_for_none(make_timers: MakeTimers) -> None:
    """K-28, K-84"""
    timers = await make_timers(defaults=JobDefaults(max_retries=0))
    assert (await timers.every("5m"))["max_retries"] == 0


async def test_ids_are_made_random_and_long(timers: Timers) -> None:
    """K-26, K-27"""
    ids = [(await timers.every("1h", id=""))["id"] for _ in range(100)]
    assert len(set(ids)) == 100
    assert min(len(id) for id in ids) >= 22


async def test_an_id_may_be_given_once(timers: Timers) -> None:
    """K-26: the second job of that id is refused, and the first stays as it is; deleting it frees the id."""
    made = await timers.every("5m", id="uuid-1")
    assert made["id"] == "uuid-1"
    again = await timers.send("POST", "/jobs", {**GOOD, "id": "uuid-1", "name": "other"})
    assert (again.status, again.json()["code"]) == (409, "ALREADY_EXISTS")
    assert "uuid-1" in again.json()["error"]
    assert await timers.seen("/jobs") == [made]
    await timers.send("DELETE", "/jobs/uuid-1")
    assert (await timers.every("5m", id="uuid-1"))["id"] == "uuid-1"


async def test_durations_are_echoed_as_they_were_given(any_timers: Timers) -> None:
    """K-24, X-24, on every store: `90s` is not rewritten to `1m30s`."""
    timers = any_timers
    for text in ("5s", "5m", "1m30s", "1.5h", "300ms", "90s", "0.5s", "3600s", "1h0m0s"):
        made = await timers.every(text, jitter="50.0ms", timeout=text, retry_backoff=text)
        assert (made["schedule"]["every"], made["schedule"]["jitter"]) == (text, "50.0ms")
        assert (made["timeout"], made["retry_backoff"]) == (text, text)
        assert await timers.look(made) == made


async def test_a_duration_changed_by_another_surface_is_shown_as_it_is_now(timers: Timers) -> None:
    """K-24: words that no longer hold are not shown."""
    made = await timers.every("90s", timeout="5000ms")
    changes = {"timeouts": {"total": "7s"}, "schedule": {"kind": "every", "every": "2m"}}
    assert (await timers.send("PATCH", "/api/v2/jobs/1", changes)).status == 200
    seen = await timers.look(made)
    assert (seen["timeout"], seen["schedule"]["every"]) == ("7s", "2m")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("2030-01-01T20:30:00+08:00", "2030-01-01T12:30:00Z"),
        ("2030-01-01T12:30:00Z", "2030-01-01T12:30:00Z"),
        ("2030-01-01T12:30:00.250Z", "2030-01-01T12:30:00.25Z"),
    ],
)
async def test_times_are_shown_in_utc(timers: Timers, given: str, shown: str) -> None:
    """K-21, K-76, X-25: offsets are honoured; a fraction that was given is not lost."""
    once = await timers.create(schedule={"kind": "once", "run_at": given})
    assert once["schedule"] == {"kind": "once", "run_at": shown}
    assert once["next_run_at"] == "2030-01-01T12:30:00Z"
    every = await timers.every("5m", start_at=given)
    assert every["schedule"]["start_at"] == shown


async def test_a_cron_schedule_works_too(timers: Timers) -> None:
    """K-8, K-104: five or six fields and a zone."""
    schedule = {"kind": "cron", "expr": "0 9 * * 1-5", "timezone": "Asia/Shanghai"}
    made = await timers.create(schedule=schedule)
    assert made["schedule"] == {**schedule, "start_at": "", "jitter": "0s"}
    assert made["next_run_at"] == "2030-01-02T01:00:00Z"
    await timers.advance("24h")
    assert [run["scheduled_at"] for run in await timers.history(made)] == ["2030-01-02T01:00:00Z"]
    assert (await timers.create(schedule={"kind": "cron", "expr": "*/10 * * * * *"}))["schedule"]["timezone"] == "UTC"


async def test_a_seconds_field_is_refused_where_the_settings_say_so(make_timers: MakeTimers) -> None:
    timers = await make_timers(defaults=JobDefaults(seconds_field=False))
    answer = await timers.send("POST", "/jobs", {**GOOD, "schedule": {"kind": "cron", "expr": "0 * * * * *"}})
    assert answer.json()["problems"][0]["field"] == "schedule.expr"


@pytest.mark.parametrize("method", ["GET", "POST", "get"])
async def test_get_and_post_are_the_methods(timers: Timers, method: str) -> None:
    """K-2, K-25"""
    made = await timers.create(schedule=EVERY, http={**HTTP, "method": method})
    assert made["http"]["method"] == method.upper()


async def test_fields_nobody_knows_are_ignored(timers: Timers) -> None:
    """X-7, K-23: extras and what the service writes do not disturb."""
    extra = {"next_run_at": 5, "last_status": "success", "last_run_at": "yesterday", "colour": "red"}
    made = await timers.every("5m", **extra)
    assert (made["next_run_at"], made["last_status"]) == ("2030-01-01T12:05:00Z", "")
    patched = await timers.patch(made, **extra)
    assert patched == made


BAD: list[tuple[dict[str, Any], str]] = [
    ({"http": None}, "http.url"),
    ({"http": {"method": "GET"}}, "http.url"),
    ({"http": {"url": ""}}, "http.url"),
    ({"http": {"url": "ftp://x"}}, "http.url"),
    ({"http": {"url": "/ping"}}, "http.url"),
    ({"http": {"url": "nowhere"}}, "http.url"),
    ({"http": {"url": "https://"}}, "http.url"),
    ({"http": {**HTTP, "method": "PUT"}}, "http.method"),
    ({"http": {**HTTP, "method": "FETCH"}}, "http.method"),
    ({"http": {**HTTP, "headers": {"a b": "c"}}}, "http.headers.a b"),
    ({"http": {**HTTP, "headers": {"X": 1}}}, "http.headers.X"),
    ({"http": {**HTTP, "headers": {"X": "a\r\nY: b"}}}, "http.headers.X"),
    ({"http": {**HTTP, "headers": ["X"]}}, "http.headers"),
    ({"http": {**HTTP, "body": {"a": 1}}}, "http.body"),
    ({"http": "https://example.com"}, "http"),
    ({"type": "shell"}, "type"),
    ({"schedule": None}, "schedule"),
    ({"schedule": {}}, "schedule.kind"),
    ({"schedule": {"every": "5m"}}, "schedule.kind"),
    ({"schedule": {"kind": "weekly"}}, "schedule.kind"),
    ({"schedule": {"kind": "once"}}, "schedule.run_at"),
    ({"schedule": {"kind": "once", "run_at": ""}}, "schedule.run_at"),
    ({"schedule": {"kind": "once", "run_at": "tomorrow"}}, "schedule.run_at"),
    ({"schedule": {"kind": "once", "run_at": "2030-01-01"}}, "schedule.run_at"),
    ({"schedule": {"kind": "once", "run_at": "2030-01-01T00:00:00"}}, "schedule.run_at"),
    ({"schedule": {"kind": "once", "run_at": "2030-02-30T00:00:00Z"}}, "schedule.run_at"),
    ({"schedule": {"kind": "once", "run_at": 5}}, "schedule.run_at"),
    ({"schedule": {"kind": "once", "run_at": "2031-01-01T00:00:00Z", "every": "5m"}}, "schedule.every"),
    ({"schedule": {"kind": "every"}}, "schedule.every"),
    ({"schedule": {"kind": "every", "every": "0s"}}, "schedule.every"),
    ({"schedule": {"kind": "every", "every": "5"}}, "schedule.every"),
    ({"schedule": {"kind": "every", "every": 5}}, "schedule.every"),
    ({"schedule": {"kind": "every", "every": "abc"}}, "schedule.every"),
    ({"schedule": {"kind": "every", "every": "-5s"}}, "schedule.every"),
    ({"schedule": {"kind": "every", "every": "1ns"}}, "schedule.every"),
    ({"schedule": {"kind": "every", "every": "99ms"}}, "schedule.every"),
    ({"schedule": {**EVERY, "jitter": "5m"}}, "schedule.jitter"),
    ({"schedule": {**EVERY, "jitter": "-1s"}}, "schedule.jitter"),
    ({"schedule": {**EVERY, "jitter": "soon"}}, "schedule.jitter"),
    ({"schedule": {**EVERY, "start_at": "now"}}, "schedule.start_at"),
    ({"schedule": {**EVERY, "run_at": "2031-01-01T00:00:00Z"}}, "schedule.run_at"),
    ({"schedule": {"kind": "cron"}}, "schedule.expr"),
    ({"schedule": {"kind": "cron", "expr": "every day"}}, "schedule.expr"),
    ({"schedule": {"kind": "cron", "expr": "0 0 30 2 *"}}, "schedule.expr"),
    ({"schedule": {"kind": "cron", "expr": "0 9 * * *", "timezone": "Mars/Olympus"}}, "schedule.timezone"),
    ({"timeout": "5"}, "timeout"),
    ({"timeout": 5}, "timeout"),
    ({"timeout": "0s"}, "timeout"),
    ({"timeout": "25h"}, "timeout"),
    ({"retry_backoff": "-5s"}, "retry_backoff"),
    ({"retry_backoff": "abc"}, "retry_backoff"),
    ({"retry_backoff": "10000h"}, "retry_backoff"),
    ({"max_retries": -1}, "max_retries"),
    ({"max_retries": 1000}, "max_retries"),
    ({"max_retries": "3"}, "max_retries"),
    ({"max_retries": 1.5}, "max_retries"),
    ({"enabled": "yes"}, "enabled"),
    ({"name": 5}, "name"),
    ({"name": "n" * 129}, "name"),
    ({"name": "   "}, "name"),
    ({"id": "a/b"}, "id"),
    ({"id": "..", "name": "t"}, "id"),
    ({"id": "x" * 129}, "id"),
]


@pytest.mark.parametrize(("said", "field"), BAD, ids=lambda value: value if isinstance(value, str) else "")
async def test_a_bad_new_job_is_refused_by_name_and_not_stored(
    timers: Timers, said: dict[str, Any], field: str
) -> None:
    """K-25, K-24, K-20, K-44, K-75: 400 that names the field; nothing is stored."""
    answer = await timers.send("POST", "/jobs", {**GOOD, **said})
    problem = answer.json()
    assert (answer.status, problem["code"]) == (400, "INVALID_ARGUMENT")
    assert [one["field"] for one in problem["problems"]] == [field]
    assert problem["error"] == problem["message"]
    assert problem["error"].startswith(f"{field}: ")
    assert await timers.seen("/jobs") == []


PATCHED = [
    (said, field)
    for said, field in BAD
    # A change that says nothing of them leaves them as they are, and one without a kind changes the schedule in place.
    if None not in said.values() and field not in ("id", "schedule.kind") and said != {"http": {"method": "GET"}}
]


@pytest.mark.parametrize(("said", "field"), PATCHED, ids=lambda value: value if isinstance(value, str) else "")
async def test_a_bad_change_is_refused_by_name_and_changes_nothing(
    timers: Timers, said: dict[str, Any], field: str
) -> None:
    """K-25, K-69, K-75"""
    made = await timers.every("5m", id="one")
    answer = await timers.send("PATCH", "/jobs/one", {**said, "max_retries": said.get("max_retries", 1)})
    assert (answer.status, [one["field"] for one in answer.json()["problems"]]) == (400, [field])
    assert await timers.look(made) == made


async def test_everything_wrong_is_said_at_once(timers: Timers) -> None:
    """K-25: every field at fault, not only the first."""
    bad = {
        "id": "no/slash",
        "name": "n" * 200,
        "type": "shell",
        "http": {"method": "PUT", "url": "nowhere", "headers": {"Content-Length": "5"}},
        "schedule": {"kind": "every", "every": "often", "jitter": "some", "start_at": "noon"},
        "timeout": "long",
        "retry_backoff": "short",
    }
    answer = await timers.send("POST", "/jobs", bad)
    assert {one["field"] for one in answer.json()["problems"]} == {
        "id",
        "name",
        "type",
        "http.method",
        "http.url",
        "http.headers.Content-Length",
        "schedule.every",
        "schedule.jitter",
        "schedule.start_at",
        "timeout",
        "retry_backoff",
    }


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/jobs", b"{", 400, "INVALID_JSON"),
        ("POST", "/jobs", b"", 400, "INVALID_JSON"),
        ("POST", "/jobs", b"[]", 400, "INVALID_ARGUMENT"),
        ("POST", "/jobs", b'{"name": "a", "name": "b"}', 400, "INVALID_JSON"),
        ("GET", "/jobs/none", b"", 404, "NOT_FOUND"),
        ("PATCH", "/jobs/none", b"{}", 404, "NOT_FOUND"),
        ("DELETE", "/jobs/none", b"", 404, "NOT_FOUND"),
        ("POST", "/jobs/none/run-now", b"", 404, "NOT_FOUND"),
        ("POST", "/jobs/none/pause", b"", 404, "NOT_FOUND"),
        ("POST", "/jobs/none/resume", b"", 404, "NOT_FOUND"),
        ("GET", "/jobs/none/runs", b"", 404, "NOT_FOUND"),
        ("PUT", "/jobs/none", b"{}", 405, "METHOD_NOT_ALLOWED"),
        ("DELETE", "/jobs", b"", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/jobs/none/run-now", b"", 405, "METHOD_NOT_ALLOWED"),
    ],
)
async def test_errors_have_one_body(
    timers: Timers, method: str, path: str, body: bytes, status: int, code: str
) -> None:
    """K-75, X-12: the sentence in `error`, the code beside it, the id of the request in body and header."""
    answer = await timers.client.call(method, path, body=body, headers={"x-request-id": "mine-1"})
    seen = answer.json()
    assert (answer.status, seen["code"], seen["request_id"]) == (status, code, "mine-1")
    assert seen["error"] == seen["message"] != ""
    assert answer.headers["x-request-id"] == "mine-1"
