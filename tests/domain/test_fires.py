"""`decide` against brute force: every due slot becomes one run or lies in one gap, and nothing else does."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.errors import ConcurrencyLimit
from ksana.domain.fires import DueJob, Fire, Lateness, admit_manual, decide, new_run, owed_gap, paused_gap, plan_from
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.policies import Misfire, MisfireRule, Overlap, OverlapRule
from ksana.domain.runs import Trigger
from ksana.domain.schedules import CronSchedule, Every, Once, Schedule, first_slot, next_slot
from ksana.domain.states import Reason, State

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PARALLEL = Overlap(OverlapRule.PARALLEL)


class Counting:
    """Ids in a row, half the jitter, one token."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)

    def run_id(self) -> int:
        return next(self._ids)

    def jitter(self) -> float:
        return 0.5

    def token(self) -> str:
        return "token"


def a_job(schedule: Schedule | None, **said: object) -> Job:
    values: dict[str, object] = {"name": "job", "target": TargetSpec("noop"), "overlap": PARALLEL}
    return Job(
        id=1,
        surface="v2",
        schedule=schedule,
        created_at=NOW,
        updated_at=NOW,
        **(values | said),  # type: ignore[arg-type]
    )


def slots_between(schedule: Schedule, first: datetime, until: datetime) -> list[datetime]:
    slots = []
    slot: datetime | None = first
    while slot is not None and slot <= until:
        slots.append(slot)
        slot = next_slot(schedule, slot)
    return slots


def decided(job: Job, late_by: timedelta, active: int = 0, lateness: Lateness | None = None) -> tuple[Fire, datetime]:
    assert job.schedule is not None
    first = first_slot(job.schedule, NOW)
    assert first is not None
    now = first + late_by
    return decide(DueJob(job, first, first, active), now, lateness or Lateness(), Counting()), now


schedules = st.one_of(
    st.builds(
        lambda s, n: Every(timedelta(milliseconds=s), NOW, None, NOW + timedelta(milliseconds=s) * n),
        st.integers(100, 20_000),
        st.integers(1, 400),
    ),
    st.sampled_from([CronSchedule("* * * * *"), CronSchedule("*/7 * * * *"), CronSchedule("*/5 * * * * *")]),
)
misfires = st.one_of(
    st.just(Misfire(MisfireRule.SKIP)),
    st.just(Misfire(MisfireRule.FIRE_ONCE)),
    st.builds(Misfire, st.just(MisfireRule.CATCH_UP), st.integers(0, 50)),
)


@given(schedules, misfires, st.integers(0, 600_000), st.sampled_from([0, 5, 60]))
def test_every_due_slot_has_one_run_or_lies_in_the_one_gap(
    schedule: Schedule, misfire: Misfire, late_ms: int, threshold: int
) -> None:
    lateness = Lateness(threshold * SECOND)
    fire, now = decided(a_job(schedule, misfire=misfire), timedelta(milliseconds=late_ms), lateness=lateness)
    first = first_slot(schedule, NOW)
    assert first is not None
    due = slots_between(schedule, first, now)
    kept = [run.slot_at for run in fire.runs]
    left_out = due[: len(due) - len(kept)]
    assert kept == due[len(left_out) :]
    if left_out:
        [gap] = fire.gaps
        assert (gap.from_at, gap.to_at, gap.count) == (left_out[0], left_out[-1], len(left_out))
        assert gap.recorded_at == now
    else:
        assert fire.gaps == []
    assert fire.next_slot_at == next_slot(schedule, now)


@given(schedules, misfires, st.integers(0, 600_000))
def test_how_many_are_kept_is_what_the_rule_says_but_a_fresh_slot_is_never_left_out(
    schedule: Schedule, misfire: Misfire, late_ms: int
) -> None:
    fire, now = decided(a_job(schedule, misfire=misfire), timedelta(milliseconds=late_ms))
    first = first_slot(schedule, NOW)
    assert first is not None
    due = slots_between(schedule, first, now)
    fresh = [slot for slot in due if now - slot <= Lateness().threshold]
    if len(fresh) == len(due) or now - first <= Lateness().threshold:
        assert [run.slot_at for run in fire.runs] == due
        assert {run.trigger for run in fire.runs} == {Trigger.SCHEDULE}
    else:
        assert len(fire.runs) == min(len(due), max(len(fresh), misfire.keeps))
        assert [run.trigger for run in fire.runs].count(Trigger.SCHEDULE) == len(fresh)


@given(st.integers(0, 10), st.integers(0, 5), st.sampled_from([OverlapRule.QUEUE, OverlapRule.SKIP]))
def test_runs_past_the_limit_wait_or_are_skipped(active: int, limit: int, rule: OverlapRule) -> None:
    job = a_job(Every(SECOND, NOW), overlap=Overlap(rule, limit))
    fire, now = decided(job, 3 * SECOND, active)
    free = max(0, limit - active)
    states = [run.state for run in fire.runs]
    turned_away = State.WAITING if rule is OverlapRule.QUEUE else State.SKIPPED
    assert states == [State.SCHEDULED] * min(free, 4) + [turned_away] * max(0, 4 - free)
    for run in fire.runs:
        assert (run.ended_at == now) == (run.state is State.SKIPPED)


