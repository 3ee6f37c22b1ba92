"""What is decided ahead is what would have been decided at the instant, as long as it says that it stands."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.fires import DueJob, Lateness, decide
from ksana.domain.foresight import Births, Foreseen, born, foresee
from ksana.domain.moves import advance
from ksana.domain.policies import Overlap, OverlapRule
from ksana.domain.schedules import Once, Schedule, first_slot
from ksana.domain.states import Event
from tests.domain.test_fires import NOW, SECOND, Counting, a_job, misfires, schedules

overlaps = st.builds(Overlap, st.sampled_from(list(OverlapRule)), st.integers(1, 3))


@given(
    st.one_of(schedules, st.just(Once(NOW + SECOND))),
    misfires,
    overlaps,
    st.booleans(),
    st.integers(0, 3),
    st.sampled_from([0, 1, 80, 500, 1000, 1001, 5000, 5001, 61_000]).map(lambda ms: timedelta(milliseconds=ms)),
    st.sampled_from([0, 40]).map(lambda ms: timedelta(milliseconds=ms)),
    st.booleans(),
)
def test_a_prospect_that_stands_becomes_what_would_be_decided(
    schedule: Schedule,
    misfire: object,
    overlap: Overlap,
    awaits_callback: bool,
    active: int,
    late_by: timedelta,
    jitter: timedelta,
    claims: bool,
) -> None:
    job = a_job(schedule, misfire=misfire, overlap=overlap, awaits_callback=awaits_callback)
    slot_at = first_slot(schedule, NOW)
    assert slot_at is not None
    due = DueJob(job, slot_at, slot_at + (timedelta(0) if isinstance(schedule, Once) else jitter), active)
    now = due.fire_at + late_by
    prospect = foresee(due, Lateness(), Counting(), 7)
    fire = decide(due, now, Lateness(), Counting())
    if prospect is None or not prospect.stands(due) or not Foreseen([prospect]).is_good(now):
        # Rightly so: there is something to decide that is not one run found in time.
        assert late_by or active or prospect is None
        return
    [run] = fire.runs
    if claims:
        run = advance(run, Event.CLAIM, now, node_id=7)
    assert born([prospect], Births(now, [1], int(claims))) == [run]
    assert (prospect.next_slot_at, prospect.next_fire_at) == (fire.next_slot_at, fire.next_fire_at)
    assert fire.gaps == []


def test_in_time_and_with_room_a_prospect_always_stands() -> None:
    job = a_job(Once(NOW), overlap=Overlap(OverlapRule.QUEUE, 2))
    due = DueJob(job, NOW, NOW, 1)
    prospect = foresee(due, Lateness(), Counting(), None)
    assert prospect is not None and prospect.claimed is None
    assert prospect.stands(due) and Foreseen([prospect]).is_good(NOW)
    assert not prospect.stands(DueJob(job, NOW, NOW, 2))
    assert not prospect.stands(DueJob(a_job(Once(NOW), version=2), NOW, NOW, 0))
    assert not prospect.stands(DueJob(job, NOW, NOW + SECOND, 0))
    assert not Foreseen([prospect]).is_good(NOW - timedelta(microseconds=1))
