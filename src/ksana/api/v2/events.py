"""Live events: a stream of what changes on this server, for pages that are open just now."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import msgspec

from ksana.api.kit import Call, Route, Scope, encode, timestamp
from ksana.api.kit.conversion import one_of
from ksana.api.kit.errors import Forbidden
from ksana.api.kit.keys import require_scope
from ksana.api.kit.streams import EVENT_STREAM, Stream
from ksana.api.v2.operations import show_operation
from ksana.domain.errors import InvalidArgument
from ksana.domain.items import shown_queue
from ksana.domain.jobs import Job
from ksana.domain.queries import Counts, QueueCounts
from ksana.domain.schedules import next_slot
from ksana.domain.states import State
from ksana.engine.engine import Engine
from ksana.engine.feed import News, RunNews, Topic

_FLUSH: Final = timedelta(milliseconds=250)
_KEEP_ALIVE: Final = timedelta(seconds=15)
# A key may be revoked meanwhile: whoever listens shows it again now and then.
_LONGEST: Final = timedelta(minutes=15)
_STILL_THERE: Final = b": keep-alive\n\n"
_QUEUED: Final = (State.WAITING, State.SCHEDULED, State.RETRYING)
_LONGEST_NUMBER: Final = 18

_SCOPES: Final = {
    Topic.RUN: Scope.RUN_READ,
    Topic.STATS: Scope.RUN_READ,
    Topic.JOB: Scope.JOB_READ,
    Topic.QUEUE: Scope.QUEUE_READ,
    Topic.OPERATION: Scope.RUN_READ,
}


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which topics, separated by commas: run, job, queue, stats, operation; all that the key may read unless said
    otherwise. `last_event_id` is for callers that cannot set the header Last-Event-ID."""

    topics: str = ""
    last_event_id: Annotated[str, msgspec.Meta(max_length=64)] | None = None


async def events(call: Call[None, EventsQuery]) -> Stream:
    """Changes as they happen, as server-sent events: the newest word on each run, job, queue or operation."""
    engine = call.services.engine
    headers = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
    return Stream(_pieces(engine, _topics(call), _after(call)), EVENT_STREAM, headers)


def _topics(call: Call[None, EventsQuery]) -> set[Topic]:
    asked = [word.strip() for word in call.query.topics.split(",") if word.strip()]
    known = {topic.value for topic in Topic}
    for word in asked:
        if word not in known:
            raise InvalidArgument.of("topics", one_of(word, known))
    if not asked:
        return {topic for topic in Topic if call.principal.may(_SCOPES[topic])}
    topics = {Topic(word) for word in asked}
    for topic in sorted(topics):
        require_scope(call.principal, _SCOPES[topic])
    return topics


def _after(call: Call[None, EventsQuery]) -> int | None:
    """The last event the caller has seen; a number we never gave is one of long ago."""
    text = call.header("last-event-id") or call.query.last_event_id
    if not text:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else -1


async def _pieces(engine: Engine, topics: set[Topic], after: int | None) -> AsyncGenerator[bytes, None]:
    listener = engine.feed.listen(topics, after)
    engine.lookout.watch(listener)
    until = engine.clock.now() + _LONGEST
    try:
        # The number lets a caller who is cut off before the first event come back to this place.
        yield b"retry: 2000\n\n" if after is not None else b"retry: 2000\nid: %d\n\n" % engine.feed.last
        while not listener.is_closed and (now := engine.clock.now()) < until:
            await listener.wait(min(_KEEP_ALIVE, until - now))
            is_lost, news = listener.taken()
            if is_lost:
                yield b"id: %d\nevent: resync\ndata: {}\n\n" % engine.feed.last
            pieces = [_event(one) for one in news]
            if pieces:
                yield b"".join(pieces)
            elif not is_lost and not listener.is_closed:
                yield _STILL_THERE
            await listener.pause(_FLUSH)
    finally:
        engine.feed.leave(listener)


def _event(news: News) -> bytes:
    id, version, patch = _shown(news)
    data = {"topic": news.topic.value, "id": id, "version": version, "patch": patch}
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (news.number, news.topic.value.encode(), encode(data))


def _shown(news: News) -> tuple[int | str | None, int | None, Any]:
    match news.subject:
        case RunNews(run, job_name):
            patch = {
                "state": run.state,
                "reason": run.reason,
                "job_id": run.job_id,
                "job_name": job_name,
                "kind": run.kind,
                "queue": run.queue,
                "parent_id": run.parent_id,
                "step": run.step,
                "attempt": run.attempt,
                "due_at": timestamp(run.due_at),
                "started_at": timestamp(run.started_at),
                "ended_at": timestamp(run.ended_at),
                "error": run.error,
            }
            return run.id, run.epoch, patch
        case Job() as job:
            return job.id, job.version, _job(job, news.at)
        case Counts() as counts:
            return None, None, _stats(counts)
        case QueueCounts() as queue:
            return shown_queue(queue.queue), None, _queue(queue, news.at)
        case operation:
            return operation.id, operation.done + operation.failed, show_operation(operation)


def _job(job: Job, at: datetime) -> dict[str, Any]:
    next_fire_at = job.next_fire_at
    if next_fire_at is not None and next_fire_at <= at and job.schedule is not None:
        # It has just fired, and this is the job that did: its cursor stands on the next slot by now.
        next_fire_at = next_slot(job.schedule, at)
    return {
        "name": job.name,
        "enabled": job.enabled,
        "paused_at": timestamp(job.paused_at),
        "paused_until": timestamp(job.resumes_at),
        "pause_reason": job.pause_reason,
        "next_fire_at": timestamp(next_fire_at),
        "kind": job.target.kind,
        "tags": job.tags,
        "updated_at": timestamp(job.updated_at),
        "deleted": job.deleted_at is not None,
    }


def _stats(counts: Counts) -> dict[str, int]:
    return {
        "running": counts.unfinished.get(State.RUNNING, 0),
        "queued": sum(counts.unfinished.get(state, 0) for state in _QUEUED),
        "due": counts.due,
        "dead_letters": counts.dead_letters,
    }


def _queue(counts: QueueCounts, at: datetime) -> dict[str, Any]:
    oldest = counts.oldest_due_at
    return {
        "queued": counts.queued,
        "due": counts.due,
        "lag_seconds": 0.0 if oldest is None else max(0.0, (at - oldest).total_seconds()),
        "held": counts.running,
        "dead_letters": counts.dead_letters,
    }


def routes() -> list[Route[Any, Any]]:
    return [
        Route(
            "GET",
            "/api/v2/events",
            events,
            Scope.RUN_READ,
            or_scopes=(Scope.JOB_READ, Scope.QUEUE_READ),
            query=EventsQuery,
            media_type=EVENT_STREAM,
            summary="Changes as they happen",
            errors=(Forbidden,),
        )
    ]
