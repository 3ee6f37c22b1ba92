"""The series of chains: how their runs begin and end, how long their nodes take, and how many are under way here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ksana.domain.runs import Run
from ksana.domain.states import Reason, State
from ksana.observe.exposition import Histogram, Table
from ksana.observe.series import RUN_BOUNDS

_ENDS: Final = {
    State.SUCCESS: "success",
    State.FAILED: "failed",
    State.TIMEOUT: "failed",
    State.DEAD_LETTER: "failed",
    State.CANCELED: "stopped",
}


class ChainSeries:
    """Three series. A node is known by its type; its id belongs to one chain and would be a series of its own."""

    def __init__(self) -> None:
        self._runs = Table(
            "jobchain_run_total", "counter", "Chain runs that were started, and how they ended.", ("status",)
        )
        self._nodes = Histogram(
            "jobchain_node_duration_seconds", "From the first attempt of a node to its end.", RUN_BOUNDS, ("type",)
        )
        self._inflight = Table("jobchain_inflight_nodes", "gauge", "Nodes under way on this process.", ())
        self._under_way: set[int] = set()
        for status in ("started", *dict.fromkeys(_ENDS.values())):
            self._runs.add(status, amount=0)

    def started(self, run: Run) -> None:
        """An attempt at a node begins here."""
        self._under_way.add(run.id)

    def moved(self, run: Run) -> None:
        """A chain's run, or a node's, has moved."""
        if run.parent_id is not None:
            self._under_way.discard(run.id)
            if run.ended_at is not None and run.started_at is not None:
                seconds = (run.ended_at - run.started_at).total_seconds()
                self._nodes.observe(self._nodes.child(run.kind), seconds)
        elif run.state is State.RUNNING and run.reason is Reason.CHILDREN:
            self._runs.add("started")
        elif (status := _ENDS.get(run.state)) is not None:
            self._runs.add(status)

    def lost(self, run_ids: Iterable[int]) -> None:
        """Runs that were under way here have moved on without us."""
        self._under_way.difference_update(run_ids)

    def text(self) -> str:
        self._inflight.set(to=len(self._under_way))
        return self._runs.text() + self._nodes.text() + self._inflight.text()
