"""What a JSON store holds, in memory: tables of immutable values with the indexes that the verbs go by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from ksana.domain.alerts import Alert
from ksana.domain.archive import Standing
from ksana.domain.callbacks import CallbackRecord, Progress
from ksana.domain.fires import Gap
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.jobs import Job
from ksana.domain.keys import StoredKey
from ksana.domain.ports import NodeInfo
from ksana.domain.queries import Minute
from ksana.domain.runs import Attempt, Run
from ksana.domain.states import CLAIMABLE, Reason, State
from ksana.stores.json.ordered import Grouped, Ordered

K = TypeVar("K")
V = TypeVar("V")


class Table(Generic[K, V]):
    """Values by key. A subclass keeps its indexes in step with what enters and leaves."""

    def __init__(self) -> None:
        self.rows: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        return self.rows.get(key)

    def set(self, key: K, value: V | None) -> None:
        """Put a value under its key, or with None take it away."""
        old = self.rows.get(key)
        if old is not None:
            self._leave(key, old)
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = value
            self._enter(key, value)

    def _enter(self, key: K, value: V) -> None:
        """A value has come; index it."""

    def _leave(self, key: K, value: V) -> None:
        """A value goes; forget where it stood."""


class JobTable(Table[int, Job]):
    """Jobs by id, deleted ones included."""

    def __init__(self) -> None:
        super().__init__()
        self.by_ref: dict[tuple[str, str], int] = {}
        self.by_name: Grouped[str, int] = Grouped()
        self.due: Ordered[tuple[datetime, int]] = Ordered()
        self.counted: Counter[tuple[str, bool]] = Counter()

    def _enter(self, key: int, job: Job) -> None:
        if job.next_fire_at is not None:
            self.due.add((job.next_fire_at, key))
        if job.deleted_at is None:
            if job.ref:
                self.by_ref[job.surface, job.ref] = key
            self.by_name.add(job.name, key)
            self.counted[job.surface, job.enabled] += 1

    def _leave(self, key: int, job: Job) -> None:
        if job.next_fire_at is not None:
            self.due.discard((job.next_fire_at, key))
        if job.deleted_at is None:
            if job.ref:
                del self.by_ref[job.surface, job.ref]
            self.by_name.discard(job.name, key)
            self.counted[job.surface, job.enabled] -= 1


class RunTable(Table[int, Run]):
    """Runs by id, finished ones until they are pruned."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: Ordered[int] = Ordered()
        self.of_job: Grouped[int, int] = Grouped()
        self.slots: Grouped[int, tuple[datetime, int]] = Grouped()
        self.children: Grouped[int, int] = Grouped()
        self.by_token: dict[str, int] = {}
        self.unfinished: Grouped[State, int] = Grouped()
        self.in_state: Grouped[tuple[int, State], tuple[datetime, int]] = Grouped()
        self.live: Grouped[int, int] = Grouped()
        self.active: Grouped[int, int] = Grouped()
        self.holding: Grouped[int, int] = Grouped()
        self.waiting: Grouped[int, tuple[datetime, int]] = Grouped()
        self.ready: Grouped[tuple[str, int], tuple[datetime, int]] = Grouped()
        self.held: Grouped[int, int] = Grouped()
        self.deadlines: Ordered[tuple[datetime, int]] = Ordered()
        self.ended: Grouped[State, tuple[datetime, int]] = Grouped()

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

    def _born(self, key: int, run: Run) -> None:
        """Index what stays the same for as long as there is the run."""
        self.ids.add(key)
        if run.job_id is not None:
            self.of_job.add(run.job_id, key)
            if run.slot_at is not None:
                self.slots.add(run.job_id, (run.slot_at, key))
        if run.parent_id is not None:
            self.children.add(run.parent_id, key)
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


class Kept(NamedTuple):
    """Where in the history something is written down."""

    offset: int
    length: int


