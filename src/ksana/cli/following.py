"""Following runs as they move: asks again and again, from where it had come to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from ksana.cli.looks import run_columns, span_text, state_cell
from ksana.cli.output import Cell, Column, Out
from ksana.domain.durations import parse_duration
from ksana.domain.states import FINAL, State

if TYPE_CHECKING:
    from ksana.client import Attempt, Client, Run

_PAUSE = 0.5
_MOST = 1000
# Ends are stored in groups: one that is a moment older than the newest may be seen a moment later.
_OVERLAP = timedelta(seconds=2)
_MOVING = (State.RUNNING, State.RETRYING, State.CALLBACK_PENDING, State.STOPPING)

Sleep = Callable[[float], None]


def follow_run(server: Client, out: Out, run_id: int, limit: str, sleep: Sleep = time.sleep) -> bool:
    """Show each attempt of a run once it is made, and the run at its end; whether it ended well. StillRunning if it
    does not end in time."""
    from ksana.client import StillRunning

    deadline = time.monotonic() + parse_duration(limit, "--for").total_seconds()
    told = 0
    while True:
        run = server.runs.get(run_id)
        attempts = server.runs.attempts(run)
        for attempt in attempts[told:]:
            out.row(_attempt_columns(out), attempt, lambda one: one.number)
        told = len(attempts)
        if run.is_over:
            out.row(run_columns(out), run, lambda one: one.id)
            return run.ok
        if time.monotonic() >= deadline:
            raise StillRunning(run)
        sleep(_PAUSE)


def follow_all(server: Client, words: dict[str, Any], states: list[State], sleep: Sleep = time.sleep) -> Iterator[Run]:
    """Runs from now on, each time they begin, rest, or end."""
    newest = next(server.runs.list(**words, state=sorted(FINAL), page_size=1), None)
    since: datetime | None = None if newest is None else newest.ended_at
    seen: dict[int, tuple[State, int]] = {run.id: (run.state, run.attempt) for run in _look(server, words, since)}
    for _ in _moves(server, sleep):
        looked = list(_look(server, words, since))
        for run in sorted(looked, key=lambda one: (one.ended_at or one.due_at, one.id)):
            if seen.get(run.id) != (run.state, run.attempt) and (not states or run.state in states):
                yield run
        # What is no longer among those looked at cannot come again, so the memory stays as small as a look.
        seen = {run.id: (run.state, run.attempt) for run in looked}
        ends = [run.ended_at for run in looked if run.ended_at is not None]
        since = max([*ends, *([] if since is None else [since])], default=None)


def _moves(server: Client, sleep: Sleep) -> Iterator[None]:
    """Each time something may have moved: when the server says so, or every so often where it has no such stream.

    An event is only the sign to look: so filters are the server's, and what happened while nobody listened is found.
    """
    from ksana.client import ApiError, Unreachable

    while True:
        try:
            for _ in server.events("run"):
                yield
        except (ApiError, Unreachable):
            # The next look says it properly if the server is gone.
            sleep(_PAUSE)
            yield


def _look(server: Client, words: dict[str, Any], since: datetime | None) -> Iterator[Run]:
    bound = None if since is None else since - _OVERLAP
    yield from islice(server.runs.list(**words, state=sorted(FINAL), since=bound, page_size=200), _MOST)
    yield from islice(server.runs.list(**words, state=_MOVING, page_size=200), _MOST)


def tail_columns(out: Out) -> list[Column[Run]]:
    return [
        Column("at", lambda run: out.instant(run.ended_at or run.started_at or run.due_at)),
        Column("state", lambda run: state_cell(run.state, out)),
        Column("job", lambda run: Cell(run.job_name or run.kind, "bold")),
        Column("run", lambda run: str(run.id)),
        Column("took", lambda run: span_text(run.duration_ms)),
        Column("error", lambda run: run.error.partition("\n")[0]),
    ]


def _attempt_columns(out: Out) -> list[Column[Attempt]]:
    return [
        Column("attempt", lambda one: f"attempt {one.number}"),
        Column("verdict", lambda one: Cell(str(one.verdict), "green" if one.verdict == "success" else "red")),
        Column("code", lambda one: "" if one.code is None else str(one.code)),
        Column("took", lambda one: span_text(one.duration_ms)),
        Column("error", lambda one: one.error),
    ]
