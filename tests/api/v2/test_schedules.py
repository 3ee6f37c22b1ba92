"""The preview: when a schedule would fire, before anything is stored."""

from datetime import UTC, datetime
from typing import Any

import pytest

from ksana.api.services import JobDefaults
from ksana.api.v2.schedule_shapes import CronShape, Problems, read_schedule
from ksana.domain.errors import InvalidArgument
from tests.api.v2.world import World

FROM = "2030-03-30T00:00:00Z"


async def _preview(world: World, schedule: dict[str, Any], **more: Any) -> Any:
    answer = await world.post("/api/v2/schedules/preview", {"schedule": schedule, **more})
    assert answer.status == 200, answer.body
    return answer.json()


async def test_a_cron_expression_is_explained(world: World) -> None:
    shown = await _preview(
        world, {"kind": "cron", "expr": "30 2 * * *", "timezone": "Europe/Berlin"}, from_at=FROM, count=2
    )
    assert shown["normalized"] == "0 30 2 * * *"
    assert shown["next"] == ["2030-03-30T01:30:00.000Z", "2030-03-31T01:00:00.000Z"]
    [note] = shown["notes"]
    assert "clocks skip from 2030-03-31 02:00 to 2030-03-31 03:00" in note


async def test_what_surprises_in_an_expression_is_noted(world: World) -> None:
    shown = await _preview(world, {"kind": "cron", "expr": "0 */5 13 * 5"}, count=1)
    assert [lint["code"] for lint in shown["lints"]] == ["uneven_step", "meant_minutes", "either_day"]
    assert shown["notes"] == [lint["message"]["en"] for lint in shown["lints"]]
    assert shown["next"] == ["2030-01-04T00:00:00.000Z"]


async def test_a_schedule_is_told_in_words_and_on_the_clocks_of_its_zone(world: World) -> None:
    cron = {"kind": "cron", "expr": "30 2 * * *", "timezone": "Europe/Berlin"}
    shown = await _preview(world, cron, from_at=FROM, count=2)
    assert shown["words"] == {
        "en": "At 02:30 every day (Europe/Berlin)",
        "zh": "每天 02:30（柏林时间）",
    }
    usual, moved = shown["fires"]
    assert usual == {"at": "2030-03-30T01:30:00.000Z", "local": "2030-03-30T02:30:00+01:00", "dst": None}
    assert moved["local"] == "2030-03-31T03:00:00+02:00"
    assert "moved to the end of the gap" in moved["dst"]["en"]
    assert (await _preview(world, {"kind": "every", "every": "90m"}, count=1))["words"]["en"] == "Every 90 minutes"
    often = await _preview(world, {"kind": "every", "every": "100ms"}, count=1)
    assert [lint["code"] for lint in often["lints"]] == ["too_often"]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({"kind": "every", "every": "90s"}, ["2030-01-01T12:01:30.000Z", "2030-01-01T12:03:00.000Z"]),
        ({"kind": "cron", "expr": "@every 1h"}, ["2030-01-01T13:00:00.000Z", "2030-01-01T14:00:00.000Z"]),
        (
            {"kind": "every", "every": "1h", "start_at": "2030-01-01T11:30:00Z"},
            ["2030-01-01T12:30:00.000Z", "2030-01-01T13:30:00.000Z"],
        ),
        ({"kind": "every", "every": "1h", "end_at": "2030-01-01T13:00:00Z"}, ["2030-01-01T13:00:00.000Z"]),
        ({"kind": "once", "run_at": "2030-01-02T00:00:00+08:00"}, ["2030-01-01T16:00:00.000Z"]),
        (
            {"kind": "cron", "expr": "0 0 * * *", "start_at": "2030-02-01T00:00:00Z"},
            ["2030-02-01T00:00:00.000Z", "2030-02-02T00:00:00.000Z"],
        ),
    ],
)
async def test_every_kind_of_schedule_is_previewed(world: World, schedule: dict[str, Any], expected: list[str]) -> None:
    shown = await _preview(world, schedule, count=2)
    assert (shown["next"], shown["notes"]) == (expected, [])


async def test_a_once_that_has_passed_fires_no_more(world: World) -> None:
    shown = await _preview(world, {"kind": "once", "run_at": "2029-01-01T00:00:00Z"})
    assert (shown["normalized"], shown["next"]) == (None, [])
    assert "missed" in shown["notes"][0]


async def test_five_fires_are_shown_unless_more_are_asked_for(world: World) -> None:
    every = {"kind": "every", "every": "1s"}
    assert len((await _preview(world, every))["next"]) == 5
    assert len((await _preview(world, every, count=100))["next"]) == 100


async def test_a_preview_agrees_with_what_the_job_then_does(world: World) -> None:
    schedule = {"kind": "cron", "expr": "*/7 * * * *", "timezone": "Asia/Kolkata"}
    shown = await _preview(world, schedule, count=1)
    assert (await world.job(schedule=schedule))["next_slot_at"] == shown["next"][0]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"schedule"}),
        ({"schedule": None}, {"schedule"}),
        ({"schedule": {"kind": "every", "every": "x", "jitter": "y"}, "from_at": "z"}, None),
        ({"schedule": {"kind": "every", "every": "1ms"}}, {"schedule.every"}),
        ({"schedule": {"kind": "cron", "expr": "0 0 31 4 *"}}, {"schedule.expr"}),
        ({"schedule": {"kind": "cron", "expr": ""}}, {"schedule.expr"}),
        ({"schedule": {"kind": "cron", "expr": "* * * * *", "timezone": "Nowhere"}}, {"schedule.timezone"}),
        ({"schedule": {"kind": "every", "every": "1s"}, "count": 0}, {"count"}),
        ({"schedule": {"kind": "every", "every": "1s"}, "count": 101}, {"count"}),
        ({"schedule": {"kind": "every", "every": "1s"}, "from": FROM}, {"from"}),
    ],
)
async def test_a_bad_preview_is_refused_by_the_name_of_its_field(
    world: World, body: dict[str, Any], fields: set[str] | None
) -> None:
    answer = await world.post("/api/v2/schedules/preview", body)
    assert answer.status == 400
    named = {problem["field"] for problem in answer.json()["problems"]}
    assert named == (fields or {"schedule.every", "schedule.jitter", "from_at"})


def test_a_server_without_a_field_for_seconds_refuses_it() -> None:
    problems, now = Problems(), datetime(2030, 1, 1, tzinfo=UTC)
    read_schedule(CronShape(expr="*/5 * * * *"), now, JobDefaults(seconds_field=False), problems)
    problems.raise_any()
    read_schedule(CronShape(expr="0 */5 * * * *"), now, JobDefaults(seconds_field=False), problems)
    with pytest.raises(InvalidArgument, match=r"schedule\.expr: .*enable_seconds_field"):
        problems.raise_any()
