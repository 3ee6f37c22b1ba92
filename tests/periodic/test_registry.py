"""What may be registered, and when it fires: the document's unit tests of schedules and next runs (B-69, B-70)."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from ksana.domain.errors import InvalidArgument
from ksana.periodic import (
    DuplicateSchedule,
    InvalidSchedule,
    JobPriority,
    Registry,
    Schedule,
    ScheduleRegistrationError,
)


def schedule(**fields: Any) -> Schedule:
    return Schedule(**{"id": "cleanup", "cron": "0 * * * *", "job": "cleanup_old_data", **fields})


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def next_run(cron: str, after: str, timezone: str = "UTC") -> datetime:
    return Registry().next_run(schedule(cron=cron, timezone=timezone), at(after))


def test_a_schedule_has_the_fields_of_the_document() -> None:
    """B-11, B-17: and what is left out has its default."""
    full = Schedule(
        id="cleanup_hourly",
        cron="0 * * * *",
        job="cleanup_old_data",
        payload=b'{"max_age_days": 30}',
        priority=JobPriority.HIGH,
        timezone="America/New_York",
        enabled=False,
        description="Clean up data older than 30 days",
    )
    Registry().register(full)
    assert (full.id, full.cron, full.job, full.payload) == (
        "cleanup_hourly",
        "0 * * * *",
        "cleanup_old_data",
        b'{"max_age_days": 30}',
    )
    assert (full.priority, full.timezone, full.enabled) == ("high", "America/New_York", False)
    assert full.description == "Clean up data older than 30 days"
    least = schedule()
    assert (least.payload, least.priority, least.timezone, least.enabled) == (b"", JobPriority.NORMAL, "UTC", True)


@pytest.mark.parametrize(
    "fields",
    [
        {"id": "a_b-1"},
        {"cron": "@daily"},
        {"cron": "30 2 * * 1-5"},
        {"timezone": "America/New_York"},
        {"timezone": ""},
        {"priority": "low"},
        {"payload": b"[1, null]"},
    ],
    ids=str,
)
def test_what_is_valid_is_registered(fields: dict[str, Any]) -> None:
    """B-13, B-14, B-16, B-17, B-69."""
    registry = Registry()
    registry.register(schedule(**fields))
    assert registry.list() == [schedule(**fields)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("id", value) for value in ("", "a b", "a.b", "a@b", "ä", "a\n", "a" * 129)],
        *[("cron", value) for value in ("", "* * * *", "60 * * * *", "not a cron", "0 0 31 2 *", "@fortnightly")],
        ("cron", "0 0 * * * *"),
        ("job", ""),
        *[("timezone", value) for value in ("Invalid/Zone", "../etc/passwd", "+08:00", "Local", 8)],
        *[("priority", value) for value in ("urgent", 1)],
        *[("payload", value) for value in (b"not json", '{"a": 1}', {"a": 1})],
        ("enabled", "yes"),
    ],
)
def test_what_is_not_valid_is_refused_by_name(field: str, value: object) -> None:
    """B-13, B-14, B-15, B-16, B-17, B-20, B-51, B-68, B-69: nothing of it is kept."""
    registry = Registry()
    with pytest.raises(InvalidSchedule, match=rf"^invalid schedule: {field}: ") as refusal:
        registry.register(schedule(**{field: value}))
    assert [problem.field for problem in refusal.value.problems] == [field]
    assert registry.list() == []


def test_every_field_at_fault_is_named_at_once() -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        Registry().register(Schedule(cron="", job="", timezone="Nowhere"))
    assert [problem.field for problem in refusal.value.problems] == ["id", "cron", "job", "timezone"]


def test_a_new_registry_is_empty_and_gives_lists_away() -> None:
    """B-2, B-23, B-24, B-26."""
    registry = Registry()
    assert registry.list() == []
    assert registry.get("cleanup") is None
    registry.register(schedule())
    assert registry.get("cleanup") == schedule()
    registry.list().clear()
    assert registry.list() == [schedule()]


def test_an_id_is_taken_once_and_the_first_stays() -> None:
    """B-13, B-20, B-21."""
    registry = Registry()
    registry.register(schedule())
    with pytest.raises(DuplicateSchedule) as refusal:
        registry.register(schedule(job="something_else"))
    assert str(refusal.value) == "schedule with ID cleanup already exists"
    assert registry.list() == [schedule()]


def test_an_id_may_be_given_beside_the_schedule() -> None:
    registry = Registry()
    nameless = Schedule(cron="0 * * * *", job="cleanup_old_data")
    registry.register("cleanup", nameless)
    registry.must_register("other", msgspec.structs.replace(nameless, id="other"))
    assert [each.id for each in registry.list()] == ["cleanup", "other"]
    with pytest.raises(InvalidSchedule, match='"one" was given for a schedule with the id "two"'):
        registry.register("one", schedule(id="two"))
    with pytest.raises(TypeError):
        registry.register("one")  # type: ignore[call-overload]


def test_what_must_be_registered_stops_the_program(caplog: pytest.LogCaptureFixture) -> None:
    """B-22, B-59: loudly, and nothing is logged, because whoever starts the program sees the error."""
    caplog.set_level(logging.DEBUG)
    registry = Registry()
    with pytest.raises(ScheduleRegistrationError, match=r"^failed to register schedule: invalid schedule: cron: "):
        registry.must_register(schedule(cron="61 * * * *"))
    assert registry.list() == []
    registry.must_register(schedule())
    with pytest.raises(RuntimeError, match=r"^failed to register schedule: schedule with ID cleanup already exists$"):
        registry.must_register(schedule())
    assert caplog.records == []


def test_many_threads_may_register_at_once() -> None:
    """B-27: of fifty that want the same ten ids, ten succeed."""
    registry = Registry()

    def register(number: int) -> bool:
        try:
            registry.register(schedule(id=f"s{number % 10}", job=str(number)))
        except DuplicateSchedule:
            return False
        finally:
            registry.list()
        return True

    with ThreadPoolExecutor(50) as pool:
        assert sum(pool.map(register, range(50))) == 10
    assert {each.id for each in registry.list()} == {f"s{number}" for number in range(10)}


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("0 * * * *", "2025-11-10T15:00:00", "2025-11-10T16:00:00"),
        ("0 * * * *", "2025-11-10T14:59:59.999999", "2025-11-10T15:00:00"),
        ("*/15 * * * *", "2025-11-10T15:01:00", "2025-11-10T15:15:00"),
        ("0 9 * * 1", "2025-11-10T09:00:00", "2025-11-17T09:00:00"),
        ("0 0 1 * *", "2025-11-10T15:00:00", "2025-12-01T00:00:00"),
        ("0 0 * * 0", "2025-11-10T15:00:00", "2025-11-16T00:00:00"),
        ("30 2 * * 1-5", "2025-11-14T02:30:00", "2025-11-17T02:30:00"),
        ("1-10/2 * * * *", "2025-11-10T15:05:00", "2025-11-10T15:07:00"),
        ("20/15 * * * *", "2025-11-10T15:21:00", "2025-11-10T15:35:00"),
        ("0 0 */10 * *", "2025-11-12T00:00:00", "2025-11-21T00:00:00"),
        ("5,50 8,20 * JAN MON", "2025-11-10T15:00:00", "2026-01-05T08:05:00"),
        ("0 0 13 * 5", "2025-11-10T15:00:00", "2025-11-13T00:00:00"),
        ("0 0 ? * 5", "2025-11-10T15:00:00", "2025-11-14T00:00:00"),
        ("0 0 31 * *", "2025-01-31T00:00:00", "2025-03-31T00:00:00"),
        ("0 0 29 2 *", "2025-01-31T00:00:00", "2028-02-29T00:00:00"),
        ("59 23 31 12 *", "2025-12-31T23:59:00", "2026-12-31T23:59:00"),
    ],
)
def test_the_next_run_is_the_first_match_strictly_after(cron: str, after: str, expected: str) -> None:
    """B-1, B-25, B-52, B-54, B-56, B-70."""
    assert next_run(cron, after) == at(expected)


@pytest.mark.parametrize(
    ("alias", "expansion"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
    ],
)
def test_an_alias_means_its_expansion(alias: str, expansion: str) -> None:
    """B-53."""
    Registry().register(schedule(cron=alias))
    for after in ("2025-11-10T15:04:05", "2025-12-31T23:59:59"):
        assert next_run(alias, after) == next_run(expansion, after)


@pytest.mark.parametrize(
    ("lowest", "highest", "beyond"),
    [
        ("0 * * * *", "59 * * * *", "60 * * * *"),
        ("0 0 * * *", "0 23 * * *", "0 24 * * *"),
        ("0 0 1 * *", "0 0 31 * *", "0 0 32 * *"),
        ("0 0 1 1 *", "0 0 1 12 *", "0 0 1 13 *"),
        ("0 0 * * 0", "0 0 * * 6", "0 0 * * 8"),
    ],
)
def test_every_field_has_its_bounds(lowest: str, highest: str, beyond: str) -> None:
    """B-51: five fields; Sunday is 0."""
    Registry().register(schedule(cron=lowest))
    Registry().register(schedule(cron=highest))
    with pytest.raises(InvalidSchedule):
        Registry().register(schedule(cron=beyond))


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("0 9 * * 1", "2025-11-10T12:00:00", "2025-11-10T14:00:00"),
        # Two o'clock is skipped on 9 March 2025, so three o'clock has to do; and comes twice on 2 November.
        ("0 2 * * *", "2025-03-08T12:00:00", "2025-03-09T07:00:00"),
        ("0 2 * * *", "2025-03-09T12:00:00", "2025-03-10T06:00:00"),
        ("30 1 * * *", "2025-11-01T12:00:00", "2025-11-02T05:30:00"),
        ("30 1 * * *", "2025-11-02T05:30:00", "2025-11-03T06:30:00"),
        ("0 * * * *", "2025-11-02T05:00:00", "2025-11-02T06:00:00"),
    ],
)
def test_a_zone_is_followed_through_daylight_saving(cron: str, after: str, expected: str) -> None:
    """B-5, B-55, B-70: by local wall time."""
    assert next_run(cron, after, "America/New_York") == at(expected)


def test_what_cannot_be_calculated_says_why() -> None:
    """B-16, B-25, B-60, B-68."""
    with pytest.raises(InvalidArgument, match=r'^invalid timezone Invalid/Zone: unknown zone "Invalid/Zone"'):
        next_run("0 * * * *", "2025-11-10T15:00:00", "Invalid/Zone")
    with pytest.raises(InvalidArgument, match="cron"):
        next_run("nonsense", "2025-11-10T15:00:00")
    with pytest.raises(InvalidArgument, match="does not fire again"):
        next_run("0 0 1 1 *", "9999-06-01T00:00:00")
    with pytest.raises(InvalidArgument, match="aware"):
        Registry().next_run(schedule(), datetime(2025, 11, 10))  # noqa: DTZ001
