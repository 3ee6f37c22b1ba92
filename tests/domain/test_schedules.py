"""Schedules: slots on a grid that never drifts, bounds, jitter, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.errors import InvalidArgument
from ksana.domain.schedules import (
    MIN_EVERY,
    CronSchedule,
    Every,
    Once,
    Schedule,
    count_slots,
    fire_at,
    first_slot,
    latest_slots,
    next_slot,
    previous_slot,
    validate,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FIVE = timedelta(minutes=5)
TICK = timedelta(microseconds=1)
END_OF_TIME = datetime.max.replace(tzinfo=UTC)
BOUNDED = [
    Once(NOON + FIVE),
    Every(FIVE, NOON),
    Every(FIVE, NOON, start_at=NOON + timedelta(hours=1)),
    Every(FIVE, NOON, start_at=NOON - timedelta(seconds=30), end_at=NOON + timedelta(hours=3)),
    Every(timedelta(seconds=7), NOON, end_at=NOON + timedelta(minutes=20)),
    CronSchedule("*/7 * * * *"),
    CronSchedule("*/10 * * * * *", "America/New_York", start_at=NOON + timedelta(minutes=3, seconds=20)),
    CronSchedule("0 * * * *", start_at=NOON, end_at=NOON + timedelta(hours=2)),
]


def slots(schedule: Schedule, after: datetime, until: datetime) -> list[datetime]:
    found = []
    slot = next_slot(schedule, after)
    while slot is not None and slot <= until:
        found.append(slot)
        slot = next_slot(schedule, slot)
    return found


def test_once_has_one_slot_even_when_it_has_passed() -> None:
    schedule = Once(NOON)
    assert first_slot(schedule, NOON + FIVE) == NOON
    assert next_slot(schedule, NOON - TICK) == NOON
    assert next_slot(schedule, NOON) is None
    assert previous_slot(schedule, NOON) is None
    assert previous_slot(schedule, NOON + TICK) == NOON


def test_every_without_a_start_begins_one_interval_after_its_origin() -> None:
    schedule = Every(FIVE, NOON)
    assert first_slot(schedule, NOON) == NOON + FIVE
    assert next_slot(schedule, NOON - timedelta(days=1)) == NOON + FIVE
    assert previous_slot(schedule, NOON + FIVE) is None


def test_every_with_a_future_start_begins_exactly_there() -> None:
    start = NOON + timedelta(hours=1, seconds=3)
    schedule = Every(FIVE, NOON, start_at=start)
    assert first_slot(schedule, NOON) == start
    assert next_slot(schedule, start) == start + FIVE


def test_every_with_a_past_start_keeps_to_its_grid() -> None:
    schedule = Every(FIVE, NOON, start_at=NOON - timedelta(minutes=62))
    assert first_slot(schedule, NOON) == NOON + timedelta(minutes=3)


def test_every_does_not_drift_however_late_it_is_asked() -> None:
    schedule = Every(timedelta(seconds=7), NOON)
    asked = NOON + timedelta(days=400, microseconds=123_456)
    slot = next_slot(schedule, asked)
    assert slot is not None
    assert (slot - NOON) % timedelta(seconds=7) == timedelta(0)
    assert timedelta(0) < slot - asked <= timedelta(seconds=7)


def test_bounds_are_slots_themselves() -> None:
    end = NOON + timedelta(hours=2)
    hourly = CronSchedule("0 * * * *", start_at=NOON, end_at=end)
    assert slots(hourly, NOON - FIVE, END_OF_TIME) == [NOON, NOON + timedelta(hours=1), end]
    assert previous_slot(hourly, END_OF_TIME) == end
    assert previous_slot(hourly, NOON) is None
    every = Every(timedelta(hours=1), NOON, start_at=NOON, end_at=end)
    assert slots(every, NOON - FIVE, END_OF_TIME) == [NOON, NOON + timedelta(hours=1), end]
    assert previous_slot(every, END_OF_TIME) == end
    assert previous_slot(every, NOON) is None


def test_cron_slots_follow_the_zone() -> None:
    schedule = CronSchedule("0 9 * * *", "Asia/Shanghai")
    assert first_slot(schedule, NOON) == datetime(2026, 3, 2, 1, tzinfo=UTC)
    assert first_slot(CronSchedule("0 9 * * *", "+08:00"), NOON) == datetime(2026, 3, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize("schedule", BOUNDED, ids=str)
def test_counting_and_the_newest_slots_agree_with_enumeration(schedule: Schedule) -> None:
    spans = [(0, 240), (3, 3), (5, 10), (-60, 30), (61, 200), (30, 0)]
    for low, high in spans:
        after, until = NOON + timedelta(minutes=low), NOON + timedelta(minutes=high)
        listed = slots(schedule, after, until)
        assert count_slots(schedule, after, until) == len(listed)
        for n in (0, 1, 3, 10_000):
            assert latest_slots(schedule, after, until, n) == listed[len(listed) - min(n, len(listed)) :]
        if listed:
            assert previous_slot(schedule, until + TICK) == listed[-1]


@pytest.mark.parametrize("schedule", BOUNDED, ids=str)
def test_the_ends_of_the_calendar_are_safe(schedule: Schedule) -> None:
    first = datetime.min.replace(tzinfo=UTC)
    assert next_slot(schedule, END_OF_TIME) is None
    assert previous_slot(schedule, first) is None
    assert next_slot(schedule, first) is not None
    assert latest_slots(schedule, END_OF_TIME - TICK, END_OF_TIME, 2) == []


def test_counting_a_long_outage_is_arithmetic() -> None:
    later = NOON + timedelta(days=3650)
    assert count_slots(Every(timedelta(milliseconds=100), NOON), NOON, later) == 3650 * 864_000
    assert count_slots(CronSchedule("* * * * * *", "Europe/London"), NOON, later) == 3650 * 86_400


@given(st.floats(0, 1, exclude_max=True), st.timedeltas(timedelta(0), timedelta(minutes=4)))
def test_jitter_delays_a_fire_by_less_than_itself(draw: float, jitter: timedelta) -> None:
    for schedule in (Every(FIVE, NOON, jitter=jitter), CronSchedule("* * * * *", jitter=jitter)):
        fire = fire_at(schedule, NOON, draw)
        assert NOON <= fire <= NOON + jitter
        assert fire < NOON + jitter or not jitter
    assert fire_at(Once(NOON), NOON, draw) == NOON


def test_jitter_does_not_move_the_grid() -> None:
    schedule = Every(FIVE, NOON, jitter=timedelta(minutes=1))
    fire = fire_at(schedule, NOON + FIVE, 0.5)
    assert fire == NOON + FIVE + timedelta(seconds=30)
    assert next_slot(schedule, fire) == NOON + 2 * FIVE


@pytest.mark.parametrize("schedule", BOUNDED, ids=str)
def test_a_schedule_survives_json_and_is_a_value(schedule: Schedule) -> None:
    text = msgspec.json.encode(schedule)
    back = msgspec.json.decode(text, type=Schedule)
    assert back == schedule
    assert hash(back) == hash(schedule)
    assert msgspec.json.encode(back) == text
    validate(back)


def test_the_kind_tells_schedules_apart() -> None:
    kinds = [
        msgspec.to_builtins(schedule)["kind"] for schedule in (Once(NOON), Every(FIVE, NOON), CronSchedule("@daily"))
    ]
    assert kinds == ["once", "every", "cron"]


@pytest.mark.parametrize(
    ("schedule", "fields"),
    [
        (Once(NOON.replace(tzinfo=None)), ["schedule.run_at"]),
        (Every(MIN_EVERY - TICK, NOON), ["schedule.every"]),
        (Every(-FIVE, NOON), ["schedule.every"]),
        (Every(FIVE, NOON, jitter=FIVE), ["schedule.jitter"]),
        (Every(FIVE, NOON, jitter=-TICK), ["schedule.jitter"]),
        (Every(FIVE, NOON, start_at=NOON, end_at=NOON), ["schedule.end_at"]),
        (Every(FIVE, NOON, start_at=NOON.replace(tzinfo=None), end_at=NOON), ["schedule.start_at"]),
        (CronSchedule("61 * * * *"), ["schedule.expr"]),
        (CronSchedule("@daily", "Mars/Olympus"), ["schedule.timezone"]),
        (CronSchedule("@daily", jitter=-TICK), ["schedule.jitter"]),
        (
            CronSchedule("0 0 30 2 *", "Mars", NOON, NOON),
            ["schedule.expr", "schedule.timezone", "schedule.end_at"],
        ),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused_with_every_field_at_fault(schedule: Schedule, fields: list[str]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        validate(schedule)
    assert [problem.field for problem in caught.value.problems] == fields
