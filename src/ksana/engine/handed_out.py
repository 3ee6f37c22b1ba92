"""What this node last handed out, so that what is said of an item next needs no look into the store first.

It is a guess and nothing more: a move counts only if the store still has the run at that epoch, and an epoch names one
moment of a run's life. Whoever loses, and whoever is to be refused, is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable

from ksana.domain.items import is_about_object
from ksana.domain.runs import Run
from ksana.domain.states import State

_MOST = 8192
_MOST_BYTES = 2048


class HandedOut:
    """A bounded memory of items that are held by workers."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._runs: dict[int, Run] = {}

    def keep(self, runs: Iterable[Run]) -> None:
        """Remember those that a worker holds, as they stand now."""
        for run in runs:
            # What an object is like has to be read anyway, and an item that carries much is worth a look.
            if run.state is State.RUNNING and len(run.input or b"") <= _MOST_BYTES and not is_about_object(run):
                self._runs[run.id] = run
        while len(self._runs) > self._most:
            # Dicts keep insertion order, and what moves is put in anew: the first was heard of least.
            del self._runs[next(iter(self._runs))]

    def take(self, run_ids: Iterable[int]) -> dict[int, Run]:
        """Those of them that are remembered. Whoever takes them brings back what a worker still holds."""
        found = {run_id: self._runs.pop(run_id, None) for run_id in run_ids}
        return {run_id: run for run_id, run in found.items() if run is not None}