class KeptTable(Table[tuple[int, int], V | Kept]):
    """Things of runs by (run, number): only where they are written down, for they may be large and are seldom looked
    at. One that is not written down yet is itself here."""

    def __init__(self) -> None:
        super().__init__()
        self.of_run: Grouped[int, int] = Grouped()
        self.length = 0

    def _enter(self, key: tuple[int, int], value: V | Kept) -> None:
        self.of_run.add(*key)
        self.length += value.length if isinstance(value, Kept) else 0

    def _leave(self, key: tuple[int, int], value: V | Kept) -> None:
        self.of_run.discard(*key)
        self.length -= value.length if isinstance(value, Kept) else 0

    def places(self, run_id: int) -> list[Kept]:
        """Where the things of a run are written down, by rising number."""
        found = (self.rows[run_id, number] for number in self.of_run[run_id])
        return [place for place in found if isinstance(place, Kept)]


AlertKey = tuple[int, int, str]


class AlertTable(Table[AlertKey, Alert]):
    """Alerts by (run, epoch, hook)."""

    def __init__(self) -> None:
        super().__init__()
        self.due: Grouped[str, tuple[datetime, AlertKey]] = Grouped()
        self.ended: Ordered[tuple[datetime, AlertKey]] = Ordered()

    def _enter(self, key: AlertKey, alert: Alert) -> None:
        if alert.due_at is not None:
            self.due.add(alert.hook, (alert.due_at, key))
        if alert.ended_at is not None:
            self.ended.add((alert.ended_at, key))

    def _leave(self, key: AlertKey, alert: Alert) -> None:
        if alert.due_at is not None:
            self.due.discard(alert.hook, (alert.due_at, key))
        if alert.ended_at is not None:
            self.ended.discard((alert.ended_at, key))


GapKey = tuple[int, datetime, Reason]


class GapTable(Table[GapKey, Gap]):
    """Gaps by (job, first slot, reason)."""

    def __init__(self) -> None:
        super().__init__()
        self.of_job: Grouped[int, GapKey] = Grouped()
        self.recorded: Ordered[tuple[datetime, GapKey]] = Ordered()

    def _enter(self, key: GapKey, gap: Gap) -> None:
        self.of_job.add(gap.job_id, key)
        self.recorded.add((gap.recorded_at, key))

    def _leave(self, key: GapKey, gap: Gap) -> None:
        self.of_job.discard(gap.job_id, key)
        self.recorded.discard((gap.recorded_at, key))


class AnswerTable(Table[tuple[str, str], IdempotencyRecord]):
    """Answers to requests by (scope, key)."""

    def __init__(self) -> None:
        super().__init__()
        self.created: Ordered[tuple[datetime, tuple[str, str]]] = Ordered()

    def _enter(self, key: tuple[str, str], record: IdempotencyRecord) -> None:
        self.created.add((record.created_at, key))

    def _leave(self, key: tuple[str, str], record: IdempotencyRecord) -> None:
        self.created.discard((record.created_at, key))


MinuteKey = tuple[datetime, str, State]


class MinuteTable(Table[MinuteKey, Minute]):
    """Summed-up minutes by (minute, kind, state)."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: Ordered[MinuteKey] = Ordered()

    def _enter(self, key: MinuteKey, minute: Minute) -> None:
        self.keys.add(key)

    def _leave(self, key: MinuteKey, minute: Minute) -> None:
        self.keys.discard(key)


class Tables:
    """Everything. Nodes and what they have yet to hear die with the process, as the nodes do, and are in no file."""

    def __init__(self, identity: int) -> None:
        self._nobody_yet = Standing(identity=identity, next_ids={})
        self.jobs = JobTable()
        self.runs = RunTable()
        self.attempts: KeptTable[Attempt] = KeptTable()
        self.callbacks: KeptTable[CallbackRecord] = KeptTable()
        self.progress: Table[int, Progress] = Table()
        self.alerts = AlertTable()
        self.gaps = GapTable()
        self.minutes = MinuteTable()
        self.answers = AnswerTable()
        self.keys: Table[str, StoredKey] = Table()
        self.broken: Table[int, dict[str, Any]] = Table()
        self.standing: Table[str, Standing] = Table()
        self.nodes: Table[int, NodeInfo] = Table()
        self.taken: Table[int, frozenset[tuple[int, int]]] = Table()

    @property
    def stands(self) -> Standing:
        """Who the store is; of a store that nobody asked yet, who it will be."""
        return self.standing.rows.get("", self._nobody_yet)
