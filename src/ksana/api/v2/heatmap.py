"""The heat map: how many runs ended in each hour of the last days, how many of them badly, and how late they began."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta, tzinfo
from typing import Annotated, Any

import msgspec

from ksana.api.kit import Call, Route, Scope
from ksana.api.quarters import Ended
from ksana.api.services import Services
from ksana.domain.states import FAILURES
from ksana.domain.times import zone


class HeatmapQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many days, today included, on the clocks of which zone."""

    days: Annotated[int, msgspec.Meta(ge=1, le=31)] = 7
    timezone: str = "UTC"


class CellView(msgspec.Struct, frozen=True):
    """One hour of one day; hours in which nothing ended are left out."""

    day: str
    hour: int
    total: int
    bad: int
    late_ms_avg: float


class HeatmapView(msgspec.Struct, frozen=True):
    timezone: str
    cells: list[CellView]


async def heatmap(call: Call[None, HeatmapQuery]) -> HeatmapView:
    """How busy each hour of the last days was."""
    services: Services = call.services
    days, there = call.query.days, zone(call.query.timezone)
    now = services.engine.clock.now()
    since = _midnight(now, there, days - 1)
    sums = await services.quarters.since(services.engine.store, since, now)
    cells: dict[tuple[str, int], list[Ended]] = defaultdict(list)
    for at, ended in sums.items():
        local = at.astimezone(there)
        cells[local.date().isoformat(), local.hour] += ended
    return HeatmapView(call.query.timezone, [_cell(*key, cells[key]) for key in sorted(cells)])


def _cell(day: str, hour: int, ended: list[Ended]) -> CellView:
    total = sum(one.runs for one in ended)
    bad = sum(one.runs for one in ended if one.state in FAILURES)
    return CellView(day, hour, total, bad, round(sum(one.late_ms for one in ended) / total, 1))


def _midnight(now: datetime, there: tzinfo, days_ago: int) -> datetime:
    """Where the first day begins on the clocks of the zone."""
    day = (now.astimezone(there) - timedelta(days=days_ago)).replace(hour=0, minute=0, second=0, microsecond=0)
    return day.astimezone(now.tzinfo)


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "GET",
            "/api/v2/heatmap",
            heatmap,
            Scope.RUN_READ,
            query=HeatmapQuery,
            response=HeatmapView,
            summary="How busy each hour was",
        )
    ]
