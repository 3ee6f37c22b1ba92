"""Queues themselves: how they stand, what they may do, whether they are open."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import msgspec

from ksana.api.kit import Call, Input, Route, Scope, Timestamp, timestamp
from ksana.api.queue.audit_shapes import ReasonText, actor_of
from ksana.api.queue.item_shapes import Queue
from ksana.api.services import Services
from ksana.domain.errors import InvalidArgument, VersionConflict
from ksana.domain.items import shown_queue
from ksana.domain.limits import QueueSettings, Rate

_NAME = msgspec.json.Decoder(Queue)

Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class RateInput(Input, frozen=True):
    """At most `count` in so many seconds."""

    count: Limit
    per_sec: Annotated[float, msgspec.Meta(ge=0.001, le=86_400)] = 1


class LimitsInput(Input, frozen=True):
    """What a queue may do: `concurrency` items held at once and `rate` handed out, in all and for each `group_key`.
    What is left out stays as it is, null lifts a limit."""

    concurrency: Limit | msgspec.UnsetType | None = msgspec.UNSET
    rate: RateInput | msgspec.UnsetType | None = msgspec.UNSET
    key_concurrency: Limit | msgspec.UnsetType | None = msgspec.UNSET
    key_rate: RateInput | msgspec.UnsetType | None = msgspec.UNSET
    reason: ReasonText = ""
    version: Annotated[int, msgspec.Meta(ge=0)] | None = None


class PauseInput(Input, frozen=True):
    reason: ReasonText = ""


class RateView(msgspec.Struct, frozen=True):
    count: int
    per_sec: float


class QueueSettingsView(msgspec.Struct, frozen=True, kw_only=True):
    """What is set for a queue; nothing yet, at version 0."""

    queue: str
    version: int
    paused: bool
    reason: str
    concurrency: int | None
    rate: RateView | None
    key_concurrency: int | None
    key_rate: RateView | None
    updated_at: Timestamp | None


async def get_queue(call: Call[None, None]) -> QueueSettingsView:
    """What is set for a queue."""
    return show_settings(await _services(call).engine.governor.queue(_name(call)))


async def limit_queue(call: Call[LimitsInput, None]) -> QueueSettingsView:
    """Limit how much of a queue is worked on at once, and how fast it is handed out."""
    body = call.body
    said: dict[str, Any] = {}
    for name in ("concurrency", "key_concurrency"):
        if getattr(body, name) is not msgspec.UNSET:
            said[name] = getattr(body, name)
    for name in ("rate", "key_rate"):
        given = getattr(body, name)
        if given is not msgspec.UNSET:
            said[name] = None if given is None else Rate(given.count, timedelta(seconds=given.per_sec))
    return await _set(call, said, "queue.limit", body.reason, call.expected_version(body.version))


async def pause_queue(call: Call[PauseInput, None]) -> QueueSettingsView:
    """Hand out nothing more of a queue; what is held may be finished, and new items are taken."""
    return await _set(call, {"is_paused": True, "reason": call.body.reason}, "queue.pause", call.body.reason)


async def resume_queue(call: Call[PauseInput, None]) -> QueueSettingsView:
    """Hand out items of a queue again."""
    return await _set(call, {"is_paused": False, "reason": ""}, "queue.resume", call.body.reason)


async def _set(
    call: Call[Any, Any], said: dict[str, Any], action: str, reason: str, version: int | None = None
) -> QueueSettingsView:
    governor = _services(call).engine.governor
    return show_settings(await governor.set_queue(_name(call), said, actor_of(call, reason), action, version))


def show_settings(settings: QueueSettings) -> QueueSettingsView:
    return QueueSettingsView(
        queue=shown_queue(settings.queue),
        version=settings.version,
        paused=settings.is_paused,
        reason=settings.reason,
        concurrency=settings.concurrency,
        rate=_show_rate(settings.rate),
        key_concurrency=settings.key_concurrency,
        key_rate=_show_rate(settings.key_rate),
        updated_at=timestamp(settings.updated_at) if settings.version else None,
    )


def _show_rate(rate: Rate | None) -> RateView | None:
    return None if rate is None else RateView(rate.count, rate.per.total_seconds())


def _services(call: Call[Any, Any]) -> Services:
    services: Services = call.services
    return services


def _name(call: Call[Any, Any]) -> str:
    name = call.text("name")
    try:
        _NAME.decode(msgspec.json.encode(name))
    except msgspec.ValidationError:
        raise InvalidArgument.of("name", "is no name of a queue: up to 200 printable signs, as in emails") from None
    return name


def routes() -> list[Route[Any, Any]]:
    one = "/scheduler/queues/{name}"
    shown: dict[str, Any] = {"response": QueueSettingsView}
    pausing: dict[str, Any] = {"request": PauseInput, "optional_body": True, **shown}
    return [
        Route("GET", one, get_queue, Scope.QUEUE_READ, summary="What is set for a queue", **shown),
        Route(
            "PUT",
            one,
            limit_queue,
            Scope.QUEUE_WRITE,
            request=LimitsInput,
            versioned=True,
            summary="Limit a queue",
            errors=(VersionConflict,),
            **shown,
        ),
        Route("POST", f"{one}/pause", pause_queue, Scope.QUEUE_WRITE, summary="Pause a queue", **pausing),
        Route("POST", f"{one}/resume", resume_queue, Scope.QUEUE_WRITE, summary="Resume a queue", **pausing),
    ]