@given(st.integers(0, 3_000_000))
def test_a_once_is_missed_only_past_its_grace(late_micros: int) -> None:
    late = timedelta(microseconds=late_micros)
    fire, _ = decided(a_job(Once(NOW)), late)
    [run] = fire.runs
    assert run.state is (State.MISSED if late > SECOND else State.SCHEDULED)
    assert (fire.next_slot_at, fire.next_fire_at, fire.gaps) == (None, None, [])


def test_no_run_is_due_before_its_slot_or_after_now() -> None:
    job = a_job(Every(SECOND, NOW, jitter=SECOND / 2))
    first = NOW + SECOND
    due = DueJob(job, first, first + SECOND / 4, 0)
    now = first + 3 * SECOND
    fire = decide(due, now, Lateness(), Counting())
    assert fire.runs[0].due_at == first + SECOND / 4
    assert all(run.slot_at is not None and run.slot_at <= run.due_at <= now for run in fire.runs)
    assert fire.next_slot_at is not None
    assert fire.next_fire_at == fire.next_slot_at + SECOND / 4


def test_one_decision_makes_a_bounded_number_of_runs_and_records_the_rest() -> None:
    job = a_job(Every(timedelta(milliseconds=100), NOW))
    fire, _ = decided(job, timedelta(hours=1), lateness=Lateness(timedelta(hours=2)))
    assert len(fire.runs) == 1000
    assert len(fire.runs) + fire.gaps[0].count == 36_001


def test_a_slot_late_by_its_jitter_is_not_late() -> None:
    job = a_job(CronSchedule("0 * * * *", jitter=timedelta(minutes=30)), misfire=Misfire(MisfireRule.SKIP))
    first = NOW + timedelta(hours=1)
    fire_at = first + timedelta(minutes=29)
    fire = decide(DueJob(job, first, fire_at, 0), fire_at, Lateness(), Counting())
    assert [run.slot_at for run in fire.runs] == [first]


@pytest.mark.parametrize(
    ("rule", "active", "state"),
    [
        (OverlapRule.QUEUE, 0, State.SCHEDULED),
        (OverlapRule.QUEUE, 1, State.WAITING),
        (OverlapRule.SKIP, 0, State.SCHEDULED),
        (OverlapRule.PARALLEL, 9, State.SCHEDULED),
    ],
)
def test_a_run_somebody_asked_for_starts_or_waits(rule: OverlapRule, active: int, state: State) -> None:
    job = a_job(None, overlap=Overlap(rule, 1))
    run = new_run(job, Counting(), NOW, trigger=Trigger.MANUAL)
    assert admit_manual(job, active, run).state is state


def test_a_run_somebody_asked_for_is_refused_when_its_job_skips() -> None:
    job = a_job(None, overlap=Overlap(OverlapRule.SKIP, 2))
    run = new_run(job, Counting(), NOW, trigger=Trigger.MANUAL)
    with pytest.raises(ConcurrencyLimit, match="2 unfinished runs and allows 2"):
        admit_manual(job, 2, run)


def test_a_token_is_drawn_only_for_jobs_that_await_a_callback() -> None:
    assert new_run(a_job(None), Counting(), NOW, trigger=Trigger.MANUAL).callback_token is None
    awaiting = a_job(None, awaits_callback=True)
    assert new_run(awaiting, Counting(), NOW, trigger=Trigger.MANUAL).callback_token == "token"


@given(schedules, st.integers(0, 300_000), st.integers(0, 300_000))
def test_a_pause_is_one_gap_of_all_it_left_out(schedule: Schedule, before_ms: int, for_ms: int) -> None:
    paused_at = NOW + timedelta(milliseconds=before_ms)
    now = paused_at + timedelta(milliseconds=for_ms)
    gap = paused_gap(a_job(schedule), paused_at, now)
    first = next_slot(schedule, paused_at)
    left_out = [] if first is None else slots_between(schedule, first, now)
    if not left_out:
        assert gap is None
    else:
        assert gap is not None
        assert (gap.from_at, gap.to_at, gap.count) == (left_out[0], left_out[-1], len(left_out))
        assert gap.reason is Reason.PAUSED


def test_a_cursor_in_the_future_owes_nothing() -> None:
    job = plan_from(a_job(Every(SECOND, NOW)), NOW, Counting())
    assert owed_gap(job, NOW, Reason.PAUSED) is None
    gap = owed_gap(job, NOW + 3 * SECOND, Reason.PAUSED)
    assert gap is not None
    assert (gap.from_at, gap.to_at, gap.count) == (NOW + SECOND, NOW + 3 * SECOND, 3)


def test_a_job_that_is_off_or_has_no_schedule_plans_nothing() -> None:
    for job in (a_job(None), a_job(Every(SECOND, NOW), enabled=False), a_job(Once(NOW))):
        assert plan_from(job, NOW, Counting()).next_slot_at is None
