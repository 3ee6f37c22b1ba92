"""The table of runs, with the indexes that the verbs go by."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from ksana.domain.items import KIND as ITEM
from ksana.domain.runs import Run
from ksana.domain.states import CLAIMABLE, Reason, State
from ksana.stores.json.chains import KnownChain
from ksana.stores.json.ordered import Grouped, Ordered
from ksana.stores.json.table import Table


class RunTable(Table[int, Run]):
    """Runs by id, finished ones until they are pruned."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: Ordered[int] = Ordered()
        self.of_job: Grouped[int, int] = Grouped()
        self.slots: Grouped[int, tuple[datetime, int]] = Grouped()
        self.children: Grouped[int, int] = Grouped()
        self.about: Grouped[str, int] = Grouped()
        self.by_token: dict[str, int] = {}
        self.unfinished: Grouped[State, int] = Grouped()
        self.in_state: Grouped[tuple[int, State], tuple[datetime, int]] = Grouped()
        self.live: Grouped[int, int] = Grouped()
        self.active: Grouped[int, int] = Grouped()
        self.holding: Grouped[int, int] = Grouped()
        self.waiting: Grouped[int, tuple[datetime, int]] = Grouped()
        self.ready: Grouped[tuple[str, int], tuple[datetime, int]] = Grouped()
        self.held: Grouped[int, int] = Grouped()
        self.handed_out: Grouped[tuple[str, str | None], int] = Grouped()
        self.deadlines: Ordered[tuple[datetime, int]] = Ordered()
        self.ended: Grouped[State, tuple[datetime, int]] = Grouped()
        self.chains: dict[int, KnownChain] = {}

    def has_slot(self, job_id: int, slot_at: datetime) -> bool:
        slots = self.slots[job_id]
        at = slots.below((slot_at, -1))
        return at < len(slots) and slots[at][0] == slot_at

    def set(self, key: int, value: Run | None) -> None:
        old = self.rows.get(key)
        if old is None and value is not None:
            self._born(key, value)
        elif old is not None and value is None:
            self._gone(key, old)
        super().set(key, value)
        self._tell_chains(key, old, value)

    def _tell_chains(self, key: int, old: Run | None, new: Run | None) -> None:
        """Whatever is known of a family keeps up with it. That of a run which is over is not needed any more."""
        run = new or old
        if run is not None and run.parent_id is not None and (chain := self.chains.get(run.parent_id)) is not None:
            chain.tell(key, None if new is None else new.state)
        if new is None or new.ended_at is not None:
            self.chains.pop(key, None)

    def _born(self, key: int, run: Run) -> None:
        """Index what stays the same for as long as there is the run."""
        self.ids.add(key)
        if run.job_id is not None:
            self.of_job.add(run.job_id, key)
            if run.slot_at is not None:
                self.slots.add(run.job_id, (run.slot_at, key))
        if run.parent_id is not None:
            self.children.add(run.parent_id, key)
        if run.subject is not None:
            self.about.add(run.subject, key)
        if run.callback_token is not None:
            self.by_token[run.callback_token] = key

    def _gone(self, key: int, run: Run) -> None:
        self.ids.discard(key)
        if run.job_id is not None:
            self.of_job.discard(run.job_id, key)
            if run.slot_at is not None:
                self.slots.discard(run.job_id, (run.slot_at, key))
        if run.parent_id is not None:
            self.children.discard(run.parent_id, key)
        if run.subject is not None:
            self.about.discard(run.subject, key)
        if run.callback_token is not None:
            self.by_token.pop(run.callback_token, None)

    def _enter(self, key: int, run: Run) -> None:
        for index, group, place in self._places(key, run):
            index.add(group, place)
        if run.deadline_at is not None:
            self.deadlines.add((run.deadline_at, key))

    def _leave(self, key: int, run: Run) -> None:
        for index, group, place in self._places(key, run):
            index.discard(group, place)
        if run.deadline_at is not None:
            self.deadlines.discard((run.deadline_at, key))

    def _places(self, key: int, run: Run) -> Iterator[tuple[Grouped[Any, Any], Any, Any]]:
        """Where a run stands by what may change about it."""
        state = run.state
        if run.job_id is not None:
            yield self.in_state, (run.job_id, state), (run.created_at, key)
        if run.ended_at is not None:
            yield self.ended, state, (run.ended_at, key)
        else:
            yield self.unfinished, state, key
            if run.job_id is not None:
                yield from self._places_in_job(key, run, run.job_id)
        if state in CLAIMABLE:
            yield self.ready, (run.queue, run.priority.value), (run.due_at, key)
        if run.node_id is not None:
            yield self.held, run.node_id, key
        if state is State.RUNNING and run.kind == ITEM:
            yield self.handed_out, (run.queue, None), key
            if run.subject is not None:
                yield self.handed_out, (run.queue, run.subject), key

    def _places_in_job(self, key: int, run: Run, job_id: int) -> Iterator[tuple[Grouped[Any, Any], Any, Any]]:
        """Where an unfinished run stands among those of its job."""
        yield self.live, job_id, key
        if run.holds_slot:
            yield self.active, job_id, key
        if run.state is not State.WAITING:
            if run.holds_slot:
                yield self.holding, job_id, key
        elif run.reason is Reason.SLOT:
            yield self.waiting, job_id, (run.created_at, key)
