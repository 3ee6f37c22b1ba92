"""Cron on the tasks surface: six fields, the document's steps, zones, and runs to the second."""

import pytest

from ksana.api.services import JobDefaults
from ksana.api.tasks.cron_text import normalized
from ksana.domain.errors import InvalidArgument
from tests.api.tasks.world import FAR, World, ok, open_world, problems
from tests.kit.sink import Sink


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("*/5 * * * *", "0 */5 * * * *"),
        ("0 */5 * * *", "0 0 */5 * * *"),
        ("*/30 * * * * *", "*/30 * * * * *"),
        ("0,30 * * * * *", "0,30 * * * * *"),
        ("15 10 3 * * *", "15 10 3 * * *"),
        ("  0   9 * * 1-5 ", "0 0 9 * * 1-5"),
        ("1-10/2 * * * * *", "1-10/2 * * * * *"),
        ("0 0 * * 7", "0 0 0 * * 0"),
        ("@hourly", "0 0 * * * *"),
        ("@weekly", "0 0 0 * * 0"),
        ("0 0 0 */2 * *", "0 0 0 2,4,6,8,10,12,14,16,18,20,22,24,26,28,30 * *"),
        ("0 0 0 1 */5 *", "0 0 0 1 5,10 *"),
        ("0 0 0 */10,1 */6 *", "0 0 0 10,20,30,1 6,12 *"),
        ("0 0 0 */1 */1 *", "0 0 0 * * *"),
        ("0 0 0 1/2 * *", "0 0 0 1/2 * *"),
        ("0 0 0 * * */2", "0 0 0 * * */2"),
    ],
)
def test_an_expression_is_kept_with_six_fields_and_the_documents_meaning(given: str, kept: str) -> None:
    """C-21, C-22, C-23, C-24, C-25, R9: five fields get a leading 0; `*/N` of days and months means divisible by N."""
    assert normalized(given, seconds_field=True) == kept
    assert normalized(kept, seconds_field=True) == kept


@pytest.mark.parametrize("given", ["0 0 0 */32 * *", "0 0 0 1 */13 *", "61 * * * * *", "* * *", "7 7 7 7 7 7 7"])
def test_what_never_matches_is_refused(given: str) -> None:
    """C-26."""
    with pytest.raises(InvalidArgument):
        normalized(given, seconds_field=True)


async def test_a_day_step_fires_on_days_divisible_by_it(world: World) -> None:
    """C-24: `*/2` of January 2030 begins on the 2nd, not on the 1st or the 3rd."""
    task = await world.task(cron_expr="0 0 0 */2 * *")
    assert (await world.seen(f"/api/v1/tasks/{task}"))["next_run_time"] == "2030-01-02T00:00:00Z"


async def test_seconds_can_be_switched_off(sqlite_tasks_url: str, sink: Sink) -> None:
    """C-28, C-132: `scheduler.enable_seconds_field: false` refuses six fields and keeps five as six."""
    async with open_world(sqlite_tasks_url, sink, {"defaults": JobDefaults(seconds_field=False)}) as world:
        body = {"name": "t", "cron_expr": FAR, "target_url": "http://t.test/"}
        assert "enable_seconds_field" in problems(await world.post("/api/v1/tasks", body))["cron_expr"]
        ok(await world.post("/api/v1/tasks", {**body, "cron_expr": "0 0 1 7 *"}))
        assert (await world.seen("/api/v1/tasks/1"))["CronExpr"] == FAR


async def test_runs_come_every_five_seconds(world: World) -> None:
    """C-29, C-149: `*/5 * * * * *` for half a minute is six runs at seconds divisible by five."""
    task = await world.task(cron_expr="*/5 * * * * *")
    await world.advance(30)
    planned = [run["ScheduledTime"] for run in await world.runs(task)]
    assert planned == [f"2030-01-01T12:00:{second:02}Z" for second in (30, 25, 20, 15, 10, 5)]
    assert world.sink.count == 6


@pytest.mark.parametrize(
    ("timezone", "planned"), [("Asia/Shanghai", "01:00:00Z"), ("+08:00", "01:00:00Z"), ("UTC", "09:00:00Z")]
)
async def test_the_zone_of_a_task_says_when_nine_is(world: World, timezone: str, planned: str) -> None:
    """C-27, X-36: an IANA name or an offset; what is shown is UTC."""
    task = await world.task(cron_expr="0 0 9 * * *", timezone=timezone)
    assert (await world.seen(f"/api/v1/tasks/{task}"))["next_run_time"] == f"2030-01-02T{planned}"


async def test_the_zone_of_the_settings_is_that_of_tasks_that_name_none(sqlite_tasks_url: str, sink: Sink) -> None:
    async with open_world(sqlite_tasks_url, sink, {"defaults": JobDefaults(timezone="Asia/Tokyo")}) as world:
        task = await world.task(cron_expr="0 0 9 * * *")
        assert (await world.seen(f"/api/v1/tasks/{task}"))["Timezone"] == "Asia/Tokyo"
