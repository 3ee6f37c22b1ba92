"""The histogram over a list of runs: the same filters, counted by state."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ksana.api.v2 import histogram
from tests.api.v2.world import World

PATH = "/api/v2/runs/histogram"


def _sums(seen: Any) -> list[tuple[str, dict[str, int]]]:
    return [(bar["at"][11:19], bar["by_state"]) for bar in seen["bars"]]


async def _stock(world: World) -> Any:
    good = await world.job("good", tags=["t"])
    bad = await world.job("bad", "fail", retry={"max_attempts": 1})
    for _ in range(2):
        await world.run(good)
        await world.run(bad)
        await world.work()
        await world.advance("30m")
    return good


async def test_runs_are_counted_where_they_ended(world: World) -> None:
    await _stock(world)
    seen = await world.seen(f"{PATH}?since=2030-01-01T12:00:00Z&until=2030-01-01T13:00:00Z&buckets=4")
    assert (seen["step_seconds"], seen["truncated"], seen["by_minute"]) == (900.0, False, False)
    assert _sums(seen) == [
        ("12:00:00", {"SUCCESS": 1, "FAILED": 1}),
        ("12:30:00", {"SUCCESS": 1, "FAILED": 1}),
    ]


@pytest.mark.parametrize(
    ("filters", "total"), [("state=FAILED", 2), ("name=good", 2), ("tag=t&state=FAILED", 0), ("job_id=1", 2), ("", 4)]
)
async def test_the_filters_are_those_of_the_list(world: World, filters: str, total: int) -> None:
    await _stock(world)
    seen = await world.seen(f"{PATH}?{filters}")
    assert sum(count for bar in seen["bars"] for count in bar["by_state"].values()) == total
    assert (await world.seen(f"/api/v2/runs?{filters}"))["total"] == total
    # The last day, and a moment for what comes due just now.
    assert (seen["since"], seen["until"]) == ("2029-12-31T13:01:00.000Z", "2030-01-01T13:01:00.000Z")


@pytest.mark.parametrize("hours", [1, 24])
async def test_of_very_many_the_sums_are_taken(world: World, monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    monkeypatch.setattr(histogram, "_MOST_READ", 3)
    await _stock(world)
    since = (world.clock.time - timedelta(hours=hours)).isoformat().replace("+00:00", "Z")
    seen = await world.seen(f"{PATH}?since={since}&buckets=60&state=SUCCESS&state=FAILED")
    assert (seen["by_minute"], seen["truncated"]) == (True, False)
    assert sum(count for bar in seen["bars"] for count in bar["by_state"].values()) == 4
    assert seen["step_seconds"] == (120.0 if hours == 1 else 1800.0)


async def test_where_no_sums_are_it_says_from_when_on_it_is_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histogram, "_MOST_READ", 1)
    await _stock(world)
    seen = await world.seen(f"{PATH}?job_id=1")
    assert (seen["by_minute"], seen["truncated"]) == (False, True)
    assert seen["complete_since"] == "2030-01-01T12:30:00.000Z"
    assert [by_state for _, by_state in _sums(seen)] == [{"SUCCESS": 1}]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("since=2030-01-02T00:00:00Z&until=2030-01-01T00:00:00Z", "until"),
        ("since=2020-01-01T00:00:00Z", "since"),
        ("until=0001-01-01T00:00:00Z", "until"),
        ("buckets=0", "buckets"),
        ("stat=FAILED", "stat"),
    ],
)
async def test_what_makes_no_sense_is_refused(world: World, query: str, field: str) -> None:
    answer = await world.get(f"{PATH}?{query}")
    assert (answer.status, answer.json()["problems"][0]["field"]) == (400, field)
