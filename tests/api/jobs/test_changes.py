"""Changing a timer: what is named changes, the rest stays, and only schedule and switch move the next run."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.api.jobs.timers import HTTP, Timers
from tests.kit.clock import START

SHOWN_HTTP = {**HTTP, "headers": {}, "body": ""}

ALONE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"name": "other"}, {"name": "other"}),
    ({"name": ""}, {"name": "one"}),
    ({"timeout": "90s"}, {"timeout": "90s"}),
    ({"timeout": ""}, {"timeout": "10s"}),
    ({"max_retries": 0}, {"max_retries": 0}),
    ({"retry_backoff": "0s"}, {"retry_backoff": "0s"}),
    ({"retry_backoff": ""}, {"retry_backoff": "5s"}),
    ({"type": "http"}, {}),
    ({"id": "one"}, {}),
    ({"http": {"url": "https://b.example/"}}, {"http": {**SHOWN_HTTP, "url": "https://b.example/"}}),
    ({"http": {"method": "POST"}}, {"http": {**SHOWN_HTTP, "method": "POST"}}),
    ({"http": {"headers": {"X-A": "1"}}}, {"http": {**SHOWN_HTTP, "headers": {"X-A": "1"}}}),
    ({"http": {"body": "hello"}}, {"http": {**SHOWN_HTTP, "body": "hello"}}),
    ({"http": {}}, {}),
    ({}, {}),
    (dict.fromkeys(["name", "enabled", "type", "http", "schedule", "timeout", "max_retries", "retry_backoff"]), {}),
]


@pytest.mark.parametrize(("said", "changed"), ALONE, ids=lambda value: ",".join(value))
async def test_each_field_can_be_changed_alone(timers: Timers, said: dict[str, Any], changed: dict[str, Any]) -> None:
    """K-69, K-79: empty values are applied, absent and null ones kept; the next run stays where it is."""
    made = await timers.every("5m", id="one", timeout="4s", max_retries=7, retry_backoff="6s", jitter="2m")
    await timers.advance("7s")
    patched = await timers.patch(made, **said)
    assert patched == {**made, **changed}
    assert await timers.look(made) == patched


async def test_a_patch_that_says_nothing_new_writes_nothing(timers: Timers) -> None:
    """K-79: the whole job, read and sent back, changes nothing, not even the version."""
    made = await timers.every("300s", jitter="5s", start_at=timers.later(0.5))
    before = await timers.send("GET", f"/jobs/{made['id']}")
    again = await timers.send("PATCH", f"/jobs/{made['id']}", made)
    assert (again.json(), again.headers["etag"]) == (made, before.headers["etag"])


async def test_headers_are_replaced_as_a_whole(timers: Timers) -> None:
    """X-54"""
    made = await timers.create(
        schedule={"kind": "every", "every": "1m"}, http={**HTTP, "headers": {"A": "1", "B": "2"}}
    )
    assert (await timers.patch(made, http={"headers": {"C": "3"}}))["http"]["headers"] == {"C": "3"}
    assert (await timers.patch(made, http={"headers": {}}))["http"]["headers"] == {}


async def test_a_new_interval_counts_from_now(any_timers: Timers) -> None:
    """K-43, K-42, K-69, on every store: the answer shows the new next run, and it fires then."""
    timers = any_timers
    made = await timers.every("1h")
    await timers.advance("10s")
    patched = await timers.patch(made, schedule={"every": "2s"})
    assert patched["next_run_at"] == "2030-01-01T12:00:12Z"
    assert await timers.look(made) == patched
    await timers.advance("4s")
    assert timers.sink.times == [START + timedelta(seconds=n) for n in (12, 14)]


async def test_a_schedule_without_a_kind_is_changed_in_place(timers: Timers) -> None:
    """X-54, K-79"""
    made = await timers.every("1h", start_at="2030-01-01T12:30:00Z", jitter="1m")
    patched = await timers.patch(made, schedule={"jitter": ""})
    assert patched["schedule"] == {**made["schedule"], "jitter": "0s"}
    assert patched["next_run_at"] == "2030-01-01T12:30:00Z"
    assert (await timers.patch(made, schedule={"start_at": ""}))["next_run_at"] == "2030-01-01T13:00:00Z"


async def test_a_schedule_with_a_kind_is_replaced(timers: Timers) -> None:
    """X-54"""
    made = await timers.every("1h", start_at="2030-01-01T12:30:00Z", jitter="1m")
    patched = await timers.patch(made, schedule={"kind": "every", "every": "1h"})
    assert patched["schedule"] == {"kind": "every", "every": "1h", "start_at": "", "jitter": "0s"}
    once = await timers.patch(made, schedule={"kind": "once", "run_at": "2030-01-01T12:10:00Z"})
    assert (once["schedule"], once["next_run_at"]) == (
        {"kind": "once", "run_at": "2030-01-01T12:10:00Z"},
        "2030-01-01T12:10:00Z",
    )
    cron = await timers.patch(made, schedule={"kind": "cron", "expr": "@daily"})
    assert cron["next_run_at"] == "2030-01-02T00:00:00Z"


async def test_saying_the_same_schedule_again_moves_nothing(timers: Timers) -> None:
    """K-69: it keeps counting from where it began."""
    made = await timers.every("5m")
    await timers.advance("100s")
    assert await timers.patch(made, schedule={"kind": "every", "every": "5m"}) == made
    spelt = await timers.patch(made, schedule={"every": "300s"})
    assert (spelt["schedule"]["every"], spelt["next_run_at"]) == ("300s", made["next_run_at"])


async def test_a_once_can_be_armed_again(timers: Timers) -> None:
    """K-69, X-47"""
    made = await timers.once(timers.now + timedelta(seconds=1))
    await timers.advance("5s")
    armed = await timers.patch(made, schedule={"run_at": "2030-01-01T12:01:00Z"})
    assert (armed["next_run_at"], armed["last_status"]) == ("2030-01-01T12:01:00Z", "success")
    await timers.advance("10m")
    assert timers.sink.count == 2
    late = await timers.patch(made, schedule={"run_at": "2030-01-01T12:02:00Z"})
    assert (late["last_status"], late["next_run_at"]) == ("missed", "")


async def test_a_schedule_can_be_changed_and_switched_on_together(timers: Timers) -> None:
    """K-69, K-77"""
    made = await timers.every("1h", enabled=False)
    await timers.advance("10s")
    changed = await timers.patch(made, enabled=True, schedule={"every": "5s"})
    assert changed["next_run_at"] == "2030-01-01T12:00:15Z"
    missed = await timers.create(schedule={"kind": "every", "every": "1h"}, enabled=False)
    past = {"kind": "once", "run_at": "2030-01-01T11:00:00Z"}
    assert (await timers.patch(missed, enabled=True, schedule=past))["last_status"] == "missed"


async def test_an_id_cannot_be_changed(timers: Timers) -> None:
    made = await timers.every("1h")
    answer = await timers.send("PATCH", f"/jobs/{made['id']}", {"id": "other", "name": "x"})
    assert (answer.status, answer.json()["problems"][0]["field"]) == (400, "id")
    assert await timers.look(made) == made


async def test_changes_of_different_fields_do_not_lose_each_other(timers: Timers) -> None:
    """K-69: many at once, each of its own field of one job."""
    made = await timers.every("1h", id="one")
    headers = {"content-type": "application/json"}
    changes = [{"name": "new"}, {"timeout": "3s"}, {"max_retries": 1}, {"http": {"body": "b"}}, {"enabled": False}]
    answers = await asyncio.gather(
        *(timers.client.call("PATCH", "/jobs/one", json_body=change, headers=headers) for change in changes)
    )
    assert [answer.status for answer in answers] == [200] * 5
    seen = await timers.look(made)
    assert (seen["name"], seen["timeout"], seen["max_retries"], seen["enabled"]) == ("new", "3s", 1, False)
    assert seen["http"] == {**SHOWN_HTTP, "body": "b"}


async def test_a_change_meant_for_another_version_is_refused(timers: Timers) -> None:
    """If-Match, as everywhere: 412 and nothing changes."""
    made = await timers.every("1h", id="one")
    etag = (await timers.send("GET", "/jobs/one")).headers["etag"]
    assert (await timers.send("PATCH", "/jobs/one", {"name": "x"}, if_match=etag)).status == 200
    for method, path, body in (
        ("PATCH", "/jobs/one", {"name": "y"}),
        ("DELETE", "/jobs/one", None),
        ("POST", "/jobs/one/pause", None),
        ("POST", "/jobs/one/resume", None),
    ):
        late = await timers.send(method, path, body, if_match=etag)
        assert (late.status, late.json()["code"]) == (412, "VERSION_CONFLICT")
    assert await timers.look(made) == {**made, "name": "x"}


async def test_what_this_surface_has_no_word_for_stays(timers: Timers) -> None:
    """X-6: tags, priority and the end of a schedule, set by /api/v2, survive a change here."""
    made = await timers.every("1h")
    end = {"kind": "every", "every": "1h", "end_at": "2031-01-01T00:00:00Z"}
    await timers.send("PATCH", "/api/v2/jobs/1", {"tags": ["a"], "priority": "high", "schedule": end})
    await timers.patch(made, **made)
    await timers.patch(made, schedule={"every": "2h"})
    seen = await timers.seen("/api/v2/jobs/1")
    assert (seen["tags"], seen["priority"], seen["schedule"]["end_at"]) == (["a"], "high", "2031-01-01T00:00:00.000Z")


async def test_a_job_that_another_surface_turned_into_something_else_is_still_shown(timers: Timers) -> None:
    """X-6: without an HTTP call or a schedule there is little to show, and it is shown."""
    made = await timers.every("1h")
    await timers.send("PATCH", "/api/v2/jobs/1", {"schedule": None, "target": {"kind": "script"}})
    seen = await timers.look(made)
    assert (seen["type"], seen["schedule"], seen["next_run_at"]) == ("script", None, "")
    assert seen["http"] == {"method": "", "url": "", "headers": {}, "body": ""}
    back = await timers.patch(made, http=HTTP, schedule={"kind": "every", "every": "1m"})
    assert (back["type"], back["http"]) == ("http", SHOWN_HTTP)
