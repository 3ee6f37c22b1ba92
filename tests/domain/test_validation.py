from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ksana.domain.jobs import JobSpec, TargetSpec
from ksana.domain.policies import Misfire, MisfireRule, Overlap, OverlapRule, Retry, Timeouts
from ksana.domain.schedules import CronSchedule, Every
from ksana.domain.validation import problems_of

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def a_spec(**said: Any) -> JobSpec:
    values: dict[str, Any] = {"name": "job", "target": TargetSpec("noop")}
    return JobSpec(**(values | said))


def fields(**said: Any) -> list[str]:
    return [problem.field for problem in problems_of(a_spec(**said))]


def test_an_ordinary_job_has_no_problems() -> None:
    assert problems_of(a_spec(schedule=Every(SECOND, NOW), tags=("a", "b"), description="多行\n文字")) == []


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 129}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"ref": "x" * 129}, "ref"),
        ({"description": "x" * 4097}, "description"),
        ({"queue": ""}, "queue"),
        ({"queue": "naïve"}, "queue"),
        ({"queue": "a\nb"}, "queue"),
        ({"queue": "x" * 65}, "queue"),
        ({"tags": ("x",) * 33}, "tags"),
        ({"tags": ("ok", " ")}, "tags[1]"),
        ({"tags": ("x" * 65,)}, "tags[0]"),
        ({"overlap": Overlap(OverlapRule.QUEUE, -1)}, "overlap.max_concurrency"),
        ({"overlap": Overlap(OverlapRule.QUEUE, 2**40)}, "overlap.max_concurrency"),
        ({"misfire": Misfire(MisfireRule.CATCH_UP, -1)}, "misfire.limit"),
        ({"misfire": Misfire(MisfireRule.CATCH_UP, 1001)}, "misfire.limit"),
        ({"retry": Retry(0)}, "retry.max_attempts"),
        ({"retry": Retry(1001)}, "retry.max_attempts"),
        ({"retry": Retry(2, multiplier=0.5)}, "retry.multiplier"),
        ({"retry": Retry(2, multiplier=float("nan"))}, "retry.multiplier"),
        ({"retry": Retry(2, initial_delay=-SECOND)}, "retry.initial_delay"),
        ({"retry": Retry(2, max_delay=timedelta(days=31))}, "retry.max_delay"),
        ({"timeouts": Timeouts(total=timedelta(0))}, "timeouts.total"),
        ({"timeouts": Timeouts(connect=timedelta(days=2))}, "timeouts.connect"),
        ({"timeouts": Timeouts(callback=timedelta(days=31))}, "timeouts.callback"),
        ({"schedule": Every(timedelta(milliseconds=99), NOW)}, "schedule.every"),
        ({"schedule": CronSchedule("61 * * * *")}, "schedule.expr"),
    ],
)
def test_what_is_wrong_is_named(said: dict[str, Any], field: str) -> None:
    assert fields(**said) == [field]


def test_every_problem_is_named_not_only_the_first() -> None:
    found = fields(name="", queue="", retry=Retry(0), schedule=Every(timedelta(0), NOW))
    assert found == ["name", "queue", "retry.max_attempts", "schedule.every"]


@pytest.mark.parametrize("said", [{"overlap": Overlap(OverlapRule.QUEUE, 0)}, {"retry": Retry(1000)}, {"ref": ""}])
def test_the_bounds_themselves_are_allowed(said: dict[str, Any]) -> None:
    assert fields(**said) == []
