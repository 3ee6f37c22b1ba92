"""Somebody with an editor: what is changed while the server is stopped counts when it starts."""

from datetime import timedelta
from typing import Any

import pytest

from ksana.domain.changes import JobChange
from ksana.domain.fires import Lateness
from ksana.domain.jobs import Job
from ksana.domain.policies import Misfire, MisfireRule, Overlap, OverlapRule
from ksana.domain.queries import JobQuery
from ksana.domain.schedules import Every, Once
from ksana.domain.standing import standing_of
from ksana.stores.json.store import JsonStore
from tests.stores.builders import HOUR, MINUTE, NOW, SECOND, a_job, get_job
from tests.stores.json.files import Place, a_timer, an_entry


async def opened(place: Place) -> JsonStore:
    store = place.store()
    await store.open()
    return store


async def jobs_in(place: Place) -> list[Job]:
    """The jobs that a start finds."""
    store = await opened(place)
    page = await store.find_jobs(JobQuery())
    await store.close()
    return page.items


async def stored(place: Place, *jobs: Job) -> None:
    store = await opened(place)
    await store.add_jobs(jobs)
    await store.close()


async def test_a_job_written_by_hand_gets_what_it_lacks_and_keeps_it(place: Place) -> None:
    """K-30: the first fire of an `every` without `next_run_at` is one interval from now."""
    place.write_jobs(an_entry(), an_entry(id="", name=""))
    [first, second] = await jobs_in(place)
    assert (first.ref, first.name, first.surface, first.version) == ("by-hand", "ping service", "jobs", 1)
    assert first.target.config == {
        "method": "GET",
        "url": "https://example.com/ping",
        "headers": {"X-Token": "abc"},
        "mode": "sync",
    }
    assert first.schedule == Every(every=5 * MINUTE, origin_at=NOW)
    assert first.next_fire_at == NOW + 5 * MINUTE
    assert (first.overlap, first.misfire) == (Overlap(OverlapRule.SKIP, 1), Misfire(MisfireRule.SKIP))
    assert (first.retry.max_attempts, first.timeouts.total) == (4, 10 * SECOND)
    assert len(second.ref) >= 22
    place.now = NOW + HOUR
    assert await jobs_in(place) == [first, second]


async def test_fields_that_are_left_out_have_their_documented_defaults(place: Place) -> None:
    """K-28, K-20, K-78"""
    entry = an_entry()
    for name in ("enabled", "type", "timeout", "max_retries", "retry_backoff", "next_run_at", "last_status"):
        del entry[name]
    place.write_jobs(entry)
    [job] = await jobs_in(place)
    assert job.enabled
    assert (job.timeouts.total, job.retry.max_attempts, job.retry.initial_delay) == (10 * SECOND, 4, 5 * SECOND)


@pytest.mark.parametrize("http", [{}, {"method": ""}, {"method": None}])
async def test_a_call_without_a_method_is_a_post_as_it_is_on_the_surface(place: Place, http: dict[str, Any]) -> None:
    """K-16, K-17: a file and a request that say the same make the same job."""
    place.write_jobs(an_entry(http={"url": "http://there/", **http}))
    [job] = await jobs_in(place)
    assert job.enabled
    assert job.target.config == {"method": "POST", "url": "http://there/", "headers": {}, "mode": "sync"}
    assert place.entry("by-hand")["http"]["method"] == "POST"


@pytest.mark.parametrize(("said", "kept"), [({}, "POST"), ({"method": "get"}, "GET"), ({"method": "PUT"}, "POST")])
async def test_an_invalid_job_keeps_its_method_for_whoever_puts_the_rest_right(
    place: Place, said: dict[str, Any], kept: str
) -> None:
    place.write_jobs(an_entry(http={"url": "nowhere", **said}))
    [job] = await jobs_in(place)
    assert (job.enabled, job.target.config["method"]) == (False, kept)


async def test_a_file_of_the_first_service_is_taken_over(place: Place) -> None:
    """K-32: a `once` that has run does not run again; an `every` goes on in its grid."""
    ran = {"schedule": {"kind": "once", "run_at": "2029-12-31T00:00:00Z"}, "last_run_at": "2029-12-31T00:00:00Z"}
    place.write_jobs(
        an_entry(id="ran", last_status="success", **ran),
        an_entry(id="waits", next_run_at="2030-01-01T12:03:20Z"),
    )
    [ran_job, waiting] = await jobs_in(place)
    assert ran_job.next_fire_at is None
    at = NOW + timedelta(minutes=3, seconds=20)
    assert (waiting.next_slot_at, waiting.next_fire_at) == (at, at)
    assert waiting.schedule == Every(every=5 * MINUTE, origin_at=at - 5 * MINUTE)


