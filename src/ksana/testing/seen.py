"""Runs as a test looks at them: always as they stand at that moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, overload

import msgspec

from ksana.domain.items import report_of
from ksana.domain.runs import Attempt
from ksana.domain.states import State

if TYPE_CHECKING:
    from ksana.testing.rehearsal import Rehearsal


class _Seen:
    """What every run shows, and an item of the queue is one."""

    def __init__(self, rehearsal: Rehearsal, id: int) -> None:
        self._rehearsal = rehearsal
        self.id = id

    @property
    def state(self) -> State:
        return self._rehearsal.run_as_it_is(self.id).state

    @property
    def ok(self) -> bool:
        """Whether it ended well; an item, whether it was acknowledged."""
        return self.state is State.SUCCESS

    @property
    def error(self) -> str:
        return self._rehearsal.run_as_it_is(self.id).error


class RunSeen(_Seen):
    """One run."""

    @property
    def planned_at(self) -> datetime:
        return self._rehearsal.run_as_it_is(self.id).planned_at

    @property
    def ended_at(self) -> datetime | None:
        return self._rehearsal.run_as_it_is(self.id).ended_at

    @property
    def attempts(self) -> list[Attempt]:
        """Every try that has ended, oldest first: when, `code`, `error`, what went over the wire."""
        return self._rehearsal.attempts_of(self.id)

    @property
    def result(self) -> Any:
        """What the last try returned, read as JSON; None if it returned nothing."""
        attempts = self.attempts
        data = attempts[-1].result if attempts else None
        return None if data is None else msgspec.json.decode(data)

    def call_back(self, error: str = "") -> None:
        """Be the target that says how it ended."""
        self._rehearsal.call_back(self.id, error)

    def __repr__(self) -> str:
        run = self._rehearsal.run_as_it_is(self.id)
        return f"<run {run.id}, planned at {run.planned_at:%F %T}: {run.state}{f', {run.error}' if run.error else ''}>"


class ItemSeen(_Seen):
    """An item of the queue."""

    @property
    def attempt(self) -> int:
        """How often it has failed."""
        return self._rehearsal.run_as_it_is(self.id).failures

    @property
    def run_at(self) -> datetime:
        return self._rehearsal.run_as_it_is(self.id).due_at

    @property
    def output(self) -> Any:
        """What its handler has handed on, read as JSON."""
        kept = self._rehearsal.kept_of(self.id)
        return None if kept is None or kept.artifact is None else msgspec.json.decode(kept.artifact)

    @property
    def next_action_at(self) -> datetime | None:
        return report_of(self._rehearsal.kept_of(self.id)).next_action_at

    def __repr__(self) -> str:
        return f"<item {self.id}: {self.state}{f', {self.error}' if self.error else ''}>"


class RunsSeen(Sequence[RunSeen]):
    """Runs of a job."""

    def __init__(self, runs: Sequence[RunSeen]) -> None:
        self._runs = list(runs)

    @property
    def last(self) -> RunSeen:
        if not self._runs:
            raise AssertionError("it has not run yet")
        return self._runs[-1]

    @property
    def count(self) -> int:  # type: ignore[override]
        """How many there are."""
        return len(self._runs)

    @property
    def states(self) -> list[State]:
        return [run.state for run in self._runs]

    @overload
    def __getitem__(self, index: int) -> RunSeen: ...
    @overload
    def __getitem__(self, index: slice) -> list[RunSeen]: ...
    def __getitem__(self, index: int | slice) -> RunSeen | list[RunSeen]:
        return self._runs[index]

    def __iter__(self) -> Iterator[RunSeen]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        return repr(self._runs)
