"""The time line and the heat map: what ran, what will, and how busy each hour was."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksana.api.v2 import timeline
from ksana.api.v2.timeline_marks import MOST_MARKS, Window, past_marks, planned_marks
from ksana.domain.items import Enqueued, Item, new_item
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.queries import Minute
from ksana.domain.runs import Run
from ksana.domain.schedules import Every, count_slots
from ksana.domain.states import FAILURES, State
from tests.api.v2.world import World

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
EVERY = {"kind": "every", "every": "10m"}


def _lanes(seen: Any) -> dict[str, Any]:
    return {lane["label"]: lane for lane in seen["lanes"]}


async def test_a_lane_has_what_ran_and_what_will(world: World) -> None:
    job = await world.job("tick", schedule=EVERY)
    await world.advance("10m")
    await world.advance("10m")
    seen = await world.seen("/api/v2/timeline?since=2030-01-01T12:00:00Z&until=2030-01-01T12:50:00Z")
    assert (seen["now"], seen["more"]) == ("2030-01-01T12:20:00.000Z", 0)
    [lane] = seen["lanes"]
    assert (lane["key"], lane["label"], lane["job_id"]) == (str(job["id"]), "tick", job["id"])
    assert lane["complete_since"] == seen["since"] == "2030-01-01T12:00:00.000Z"
    marks = [(mark["from"][11:16], mark["state"], mark["count"], mark["planned"]) for mark in lane["marks"]]
    assert marks == [
        ("12:10", "SUCCESS", 1, False),
        ("12:20", "SUCCESS", 1, False),
        ("12:30", "SCHEDULED", 1, True),
        ("12:40", "SCHEDULED", 1, True),
    ]
    assert lane["marks"][0]["run_id"] is not None and lane["marks"][2]["run_id"] is None


async def test_trouble_comes_first_and_what_is_left_out_is_counted(world: World) -> None:
    bad = await world.job("zz bad", "fail", retry={"max_attempts": 1})
    for name in ("a", "b", "c"):
        await world.run(await world.job(name))
    await world.run(bad)
    await world.work()
    seen = await world.seen("/api/v2/timeline?limit=2")
    assert list(_lanes(seen)) == ["c", "zz bad"]
    assert seen["more"] == 2
    assert _lanes(seen)["zz bad"]["marks"][0]["state"] == "FAILED"
    assert list(_lanes(await world.seen("/api/v2/timeline?name=BAD"))) == ["zz bad"]


async def test_lanes_by_tag_and_by_kind(world: World) -> None:
    for name, tags in (("one", ["x", "y"]), ("two", ["x"]), ("three", [])):
        await world.run(await world.job(name, tags=tags, schedule={"kind": "every", "every": "5m"}))
    await world.work()
    by_tag = _lanes(await world.seen("/api/v2/timeline?group=tag"))
    assert {label: lane["marks"][0]["count"] for label, lane in by_tag.items()} == {"x": 2, "y": 1}
    assert by_tag["x"]["job_id"] is None
    kinds = _lanes(await world.seen("/api/v2/timeline?group=kind"))
    assert [mark["count"] for mark in kinds["noop"]["marks"]] == [3, 3, 3]
    assert [mark["planned"] for mark in kinds["noop"]["marks"]] == [False, True, True]


async def test_of_a_busy_lane_the_newest_runs_are_shown_and_older_failures(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "_PER_LANE", 5)
    job = await world.job("busy", "fail", retry={"max_attempts": 1})
    failed = await world.run(job)
    await world.advance("1s")
    await world.patch(f"/api/v2/jobs/{job['id']}", {"target": {"kind": "noop", "config": {}}})
    world.clock.move_to(world.clock.time + timedelta(minutes=10))
    await asyncio.gather(*(world.engine.runs.trigger(job["id"]) for _ in range(5)))
    await world.work()
    [lane] = (await world.seen("/api/v2/timeline"))["lanes"]
    assert lane["complete_since"] == "2030-01-01T12:10:01.000Z"
    assert [(mark["state"], mark["count"]) for mark in lane["marks"]] == [("FAILED", 1), ("SUCCESS", 5)]
    assert lane["marks"][0]["run_id"] == failed["id"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("since=2030-01-01T12:00:00Z&until=2030-01-01T12:00:00Z", "until"),
        ("since=2020-01-01T12:00:00Z", "since"),
        ("since=noon", "since"),
        ("until=0001-01-01T00:00:00Z", "until"),
        ("since=9999-12-31T23:59:59Z", "since"),
        ("group=queue", "group"),
        ("limit=51", "limit"),
    ],
)
async def test_a_stretch_that_makes_no_sense_is_refused(world: World, query: str, field: str) -> None:
    answer = await world.get(f"/api/v2/timeline?{query}")
    assert (answer.status, answer.json()["problems"][0]["field"]) == (400, field)


def _run(id: int, begun: int, took: int, state: State) -> Run:
    at = NOW + timedelta(seconds=begun)
    ended = at + timedelta(seconds=took) if state.is_final else None
    return Run(id=id, state=state, due_at=at, created_at=at, started_at=at, ended_at=ended)


runs = st.lists(
    st.builds(_run, st.integers(1, 10**6), st.integers(-4000, -1), st.integers(0, 100), st.sampled_from(State)),
    max_size=60,
)


@settings(max_examples=40)
@given(runs)
def test_marks_keep_every_run_and_the_worst_of_them_and_end_before_now(found: list[Run]) -> None:
    window = Window(NOW - timedelta(hours=1), NOW + timedelta(hours=1), NOW)
    marks = past_marks(found, window)
    assert sum(mark.count for mark in marks) == len(found)
    assert len(marks) <= MOST_MARKS
    assert all(window.since <= mark.from_at <= mark.to_at <= NOW for mark in marks)
    bad = {run.id for run in found if run.state in FAILURES}
    assert any(mark.state in FAILURES for mark in marks) is bool(bad)
    assert all(mark.run_id in bad for mark in marks if mark.state in FAILURES)


@settings(max_examples=40)
@given(st.lists(st.integers(1, 5000), max_size=5), st.integers(1, 100_000))
def test_planned_marks_count_every_slot_and_lie_ahead(every: list[int], span: int) -> None:
    window = Window(NOW - timedelta(hours=1), NOW + timedelta(seconds=span), NOW)
    jobs = [
        Job(
            id=number,
            surface="",
            name="j",
            target=TargetSpec("noop"),
            schedule=Every(timedelta(seconds=seconds), NOW),
            created_at=NOW,
            updated_at=NOW,
        )
        for number, seconds in enumerate(every)
    ]
    marks = planned_marks(jobs, window)
    just_before = window.until - timedelta(microseconds=1)
    wanted = sum(count_slots(job.schedule, NOW, just_before) for job in jobs if job.schedule)
    assert sum(mark.count for mark in marks) == wanted
    assert len(marks) <= 61
    assert all(NOW < mark.from_at < window.until for mark in marks)


async def test_the_heat_map_counts_by_the_hours_of_a_zone(world: World) -> None:
    job = await world.job("j")
    bad = await world.job("bad", "fail", retry={"max_attempts": 1})
    await world.run(job)
    await world.run(bad)
    await world.advance("3s")
    seen = await world.seen("/api/v2/heatmap?timezone=Asia/Kathmandu")
    assert seen["timezone"] == "Asia/Kathmandu"
    # 12:00 UTC is 17:45 there.
    assert seen["cells"] == [{"day": "2030-01-01", "hour": 17, "total": 2, "bad": 1, "late_ms_avg": 3000.0}]
    await world.advance("20m")
    await world.run(job)
    await world.work()
    cells = (await world.seen("/api/v2/heatmap?timezone=Asia/Kathmandu"))["cells"]
    assert [(cell["hour"], cell["total"]) for cell in cells] == [(17, 2), (18, 1)]


async def test_the_heat_map_remembers_what_is_over_and_asks_only_for_the_rest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[datetime] = []
    minutes = world.engine.store.minutes

    async def recorded(since: datetime, until: datetime) -> list[Minute]:
        asked.append(since)
        return await minutes(since, until)

    monkeypatch.setattr(world.engine.store, "minutes", recorded)
    job = await world.job("j")
    await world.run(job)
    await world.work()
    first = await world.seen("/api/v2/heatmap?days=3")
    await world.advance("26h")
    await world.run(job)
    await world.work()
    later = await world.seen("/api/v2/heatmap?days=3")
    assert later["cells"][0] == first["cells"][0]
    assert [(cell["day"], cell["hour"]) for cell in later["cells"]] == [("2030-01-01", 12), ("2030-01-02", 14)]
    # Midnight two days ago, then what was not over at the first look.
    assert asked == [NOW - timedelta(days=2, hours=12), NOW - timedelta(minutes=15)]
    # A day less shows less, and a week more than was asked for before shows it all the same.
    assert len((await world.seen("/api/v2/heatmap?days=1"))["cells"]) == 1
    assert (await world.seen("/api/v2/heatmap?days=10"))["cells"] == later["cells"]


async def test_a_zone_nobody_knows_is_refused(world: World) -> None:
    answer = await world.get("/api/v2/heatmap?timezone=Asia/Shangai")
    assert (answer.status, answer.json()["problems"][0]["field"]) == (400, "timezone")


async def test_a_busy_queue_hides_no_job(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "_LOOKED_AT", 5)
    await world.run(await world.job("quiet", tags=["seldom"]))
    await world.work()
    store = world.engine.store
    await store.enqueue(
        [
            Enqueued(new_item(id, "mail", Item(), world.clock.time, due_at=world.clock.time))
            for id in await store.reserve_ids("run", 20)
        ]
    )
    assert list(_lanes(await world.seen("/api/v2/timeline"))) == ["quiet"]
    assert list(_lanes(await world.seen("/api/v2/timeline?group=tag"))) == ["seldom"]
