"""What a JSON store holds, in memory: every table, with the indexes that the verbs go by."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from ksana.domain.alerts import Alert
from ksana.domain.archive import Standing
from ksana.domain.callbacks import CallbackRecord, Progress
from ksana.domain.fires import Gap
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.items import SCOPE
from ksana.domain.jobs import Job
from ksana.domain.keys import StoredKey
from ksana.domain.limits import QueueSettings
from ksana.domain.moves import Kept
from ksana.domain.nodes import NodeInfo
from ksana.domain.queries import Minute
from ksana.domain.runs import Attempt
from ksana.domain.states import Reason, State
from ksana.stores.json.governed_tables import AuditTable, BucketTable, ObjectTable
from ksana.stores.json.ordered import Grouped, Ordered
from ksana.stores.json.run_table import RunTable
from ksana.stores.json.table import Table

V = TypeVar("V")


class JobTable(Table[int, Job]):
    """Jobs by id, deleted ones included."""

    def __init__(self) -> None:
        super().__init__()
        self.by_ref: dict[tuple[str, str], int] = {}
        self.by_name: Grouped[str, int] = Grouped()
        self.due: Ordered[tuple[datetime, int]] = Ordered()
        self.pauses: Ordered[tuple[datetime, int]] = Ordered()
        self.counted: Counter[tuple[str, bool]] = Counter()

    def _enter(self, key: int, job: Job) -> None:
        if job.next_fire_at is not None:
            self.due.add((job.next_fire_at, key))
        if job.resumes_at is not None:
            self.pauses.add((job.resumes_at, key))
        if job.deleted_at is None:
            if job.ref:
                self.by_ref[job.surface, job.ref] = key
            self.by_name.add(job.name, key)
            self.counted[job.surface, job.enabled] += 1

    def _leave(self, key: int, job: Job) -> None:
        if job.next_fire_at is not None:
            self.due.discard((job.next_fire_at, key))
        if job.resumes_at is not None:
            self.pauses.discard((job.resumes_at, key))
        if job.deleted_at is None:
            if job.ref:
                del self.by_ref[job.surface, job.ref]
            self.by_name.discard(job.name, key)
            self.counted[job.surface, job.enabled] -= 1


class Place(NamedTuple):
    """Where in the history something is written down."""

    offset: int
    length: int


class PlacedTable(Table[tuple[int, int], V | Place]):
    """Things of runs by (run, number): only where they are written down, for they may be large and are seldom looked
    at. One that is not written down yet is itself here."""

    def __init__(self) -> None:
        super().__init__()
        self.of_run: Grouped[int, int] = Grouped()
        self.length = 0

    def _enter(self, key: tuple[int, int], value: V | Place) -> None:
        self.of_run.add(*key)
        self.length += value.length if isinstance(value, Place) else 0

    def _leave(self, key: tuple[int, int], value: V | Place) -> None:
        self.of_run.discard(*key)
        self.length -= value.length if isinstance(value, Place) else 0

    def places(self, run_id: int) -> list[Place]:
        """Where the things of a run are written down, by rising number."""
        found = (self.rows[run_id, number] for number in self.of_run[run_id])
        return [place for place in found if isinstance(place, Place)]


class KeptTable(Table[int, Kept]):
    """What is kept of runs, by run."""

    def __init__(self) -> None:
        super().__init__()
        self.length = 0

    def _enter(self, key: int, kept: Kept) -> None:
        self.length += length_of(kept)

    def _leave(self, key: int, kept: Kept) -> None:
        self.length -= length_of(kept)


def length_of(kept: Kept) -> int:
    return len(kept.artifact or b"") + len(kept.checkpoint or b"")


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
        if record.scope != SCOPE:
            # Keys of items are never forgotten.
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
        self.attempts: PlacedTable[Attempt] = PlacedTable()
        self.callbacks: PlacedTable[CallbackRecord] = PlacedTable()
        self.progress: Table[int, Progress] = Table()
        self.kept = KeptTable()
        self.alerts = AlertTable()
        self.gaps = GapTable()
        self.minutes = MinuteTable()
        self.answers = AnswerTable()
        self.keys: Table[str, StoredKey] = Table()
        self.objects = ObjectTable()
        self.settings: Table[str, QueueSettings] = Table()
        self.buckets = BucketTable()
        self.audit = AuditTable()
        self.broken: Table[int, dict[str, Any]] = Table()
        self.standing: Table[str, Standing] = Table()
        self.nodes: Table[int, NodeInfo] = Table()
        self.taken: Table[int, frozenset[tuple[int, int]]] = Table()

    @property
    def stands(self) -> Standing:
        """Who the store is; of a store that nobody asked yet, who it will be."""
        return self.standing.rows.get("", self._nobody_yet)
