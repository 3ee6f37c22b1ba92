from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from ksana.domain.jobs import Job, JobSpec, TargetSpec
from ksana.domain.policies import Misfire, MisfireRule, Overlap, OverlapRule, Retry, RetryStrategy
from ksana.domain.schedules import CronSchedule, Every, Once, Schedule

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "schedule",
    [None, Once(NOW), Every(timedelta(seconds=1), NOW, NOW, None, timedelta(milliseconds=5)), CronSchedule("@daily")],
)
def test_a_job_is_read_back_as_it_was_written(schedule: Schedule | None) -> None:
    job = Job(
        id=7,
        surface="v2",
        name="job",
        target=TargetSpec("http", {"url": "http://example.com", "headers": {"a": "b"}}),
        schedule=schedule,
        tags=("a", "b"),
        retry=Retry(3, RetryStrategy.EXPONENTIAL),
        overlap=Overlap(OverlapRule.SKIP, 2),
        misfire=Misfire(MisfireRule.CATCH_UP, 5),
        created_at=NOW,
        updated_at=NOW,
    )
    assert msgspec.json.decode(msgspec.json.encode(job), type=Job) == job


def test_all_that_somebody_may_say_is_part_of_the_job() -> None:
    assert set(JobSpec.__struct_fields__) < set(Job.__struct_fields__)
