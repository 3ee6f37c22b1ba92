"""Runs: each call once, as data."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, TypeVar

import msgspec

from ksana.client.asking import Instant, JobRef, RunRef, Span, id_of, moment, seconds
from ksana.client.calls import Call, Conversation, Pages, Pause, Repeat, json_body, query_of
from ksana.client.errors import StillRunning
from ksana.client.results import Attempt, Page, Run
from ksana.client.rooms import Listing, Room, Verb
from ksana.client.steps import complete_step, retry_step, steps
from ksana.client.wires import Wire
from ksana.domain.states import State

W = TypeVar("W", bound=Wire)

_PATH: Final = "/api/v2/runs"
_FIRST_LOOK: Final = 0.05
_LONGEST_LOOK: Final = 2.0
_SLOWER: Final = 1.5

read_run: Final = msgspec.json.Decoder(Run).decode
_read_page: Final = msgspec.json.Decoder(Page[Run]).decode
_read_attempts: Final = msgspec.json.Decoder(list[Attempt]).decode


def get(run: RunRef) -> Call[Run]:
    """A run by its id, as it stands now."""
    return Call(method="GET", path=_one(run), decode=read_run)


def each(
    *,
    job: JobRef | None = None,
    state: State | str | Sequence[State | str] = (),
    name: str = "",
    kind: str | None = None,
    tag: str | None = None,
    surface: str | None = None,
    since: Instant | timedelta | None = None,
    until: Instant | timedelta | None = None,
    parent: RunRef | None = None,
    children: bool = False,
    page_size: int = 100,
) -> Pages[Run]:
    """Runs, newest first, page after page. `since` and `until` are instants, or how long ago (`"24h"`), and bound when
    it ended, or is due; `name` matches any part of its job's."""
    query = query_of(
        job_id=None if job is None else id_of(job),
        name=name,
        kind=kind,
        tag=tag,
        surface=surface,
        since=moment(since, "since"),
        until=moment(until, "until"),
        parent_id=None if parent is None else id_of(parent),
        children=children or None,
        page_size=page_size,
    )
    states = [state] if isinstance(state, str) else state
    query += tuple(("state", State(one.upper()).value) for one in states)
    first = Call(method="GET", path=_PATH, decode=_items, query=query)

    def following(last: Call[list[Run]], items: list[Run]) -> Call[list[Run]] | None:
        # By id, so that runs which come meanwhile do not push others onto the next page.
        before = ("before_id", str(items[-1].id)) if len(items) == page_size else None
        return None if before is None else msgspec.structs.replace(first, query=(*query, before))

    return Pages(first, following)


def attempts(run: RunRef) -> Call[list[Attempt]]:
    """Every try at a run, oldest first."""
    return Call(method="GET", path=f"{_one(run)}/attempts", decode=_read_attempts)


def cancel(run: RunRef) -> Call[Run]:
    """End a run that is not over."""
    return _told(run, "cancel")


def retry(run: RunRef) -> Call[Run]:
    """Try a run again that has ended without success."""
    return _told(run, "retry")


def complete(run: RunRef, *, reason: str = "") -> Call[Run]:
    """Take a run as done that waits, runs or has failed."""
    return Call(
        method="POST",
        path=f"{_one(run)}/complete",
        decode=read_run,
        body=json_body({"reason": reason}),
        repeat=Repeat.IF_NOT_DONE,
    )


def wait(run: RunRef, limit: Span | float = "1m") -> Conversation[Run]:
    """The run once it is over, or StillRunning after the limit."""
    now: float = yield Pause(0)
    deadline, pause = now + seconds(limit, "limit"), _FIRST_LOOK
    while True:
        seen: Run = yield get(run)
        if seen.is_over:
            return seen
        if now >= deadline:
            raise StillRunning(seen)
        now = yield Pause(min(pause, deadline - now))
        pause = min(pause * _SLOWER, _LONGEST_LOOK)


class Runs(Room[W]):
    """The runs of a server."""

    get = Verb(get)
    list = Listing(each)
    attempts = Verb(attempts)
    cancel = Verb(cancel)
    retry = Verb(retry)
    complete = Verb(complete)
    wait = Verb(wait)
    steps = Verb(steps)
    retry_step = Verb(retry_step)
    complete_step = Verb(complete_step)


def _one(run: RunRef) -> str:
    return f"{_PATH}/{id_of(run)}"


def _told(run: RunRef, what: str) -> Call[Run]:
    # Told twice, a run that failed quickly would be tried twice.
    return Call(method="POST", path=f"{_one(run)}/{what}", decode=read_run, repeat=Repeat.IF_NOT_DONE)


def _items(data: bytes) -> list[Run]:
    return _read_page(data).items
