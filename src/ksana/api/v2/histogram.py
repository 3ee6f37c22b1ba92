"""The histogram over a list of runs: how many there are in each stretch of time, by state, under the list's filters."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import msgspec

from ksana.api.kit import Call, Route, Scope, Timestamp, timestamp
from ksana.api.quarters import QUARTER, quarter_of
from ksana.api.services import Services
from ksana.api.v2.runs import RunsQuery, run_query
from ksana.domain.errors import InvalidArgument
from ksana.domain.queries import RunQuery
from ksana.domain.states import FINAL, State
from ksana.domain.times import UTC_MIN

_DEFAULT: Final = timedelta(days=1)
_AHEAD: Final = timedelta(minutes=1)
_LONGEST: Final = timedelta(days=366)
_LONGEST_BY_MINUTE: Final = timedelta(days=31)
_MOST_READ: Final = 2000
_MINUTE: Final = timedelta(minutes=1)
_MILLISECOND: Final = timedelta(milliseconds=1)
_ALL: Final = RunQuery()
# Sums by the minute know these filters and no others.
_KNOWN_BY_MINUTE: Final = frozenset({"states", "kind", "is_child", "since", "until"})


class HistogramQuery(RunsQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The filters of the list, over the last day unless `since` and `until` say otherwise; its paging has no meaning
    here."""

    buckets: Annotated[int, msgspec.Meta(ge=1, le=400)] = 60


class BarView(msgspec.Struct, frozen=True):
    """The stretch that begins at `at`."""

    at: Timestamp
    by_state: dict[State, int]


class HistogramView(msgspec.Struct, frozen=True, kw_only=True):
    """Bars that are not empty, oldest first. With `by_minute` they were added up from sums by the minute, which have
    only runs that ended, those inside chains included. `truncated` if there are more runs than were read: the bars are
    whole from `complete_since` on."""

    since: Timestamp
    until: Timestamp
    step_seconds: float
    bars: list[BarView]
    by_minute: bool
    truncated: bool
    complete_since: Timestamp


Counted = Iterable[tuple[datetime, State, int]]


async def histogram(call: Call[None, HistogramQuery]) -> HistogramView:
    """How the runs of a list are spread over time: where they ended, or are due."""
    services: Services = call.services
    store, query = services.engine.store, call.query
    wanted = _bounded(run_query(query, query.job_id), services.engine.clock.now())
    assert wanted.since is not None and wanted.until is not None
    since, until = wanted.since, wanted.until
    page = await store.find_runs(wanted)
    counted: Counted = [(run.ended_at or run.due_at, run.state, 1) for run in page.items[:_MOST_READ]]
    is_truncated, by_minute, complete_since = len(page.items) > _MOST_READ, False, since
    unit = _MILLISECOND
    if is_truncated and _is_known_by_minute(wanted):
        is_truncated, by_minute = False, True
        unit = QUARTER if until - since >= QUARTER * query.buckets else _MINUTE
        since = complete_since = quarter_of(since) if unit is QUARTER else since.replace(second=0, microsecond=0)
        counted = await _by_minute(services, wanted, since, unit)
    elif is_truncated:
        complete_since = min(at for at, _, _ in counted)
    step = unit * max(1, math.ceil((until - since) / query.buckets / unit))
    return HistogramView(
        since=timestamp(since),
        until=timestamp(until),
        step_seconds=step.total_seconds(),
        bars=_bars(counted, since, step),
        by_minute=by_minute,
        truncated=is_truncated,
        complete_since=timestamp(complete_since),
    )


def _bounded(wanted: RunQuery, now: datetime) -> RunQuery:
    until = wanted.until or now + _AHEAD
    since = wanted.since or max(until, UTC_MIN + _DEFAULT) - _DEFAULT
    if until <= since:
        raise InvalidArgument.of("until", "must be after since")
    if until - since > _LONGEST:
        raise InvalidArgument.of("since", f"at most {_LONGEST.days} days before until")
    # One more than is shown tells whether there are more.
    paging = {"before_id": None, "sort": _ALL.sort, "descending": True, "offset": 0, "limit": _MOST_READ + 1}
    return msgspec.structs.replace(wanted, since=since, until=until, counted=False, **paging)


def _is_known_by_minute(wanted: RunQuery) -> bool:
    assert wanted.since is not None and wanted.until is not None
    paging = {"before_id", "sort", "descending", "offset", "limit", "counted"}
    others = [name for name in RunQuery.__struct_fields__ if name not in _KNOWN_BY_MINUTE | paging]
    is_plain = all(getattr(wanted, name) == getattr(_ALL, name) for name in others)
    has_ended = not wanted.states or wanted.states <= FINAL
    return is_plain and has_ended and wanted.until - wanted.since <= _LONGEST_BY_MINUTE


async def _by_minute(services: Services, wanted: RunQuery, since: datetime, unit: timedelta) -> Counted:
    """The same from sums; those of quarters of an hour are at hand, where a bar is at least as long."""
    store, now, until = services.engine.store, services.engine.clock.now(), wanted.until
    assert until is not None
    if unit is QUARTER:
        quarters = await services.quarters.since(store, since, now)
        found = [(at, one.kind, one.state, one.runs) for at, ended in quarters.items() for one in ended]
    else:
        found = [(one.minute_at, one.kind, one.state, one.count) for one in await store.minutes(since, until)]
    return [
        (at, state, count)
        for at, kind, state, count in found
        if at < until and (not wanted.states or state in wanted.states) and wanted.kind in (None, kind)
    ]


def _bars(counted: Counted, since: datetime, step: timedelta) -> list[BarView]:
    sums: dict[int, Counter[State]] = defaultdict(Counter)
    for at, state, count in counted:
        sums[(at - since) // step][state] += count
    return [BarView(timestamp(since + place * step), dict(sums[place])) for place in sorted(sums)]


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "GET",
            "/api/v2/runs/histogram",
            histogram,
            Scope.RUN_READ,
            query=HistogramQuery,
            response=HistogramView,
            summary="How runs are spread over time",
        )
    ]