async def test_an_expired_once_is_left_to_the_planner(place: Place) -> None:
    """K-33"""
    place.write_jobs(an_entry(schedule={"kind": "once", "run_at": "2029-12-31T08:00:00+08:00"}))
    [job] = await jobs_in(place)
    assert job.schedule == Once(NOW - timedelta(days=1, hours=12))
    assert job.next_slot_at == job.schedule.run_at
    assert place.entry("by-hand")["schedule"]["run_at"] == "2029-12-31T00:00:00Z"


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({"name": "new"}, {"name": "new"}),
        ({"max_retries": 0}, {"max_attempts": 1}),
        ({"timeout": "1m30s"}, {"total": 90 * SECOND}),
        ({"retry_backoff": "250ms"}, {"initial_delay": SECOND / 4}),
        (
            {"http": {"method": "POST", "url": "http://new/", "headers": {}, "body": "x"}},
            {"config": {"method": "POST", "url": "http://new/", "headers": {}, "body": "x", "mode": "sync"}},
        ),
    ],
)
async def test_an_edited_field_counts_and_the_cursor_stays(
    place: Place, edit: dict[str, Any], expected: dict[str, Any]
) -> None:
    await stored(place, a_timer(1, description="kept", tags=("kept",)))
    place.edit("timer-1", **edit)
    place.now = NOW + MINUTE
    [job] = await jobs_in(place)
    said = {
        "name": job.name,
        "max_attempts": job.retry.max_attempts,
        "total": job.timeouts.total,
        "initial_delay": job.retry.initial_delay,
        "config": job.target.config,
    }
    assert said | expected == said
    assert (job.id, job.description, job.tags) == (1, "kept", ("kept",))
    assert job.next_fire_at == NOW + HOUR
    assert place.entry("timer-1") | edit == place.entry("timer-1")


async def test_an_edited_schedule_is_planned_from_now(place: Place) -> None:
    await stored(place, a_timer(1))
    place.edit("timer-1", schedule={"kind": "every", "every": "60s", "start_at": "", "jitter": ""})
    place.now = NOW + 2 * HOUR
    [job] = await jobs_in(place)
    assert job.schedule == Every(every=MINUTE, origin_at=place.now)
    assert (job.next_fire_at, job.version) == (place.now + MINUTE, 2)
    assert place.entry("timer-1")["schedule"]["every"] == "60s"


async def test_a_schedule_whose_keys_were_sorted_is_the_same(place: Place) -> None:
    await stored(place, a_timer(1))
    schedule = place.entry("timer-1")["schedule"]
    place.edit("timer-1", schedule={name: schedule[name] for name in sorted(schedule)})
    place.now = NOW + MINUTE
    assert await jobs_in(place) == [a_timer(1)]


async def test_an_edited_next_run_counts(place: Place) -> None:
    """K-39: one that lies in the past is a slot found too late, for the misfire rule to skip."""
    await stored(place, a_timer(1), a_timer(2))
    place.edit("timer-1", next_run_at="2030-01-01T11:00:00Z")
    place.edit("timer-2", next_run_at="")
    [first, second] = await jobs_in(place)
    assert (first.next_slot_at, first.next_fire_at) == (NOW - HOUR, NOW - HOUR)
    assert second.next_fire_at == NOW + 5 * MINUTE


async def test_switching_by_hand_is_switching(place: Place) -> None:
    """K-77"""
    off = {"enabled": False, "paused_at": NOW, "next_slot_at": None, "next_fire_at": None}
    await stored(place, a_timer(1), a_timer(2, **off))
    place.edit("timer-1", enabled=False)
    place.edit("timer-2", enabled=True)
    place.now = NOW + HOUR
    [first, second] = await jobs_in(place)
    assert (first.enabled, first.next_fire_at, first.paused_at) == (False, None, place.now)
    assert (second.enabled, second.next_fire_at, second.paused_at) == (True, place.now + 5 * MINUTE, None)


async def test_book_keeping_is_not_for_hands(place: Place) -> None:
    """K-23"""
    await stored(place, a_timer(1))
    place.edit("timer-1", last_run_at="2020-01-01T00:00:00Z", last_status="failed", last_error="no")
    assert await jobs_in(place) == [a_timer(1)]
    assert [place.entry("timer-1")[name] for name in ("last_run_at", "last_status", "last_error")] == ["", "", ""]


async def test_an_entry_that_was_removed_is_gone_and_its_number_is_not_given_again(place: Place) -> None:
    store = await opened(place)
    [number] = await store.reserve_ids("job", 1)
    await store.add_jobs([a_timer(number)])
    await store.close()
    document = place.read()
    document["jobs"] = [an_entry()]
    place.write(document)
    [job] = await jobs_in(place)
    assert job.ref == "by-hand"
    assert job.id > number


async def test_a_copied_entry_with_another_id_is_a_job_of_its_own(place: Place) -> None:
    await stored(place, a_timer(1))
    document = place.read()
    document["jobs"].append({**document["jobs"][0], "id": "copy"})
    place.write(document)
    [first, second] = await jobs_in(place)
    assert (first.ref, second.ref) == ("timer-1", "copy")
    assert first.id != second.id


async def test_a_mark_at_the_beginning_of_the_file_does_no_harm(place: Place) -> None:
    place.write_jobs(an_entry())
    place.file.write_bytes(b"\xef\xbb\xbf" + place.file.read_bytes())
    assert [job.ref for job in await jobs_in(place)] == ["by-hand"]


