"""Where a timer stands, from nothing but its job and its last run."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ksana.domain.fires import Lateness
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.runs import Run
from ksana.domain.schedules import Every, Once
from ksana.domain.standing import END_STATUS, Standing, standing_of
from ksana.domain.states import FINAL, State

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LATER = NOW + MINUTE


def a_job(**said: Any) -> Job:
    values = {"schedule": Every(MINUTE, NOW), "next_slot_at": LATER, "next_fire_at": LATER, **said}
    return Job(id=1, surface="jobs", name="t", target=TargetSpec("http"), created_at=NOW, updated_at=NOW, **values)


def a_once(run_at: datetime, is_planned: bool = True, **said: Any) -> Job:
    cursor = run_at if is_planned else None
    return a_job(schedule=Once(run_at), next_slot_at=cursor, next_fire_at=cursor, **said)


def a_run(state: State, **said: Any) -> Run:
    return Run(id=1, job_id=1, state=state, due_at=NOW, created_at=NOW - MINUTE, ended_at=NOW, error="why", **said)


def standing(job: Job, last: Run | None = None, is_untouched: bool = False) -> Standing:
    return standing_of(job, last, is_untouched, NOW, Lateness())


def test_every_end_of_a_run_has_a_word() -> None:
    """K-22"""
    assert END_STATUS.keys() == FINAL
    assert set(END_STATUS.values()) == {"success", "failed", "timeout", "skipped", "missed"}


def test_a_new_job_says_nothing_but_when_it_fires() -> None:
    assert standing(a_job()) == Standing(None, LATER, "", "")


@pytest.mark.parametrize("state", sorted(FINAL))
def test_the_last_run_tells_when_it_was_triggered_and_how_it_ended(state: State) -> None:
    ran = state not in (State.MISSED, State.SKIPPED)
    expected = Standing(NOW - MINUTE if ran else None, LATER, END_STATUS[state], "why")
    assert standing(a_job(), a_run(state)) == expected


def test_a_pause_has_the_word_until_a_run_ends_after_it() -> None:
    """K-22"""
    run = a_run(State.FAILED)
    paused = a_job(enabled=False, next_slot_at=None, next_fire_at=None, paused_at=NOW)
    assert standing(paused) == Standing(None, None, "paused", "")
    assert standing(paused, run) == Standing(NOW - MINUTE, None, "paused", "")
    earlier = a_job(enabled=False, next_slot_at=None, next_fire_at=None, paused_at=NOW - MINUTE)
    assert standing(earlier, run).last_status == "failed"


def test_a_once_that_nobody_will_find_in_time_is_missed_already() -> None:
    """K-33"""
    grace = Lateness().grace
    assert standing(a_once(NOW - grace)) == Standing(None, NOW - grace, "", "")
    assert standing(a_once(NOW - grace - timedelta(microseconds=1))) == Standing(None, None, "missed", "")


def test_a_once_with_nothing_planned_is_missed_unless_it_has_a_run() -> None:
    """K-32, K-33"""
    spent = a_once(NOW - MINUTE, is_planned=False)
    assert standing(spent, is_untouched=True).last_status == "missed"
    assert standing(spent).last_status == ""
    assert standing(spent, a_run(State.SUCCESS)).last_status == "success"
