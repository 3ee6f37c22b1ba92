"""Jobs: each call once, as data."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar, Unpack

import msgspec

from ksana.client.asking import (
    Instant,
    JobRef,
    JobWords,
    Span,
    id_of,
    key_header,
    later,
    moment,
    refuse_unknown,
    rules_of,
    schedule_of,
    target_of,
)
from ksana.client.calls import Call, Conversation, Pages, Repeat, json_body, nothing, numbered, query_of
from ksana.client.results import Fire, Job, Page, Run
from ksana.client.rooms import Listing, Room, Verb
from ksana.client.runs import read_run, wait
from ksana.client.wires import Wire

W = TypeVar("W", bound=Wire)

_PATH: Final = "/api/v2/jobs"
_read: Final = msgspec.json.Decoder(Job).decode
_read_page: Final = msgspec.json.Decoder(Page[Job]).decode
_read_fires: Final = msgspec.json.Decoder(list[Fire]).decode


def create(
    name: str,
    *,
    target: Mapping[str, Any] | None = None,
    http: str | None = None,
    json: Any = None,
    headers: Mapping[str, str] | None = None,
    idempotency_key: str | None = None,
    **words: Unpack[JobWords],
) -> Call[Job]:
    """Make a job. What it calls is a `target` (`{"kind": …, "config": {…}}`) or `http="POST https://…"` with `json` and
    `headers`; when is `every="5m"`, `cron="0 6 * * *"` with `tz`, or `at`. Without any it runs when triggered."""
    refuse_unknown(words, JobWords.__optional_keys__)
    fields = {
        "name": name,
        "target": target_of(target, http, json, headers),
        "schedule": schedule_of(words),
        **rules_of(words),
    }
    return Call(method="POST", path=_PATH, decode=_read, body=json_body(fields), headers=key_header(idempotency_key))


def get(job: JobRef) -> Call[Job]:
    """A job by its id."""
    return Call(method="GET", path=_one(job), decode=_read)


def each(
    *,
    name: str = "",
    kind: str | None = None,
    tag: str | None = None,
    enabled: bool | None = None,
    surface: str | None = None,
    sort: str | None = None,
    page_size: int = 100,
) -> Pages[Job]:
    """Jobs, page after page; `name` matches any part of theirs."""
    query = query_of(name=name, kind=kind, tag=tag, enabled=enabled, surface=surface, sort=sort)
    return numbered(_PATH, _items, query, page_size)


def change(
    job: JobRef,
    *,
    version: int | None = None,
    name: str | None = None,
    target: Mapping[str, Any] | None = None,
    http: str | None = None,
    json: Any = None,
    headers: Mapping[str, str] | None = None,
    unschedule: bool = False,
    **words: Unpack[JobWords],
) -> Call[Job]:
    """Change what is said and nothing else; `unschedule` takes the schedule away. With the `version` it was read in,
    Conflict if somebody changed it meanwhile."""
    refuse_unknown(words, JobWords.__optional_keys__)
    fields = {
        "name": name,
        "target": target_of(target, http, json, headers),
        "schedule": msgspec.Raw(b"null") if unschedule else schedule_of(words),
        **rules_of(words),
    }
    return Call(
        method="PATCH",
        path=_one(job),
        decode=_read,
        body=json_body(fields),
        headers=_if_match(version),
        repeat=_repeat(version),
    )


def pause(
    job: JobRef, *, until: Instant | timedelta | None = None, reason: str = "", version: int | None = None
) -> Call[Job]:
    """Plan no more slots and cancel what has not started; `until` an instant, or for so long, if it is to end by
    itself."""
    return _told(job, "pause", version, {"until": later(until), "reason": reason or None})


def resume(job: JobRef, *, version: int | None = None) -> Call[Job]:
    """Plan from the next slot on."""
    return _told(job, "resume", version)


def delete(job: JobRef, *, version: int | None = None) -> Call[None]:
    """Delete a job. What is under way may finish, and its runs stay."""
    return Call(
        method="DELETE",
        path=_one(job),
        decode=nothing,
        headers=_if_match(version),
        is_done_when_gone=True,
    )


def trigger(
    job: JobRef, *, input: Any = None, wait: Span | float | None = None, idempotency_key: str | None = None
) -> Conversation[Run]:
    """Run a job now; with `wait`, give the run once it is over, or StillRunning."""
    run: Run = yield Call(
        method="POST",
        path=f"{_one(job)}/runs",
        decode=read_run,
        body=json_body({"input": input}),
        headers=key_header(idempotency_key),
    )
    return run if wait is None else (yield from _wait(run, wait))


def fires(
    job: JobRef,
    *,
    since: Instant | timedelta | None = None,
    until: Instant | timedelta | None = None,
    limit: int = 100,
) -> Call[list[Fire]]:
    """What became of each planned instant, newest first: fired, skipped, missed or left out, and why."""
    query = query_of(since=moment(since, "since"), until=moment(until, "until"), limit=limit)
    return Call(method="GET", path=f"{_one(job)}/fires", decode=_read_fires, query=query)


_wait: Final = wait


class Jobs(Room[W]):
    """The jobs of a server."""

    create = Verb(create)
    get = Verb(get)
    list = Listing(each)
    change = Verb(change)
    pause = Verb(pause)
    resume = Verb(resume)
    delete = Verb(delete)
    trigger = Verb(trigger)
    fires = Verb(fires)


def _one(job: JobRef) -> str:
    return f"{_PATH}/{id_of(job)}"


def _told(job: JobRef, what: str, version: int | None, fields: Mapping[str, Any] | None = None) -> Call[Job]:
    return Call(
        method="POST",
        path=f"{_one(job)}/{what}",
        decode=_read,
        body=json_body(fields or {}),
        headers=_if_match(version),
        repeat=_repeat(version),
    )


def _if_match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}


def _repeat(version: int | None) -> Repeat:
    # The second time it would be the version that the first has made.
    return Repeat.ALWAYS if version is None else Repeat.IF_NOT_DONE


def _items(data: bytes) -> list[Job]:
    return _read_page(data).items