INVALID: list[tuple[Any, str]] = [
    (an_entry(schedule={"kind": "every", "every": "soon"}), "schedule.every"),
    (an_entry(schedule={"kind": "every", "every": "5m", "jitter": "5m"}), "schedule.jitter"),
    (an_entry(schedule={"kind": "weekly"}), "schedule.kind"),
    (an_entry(schedule={"kind": "once"}), "schedule.run_at"),
    (an_entry(schedule={"kind": "once", "run_at": "tomorrow"}), "schedule.run_at"),
    (an_entry(schedule={"kind": "cron", "expr": "61 * * * *"}), "schedule.expr"),
    (an_entry(http={"method": "GET"}), "http.url"),
    (an_entry(http={"url": "ftp://x"}), "http.url"),
    (an_entry(http={"url": "http://x", "method": "BREW"}), "http.method"),
    (an_entry(http={"url": "http://x", "headers": {"a": 1}}), "http.headers"),
    (an_entry(timeout=10), "timeout"),
    (an_entry(timeout="-1s"), "timeout"),
    (an_entry(max_retries=-1), "retry.max_attempts"),
    (an_entry(max_retries=True), "max_retries"),
    (an_entry(type="shell"), "type"),
    (an_entry(next_run_at="then"), "next_run_at"),
    (an_entry(name=["a"]), "name"),
    (an_entry(id="a/b"), "id"),
]


@pytest.mark.parametrize(("entry", "field"), INVALID)
async def test_an_invalid_job_among_good_ones_is_kept_disabled_with_the_reason(
    place: Place, entry: dict[str, Any], field: str
) -> None:
    """X-138"""
    place.write_jobs(an_entry(id="good"), entry)
    [good, bad] = await jobs_in(place)
    assert (good.ref, good.enabled) == ("good", True)
    assert (bad.ref, bad.enabled, bad.next_fire_at) == (entry["id"], False, None)
    kept = place.entry(bad.ref)
    assert field in kept["last_error"]
    assert {**kept, "enabled": True, "last_error": "", "last_status": ""} == {**entry, "core": kept["core"]}
    shown = standing_of(bad, None, True, NOW, Lateness())
    assert (shown.last_status, shown.last_error) == ("paused", kept["last_error"])


async def test_an_invalid_job_is_put_right_in_the_file_or_by_a_change(place: Place) -> None:
    place.write_jobs(an_entry(id="one", timeout=10), an_entry(id="two", timeout=10))
    [one, two] = await jobs_in(place)
    place.edit("one", timeout="10s", enabled=True)
    [again, still] = await jobs_in(place)
    assert (again.id, again.enabled, again.timeouts.total) == (one.id, True, 10 * SECOND)
    assert (again.next_fire_at, again.extras) == (NOW + 5 * MINUTE, {})
    assert not still.enabled
    store = await opened(place)
    right = a_timer(two.id, ref="two", version=still.version + 1)
    await store.change_jobs([JobChange(version=still.version, job=right, moves_cursor=True)])
    assert await get_job(store, two.id) == right
    assert place.entry("two")["last_error"] == ""
    await store.close()


async def test_what_is_no_job_at_all_does_not_keep_the_others_out(place: Place) -> None:
    place.write_jobs("nonsense", 7, None, an_entry())
    jobs = await jobs_in(place)
    assert [job.enabled for job in jobs] == [False, False, False, True]


async def test_an_id_that_is_there_twice_is_given_to_the_first(place: Place) -> None:
    place.write_jobs(an_entry(name="first"), an_entry(name="second"))
    [first, second] = await jobs_in(place)
    assert (first.ref, first.enabled) == ("by-hand", True)
    assert (second.name, second.enabled) == ("second", False)
    assert "twice" in place.entry(second.ref)["last_error"]


async def test_entries_of_other_lists_that_make_no_sense_are_set_aside_in_the_file(place: Place) -> None:
    await stored(place, a_job(1), a_job(2))
    document = place.read()
    document["other_jobs"][0]["version"] = "one"
    document["keys"] = [{"id": 1}]
    place.write(document)
    assert [job.id for job in await jobs_in(place)] == [2]
    for _ in range(2):
        assert [one["was_in"] for one in place.read()["unreadable"]] == ["keys", "other_jobs"]
        assert place.read()["unreadable"][1]["entry"]["version"] == "one"
        await jobs_in(place)


@pytest.mark.parametrize(("name", "value"), [("comment", "mine"), ("keys", {"id": 1}), ("runs", 7)])
async def test_what_nobody_knows_stays_in_the_file(place: Place, name: str, value: Any) -> None:
    await stored(place, a_timer(1))
    place.write({**place.read(), name: value})
    for _ in range(2):
        assert [job.id for job in await jobs_in(place)] == [1]
        [aside] = place.read()["unreadable"]
        assert (aside["was_in"], aside["entry"]) == (name, value)
