"""Where the time of a run went."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ksana.api.kit import Call, Route, Scope, Timestamp, timestamp
from ksana.domain.errors import NotFound
from ksana.domain.waterfall import Segment, SegmentKind, waterfall


class SegmentView(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a run's life. The `outcome` of an attempt is its verdict, `timeout`, or `running` while it is under
    way; there is none if the attempt left no word."""

    kind: SegmentKind
    attempt: int | None
    from_at: Timestamp = msgspec.field(name="from")
    to_at: Timestamp = msgspec.field(name="to")
    ms: float
    outcome: str | None
    code: int | None
    label: str


class WaterfallView(msgspec.Struct, frozen=True, kw_only=True):
    """The stretches of a run's life one after the other, and how long it took in all."""

    total_ms: float
    segments: list[SegmentView]


async def get(call: Call[None, None]) -> WaterfallView:
    """Where the time of a run went: waiting, attempts, rests, callback. What is not over counts up to now."""
    engine = call.services.engine
    run = await engine.runs.get(call.number("id"))
    segments = waterfall(run, await engine.store.attempts(run.id), engine.clock.now())
    total = millis(segments[0].from_at, segments[-1].to_at) if segments else 0.0
    return WaterfallView(total_ms=total, segments=[_show(segment) for segment in segments])


def _show(segment: Segment) -> SegmentView:
    return SegmentView(
        kind=segment.kind,
        attempt=segment.attempt,
        from_at=timestamp(segment.from_at),
        to_at=timestamp(segment.to_at),
        ms=millis(segment.from_at, segment.to_at),
        outcome=segment.outcome,
        code=segment.code,
        label=segment.label,
    )


def millis(since: datetime, until: datetime) -> float:
    """A span in milliseconds, to the microsecond."""
    return round((until - since).total_seconds() * 1000, 3)


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "GET",
            "/api/v2/runs/{id:int}/waterfall",
            get,
            Scope.RUN_READ,
            response=WaterfallView,
            summary="Where the time of a run went",
            errors=(NotFound,),
            name="waterfall",
        )
    ]
