"""The Store in one file: each verb is a step on the tables, written down before it is answered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ksana.domain.alerts import Alert, AlertQuery
from ksana.domain.archive import Exported, Extent, Section
from ksana.domain.audit import AuditEntry, AuditQuery
from ksana.domain.callbacks import CallbackRecord, Heard, Progress
from ksana.domain.changes import JobChange, Settlement
from ksana.domain.claims import Claim, Claimed, Fired, Turn
from ksana.domain.errors import StoreUnavailable
from ksana.domain.fires import DueJob, Fire
from ksana.domain.foresight import Births, Foreseen, Prospect, Sight
from ksana.domain.handing_out import Pulled
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.items import Enqueued, Pull
from ksana.domain.jobs import Job
from ksana.domain.keys import StoredKey
from ksana.domain.limits import QueueSettings
from ksana.domain.moves import Kept, Move
from ksana.domain.nodes import Heartbeat, NodeInfo
from ksana.domain.objects import GovernedObject, ObjectQuery
from ksana.domain.queries import Counts, ErrorGroup, FireRecord, JobQuery, Minute, Page, QueueCounts, RunQuery
from ksana.domain.retention import Retention
from ksana.domain.runs import Attempt, LastAttempt, Run
from ksana.domain.states import State
from ksana.domain.steering import Steer
from ksana.stores.json import (
    archive,
    audit,
    callbacks,
    families,
    firing,
    jobs,
    kept,
    keys,
    moving,
    nodes,
    objects,
    outbox,
    pulling,
    queue_settings,
    queues,
    reading,
    search,
    sequences,
    settling,
    shared,
    turns,
    upkeep,
)
from ksana.stores.json.directory import Directory, Step
from ksana.stores.json.tables import Place, Tables

T = TypeVar("T")


def _system_now() -> datetime:
    return datetime.now(UTC)


class _Line(msgspec.Struct):
    """A line of the history, of those that are read one by one."""

    attempt: Attempt | None = None
    callback: CallbackRecord | None = None


_line = msgspec.json.Decoder(_Line)


class JsonStore:
    """Jobs and runs in `jobs.json` of a directory."""

    # One turn is written while the next is being gathered; more would only wait in line.
    parallelism = 2

    def __init__(self, directory: Path, now: Callable[[], datetime] = _system_now) -> None:
        self._path = directory
        self._now = now
        self._open: Directory | None = None

    async def open(self) -> None:
        if self._open is None:
            self._open = shared.enter(self._path, self._now)

    async def close(self) -> None:
        directory, self._open = self._open, None
        if directory is not None:
            await shared.leave(directory)

    @property
    def _directory(self) -> Directory:
        if self._open is None:
            raise StoreUnavailable(f"{self._path} is not open")
        return self._open

    @property
    def _tables(self) -> Tables:
        return self._directory.tables

    async def _write(self, step: Step[T]) -> T:
        return await self._directory.change(step)

    async def ping(self) -> None:
        _ = self._tables

    async def identity(self) -> int:
        if self._tables.standing.rows:
            return self._tables.stands.identity
        return await self._write(sequences.identity)

    async def reserve_ids(self, what: str, count: int) -> range:
        return await self._write(lambda tx: sequences.reserve(tx, what, count))

    async def add_jobs(self, new: Sequence[Job], record: IdempotencyRecord | None = None) -> None:
        await self._write(lambda tx: jobs.add_jobs(tx, new, record))

    async def change_jobs(self, changes: Sequence[JobChange]) -> list[Run]:
        return await self._write(lambda tx: jobs.change_jobs(tx, changes))

    async def get_jobs(self, ids: Iterable[int]) -> list[Job]:
        return reading.jobs_by_id(self._tables, ids)

    async def find_jobs(self, query: JobQuery) -> Page[Job]:
        return search.find_jobs(self._tables, query)

    async def fire_due(self, now: datetime, limit: int, decide: Callable[[list[DueJob]], list[Fire]]) -> Fired:
        return await self._write(lambda tx: firing.fire_due(tx, now, limit, decide))

    async def bursts(self, after: datetime, until: datetime, least: int) -> list[tuple[datetime, int]]:
        return firing.bursts(self._tables, after, until, least)

    async def look_ahead(
        self, at: datetime, after_id: int, limit: int, foresee: Callable[[DueJob], Prospect | None]
    ) -> Sight:
        return firing.look_ahead(self._tables, at, after_id, limit, foresee)

    async def fire_foreseen(self, foreseen: Foreseen, births: Births) -> Fired:
        return await self._write(lambda tx: firing.fire_foreseen(tx, foreseen, births))

    async def next_fire_at(self) -> datetime | None:
        return reading.next_fire_at(self._tables)

    async def pauses(self, limit: int) -> list[tuple[int, datetime]]:
        return reading.pauses(self._tables, limit)

    async def next_due_at(self, queues: Sequence[str]) -> datetime | None:
        return reading.next_due_at(self._tables, queues)

    async def add_run(
        self, job_id: int, make: Callable[[Job, int], Run], record: Callable[[Run], IdempotencyRecord] | None = None
    ) -> Run:
        return await self._write(lambda tx: firing.add_run(tx, job_id, make, record))

    async def turn(
        self,
        moves: Sequence[Move],
        claim: Claim | None = None,
        alerts: Sequence[Alert] = (),
        hooks: Sequence[str] = (),
    ) -> Turn:
        return await self._write(lambda tx: turns.turn(tx, moves, claim, alerts, hooks))

    async def enqueue(self, new: Sequence[Enqueued]) -> list[int]:
        return await self._write(lambda tx: pulling.enqueue(tx, new))

    async def pull(self, pull: Pull) -> Pulled:
        return await self._write(lambda tx: pulling.pull(tx, pull))

    async def settle(self, settlement: Settlement) -> list[tuple[Move, Job | None]]:
        return await self._write(lambda tx: settling.settle(tx, settlement))

    async def get_objects(self, subjects: Iterable[str]) -> dict[str, GovernedObject]:
        return objects.get_objects(self._tables, subjects)

    async def find_objects(self, query: ObjectQuery) -> Page[GovernedObject]:
        return objects.find_objects(self._tables, query)

    async def queue_settings(self) -> list[QueueSettings]:
        return queue_settings.queue_settings(self._tables)

    async def set_queue(self, settings: QueueSettings, entry: AuditEntry) -> None:
        await self._write(lambda tx: queue_settings.set_queue(tx, settings, entry))

    async def add_audit(self, entries: Sequence[AuditEntry]) -> None:
        await self._write(lambda tx: audit.add_audit(tx, entries))

    async def find_audit(self, query: AuditQuery) -> Page[AuditEntry]:
        return audit.find_audit(self._tables, query)

    async def queue_counts(self, now: datetime) -> list[QueueCounts]:
        return queues.queue_counts(self._tables, now)

    async def dead_by_error(self, queue: str | None, limit: int) -> list[ErrorGroup]:
        return queues.dead_by_error(self._tables, queue, limit)

    async def steer(
        self, parent_id: int, decide: Steer, hooks: Sequence[str] = (), above: Steer | None = None
    ) -> list[tuple[Move, Job | None]]:
        return await self._write(lambda tx: families.steer(tx, parent_id, decide, hooks, above))

    async def children(self, parent_id: int) -> list[Run]:
        return families.children(self._tables, parent_id)

    async def kept(self, run_ids: Iterable[int]) -> dict[int, Kept]:
        return kept.kept(self._tables, run_ids)

    async def keep_checkpoint(self, run_id: int, epoch: int, checkpoint: bytes) -> bool:
        return await self._write(lambda tx: kept.keep_checkpoint(tx, run_id, epoch, checkpoint))

    async def hear(self, heard: Heard) -> list[tuple[Move, Job | None]] | None:
        return await self._write(lambda tx: callbacks.hear(tx, heard))

    async def callbacks(self, run_id: int) -> list[CallbackRecord]:
        return [self._at(place) for place in self._tables.callbacks.places(run_id)]

    async def progress(self, run_ids: Iterable[int]) -> dict[int, Progress]:
        return callbacks.progress(self._tables, run_ids)

    async def add_attempts(self, attempts: Sequence[Attempt]) -> None:
        await self._write(lambda tx: callbacks.add_attempts(tx, attempts))

    async def lease_alerts(self, hooks: Sequence[str], now: datetime, until: datetime, limit: int) -> list[Alert]:
        return await self._write(lambda tx: outbox.lease_alerts(tx, hooks, now, until, limit))

    async def settle_alerts(self, alerts: Sequence[Alert]) -> None:
        await self._write(lambda tx: outbox.settle_alerts(tx, alerts))

    async def give_up_alerts(self, known: Sequence[str], before: datetime, now: datetime, error: str) -> dict[str, int]:
        hooks = outbox.unserved_hooks(self._tables, known, before)
        return await self._write(lambda tx: outbox.give_up_alerts(tx, hooks, before, now, error)) if hooks else {}

    async def find_alerts(self, query: AlertQuery) -> Page[Alert]:
        return outbox.find_alerts(self._tables, query)

    async def admit_waiting(self) -> int:
        return await self._write(moving.admit_waiting)

    async def get_runs(self, ids: Iterable[int]) -> list[Run]:
        return reading.runs_by_id(self._tables, ids)

    async def run_by_token(self, token: str) -> Run | None:
        return reading.run_by_token(self._tables, token)

    async def find_runs(self, query: RunQuery) -> Page[Run]:
        return search.find_runs(self._tables, query)

    async def attempts(self, run_id: int) -> list[Attempt]:
        return [self._at(place) for place in self._tables.attempts.places(run_id)]

    async def last_attempts(self, run_ids: Iterable[int], most_bytes: int | None = None) -> dict[int, LastAttempt]:
        newest = {run_id: places[-1] for run_id in run_ids if (places := self._tables.attempts.places(run_id))}
        return {run_id: reading.bounded(self._at(place), most_bytes) for run_id, place in newest.items()}

    async def last_runs(self, job_ids: Iterable[int], states: Collection[State] = frozenset(State)) -> dict[int, Run]:
        return reading.last_runs(self._tables, job_ids, states)

    async def fire_log(self, job_id: int, since: datetime, until: datetime, limit: int) -> list[FireRecord]:
        return reading.fire_log(self._tables, job_id, since, until, limit)

    async def join(self, name: str, now: datetime, lease: timedelta) -> NodeInfo:
        return await self._write(lambda tx: nodes.join(tx, name, now, lease))

    async def beat(self, node_id: int, now: datetime, lease: timedelta) -> Heartbeat:
        return await self._write(lambda tx: nodes.beat(tx, node_id, now, lease))

    async def set_draining(self, node_id: int, is_draining: bool) -> bool:
        return await self._write(lambda tx: nodes.set_draining(tx, node_id, is_draining))

    async def leave(self, node_id: int) -> None:
        await self._write(lambda tx: nodes.leave(tx, node_id))

    async def nodes(self) -> list[NodeInfo]:
        return nodes.all_nodes(self._tables)

    async def lapsed(self, now: datetime, limit: int) -> list[Claimed]:
        return nodes.lapsed(self._tables, now, limit)

    async def prune(self, retention: Retention) -> int:
        return await self._write(lambda tx: upkeep.prune(tx, retention))

    async def roll_up(self, until: datetime) -> int:
        return await self._write(lambda tx: upkeep.roll_up(tx, until))

    async def minutes(self, since: datetime, until: datetime) -> list[Minute]:
        return upkeep.minutes(self._tables, since, until)

    async def counts(self, now: datetime) -> Counts:
        return reading.counts(self._tables, now)

    async def find_idempotency(self, scope: str, key: str) -> IdempotencyRecord | None:
        return self._tables.answers.get((scope, key))

    async def add_key(self, key: StoredKey) -> None:
        await self._write(lambda tx: keys.add(tx, key))

    async def keys(self) -> list[StoredKey]:
        return keys.all_keys(self._tables)

    async def revoke_key(self, key_id: str, now: datetime) -> bool:
        return await self._write(lambda tx: keys.revoke(tx, key_id, now))

    async def extent(self, section: Section) -> Extent:
        return archive.extent(self._tables, section)

    async def export(self, section: Section, after: str | None, limit: int) -> Exported:
        return archive.export(self._tables, self._at, section, after, limit)

    async def restore(self, section: Section, items: Sequence[Any]) -> int:
        return await self._write(lambda tx: archive.restore(tx, section, items))

    def _at(self, place: Place) -> Any:
        """What is in the history and nowhere else."""
        line = _line.decode(self._directory.read_history(place))
        return line.attempt or line.callback
