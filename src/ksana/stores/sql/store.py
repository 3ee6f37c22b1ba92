"""The Store on any SQL database: each verb is one step in one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

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
from ksana.domain.times import to_micros
from ksana.stores.sql import (
    archive,
    audit,
    callbacks,
    families,
    firing,
    foreseen,
    jobs,
    kept,
    limits,
    migrate,
    nodes,
    objects,
    outbox,
    pulling,
    queues,
    reading,
    relays,
    search,
    sequences,
    settling,
    slots,
    turns,
    upkeep,
    whole_turns,
)
from ksana.stores.sql.catalog import Catalog
from ksana.stores.sql.families import Families
from ksana.stores.sql.moving import is_one_change, prepare
from ksana.stores.sql.rows import key_from_row, key_to_row, record_from_row
from ksana.stores.sql.statements import ALL_KEYS, IDEMPOTENT_ANSWER, PING, READ_IDENTITY, REVOKE_KEY
from ksana.stores.sql.tables import KEYS
from ksana.stores.sql.turns import TurnRows
from ksana.stores.sql.tx import Database, Step
from ksana.stores.sql.whole_turns import Whole

T = TypeVar("T")

_NOBODY: frozenset[int] = frozenset()


class SqlStore:
    """Jobs and runs in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._read = database.read
        self._catalog = Catalog()
        self._families = Families()
        self._set_queues: set[str] = set()
        # Where something once governed what was due it may do so again, and asking in vain is a round trip.
        self._governed_queues: set[str] = set()
        self.parallelism = database.parallelism

    async def _write(self, step: Step[T], write: Callable[[Step[T]], Awaitable[T]] | None = None) -> T:
        try:
            return await (write or self._database.write)(step)
        except StoreUnavailable:
            # On a store with one writer this step may have read what another did in the same, now undone, commit.
            self._catalog.forget()
            self._families.forget()
            raise

    async def open(self) -> None:
        await self._database.open()
        try:
            await migrate.migrate(self._database)
        except BaseException:
            await self._database.close()
            raise

    async def close(self) -> None:
        await self._database.close()

    async def ping(self) -> None:
        await self._read(lambda tx: tx.rows(PING))

    async def identity(self) -> int:
        [(value,)] = await self._read(lambda tx: tx.rows(READ_IDENTITY))
        return int(value)

    async def reserve_ids(self, what: str, count: int) -> range:
        return await self._write(lambda tx: sequences.reserve(tx, what, count))

    async def add_jobs(self, new: Sequence[Job], record: IdempotencyRecord | None = None) -> None:
        await self._write(lambda tx: jobs.add_jobs(tx, new, record))

    async def change_jobs(self, changes: Sequence[JobChange]) -> list[Run]:
        return await self._write(lambda tx: jobs.change_jobs(tx, self._catalog, self._families, changes))

    async def get_jobs(self, ids: Iterable[int]) -> list[Job]:
        return await self._read(lambda tx: reading.jobs_by_id(tx, ids))

    async def find_jobs(self, query: JobQuery) -> Page[Job]:
        return await self._read(lambda tx: search.find_jobs(tx, query))

    async def fire_due(self, now: datetime, limit: int, decide: Callable[[list[DueJob]], list[Fire]]) -> Fired:
        return await self._write(lambda tx: firing.fire_due(tx, self._catalog, now, limit, decide))

    async def bursts(self, after: datetime, until: datetime, least: int) -> list[tuple[datetime, int]]:
        return await self._read(lambda tx: foreseen.bursts(tx, after, until, least))

    async def look_ahead(
        self, at: datetime, after_id: int, limit: int, foresee: Callable[[DueJob], Prospect | None]
    ) -> Sight:
        return await self._read(lambda tx: foreseen.look_ahead(tx, self._catalog, at, after_id, limit, foresee))

    async def fire_foreseen(self, ahead: Foreseen, births: Births) -> Fired:
        rows = foreseen.rows_of(ahead, births)
        added, stood = await self._write(lambda tx: foreseen.fire_foreseen(tx, ahead.own, rows))
        return foreseen.told(ahead, births, added, stood)

    async def next_fire_at(self) -> datetime | None:
        return await self._read(reading.next_fire_at)

    async def pauses(self, limit: int) -> list[tuple[int, datetime]]:
        return await self._read(lambda tx: reading.pauses(tx, limit))

    async def next_due_at(self, queues: Sequence[str]) -> datetime | None:
        return await self._read(lambda tx: reading.next_due_at(tx, queues))

    async def add_run(
        self, job_id: int, make: Callable[[Job, int], Run], record: Callable[[Run], IdempotencyRecord] | None = None
    ) -> Run:
        return await self._write(lambda tx: firing.add_run(tx, self._catalog, job_id, make, record))

    async def turn(
        self,
        moves: Sequence[Move],
        claim: Claim | None = None,
        alerts: Sequence[Alert] = (),
        hooks: Sequence[str] = (),
    ) -> Turn:
        prepared = prepare(moves)
        leg = relays.leg_of(prepared, claim, alerts)
        if leg is not None and relays.may_pass_on(self._families, leg):
            step = leg
            passed = await self._write(lambda tx: relays.pass_on(tx, self._families, step), self._database.single)
            if passed is not None:
                return turns.told(passed, claim)
        if self._database.changes_at_once and (whole := whole_turns.whole_of(prepared, claim, alerts)) is not None:
            return turns.told(await self._whole_turn(whole), claim)
        write = self._database.single if claim is None and not alerts and is_one_change(prepared) else None
        rows = await self._write(
            lambda tx: turns.turn(tx, self._catalog, self._families, prepared, claim, alerts, hooks), write
        )
        return turns.told(rows, claim)

    async def _whole_turn(self, whole: Whole) -> TurnRows:
        self._families.drop(whole.told)
        ended, rows = await self._write(lambda tx: whole_turns.end_and_claim(tx, whole), self._database.single)
        # All of it stands by now; what else there is to ask is asked apart, so that nothing makes the turn twice.
        lost = _NOBODY if ended is None else await self._read(lambda tx: whole_turns.lost(tx, whole, ended))
        jobs = turns.known_jobs(self._catalog, rows)
        if jobs is None:
            jobs = await self._read(lambda tx: turns.jobs_of(tx, self._catalog, rows))
        return TurnRows(lost, 0, rows, jobs, [])

    async def enqueue(self, new: Sequence[Enqueued]) -> list[int]:
        write = None if any(one.record for one in new) else self._database.single
        return await self._write(lambda tx: pulling.enqueue(tx, new), write)

    async def pull(self, pull: Pull) -> Pulled:
        if self._database.changes_at_once and pull.queue not in self._governed_queues:
            handed = await self._write(lambda tx: pulling.pull_free(tx, pull), self._database.single)
            if handed is not None:
                return handed
            self._governed_queues.add(pull.queue)
        return await self._write(lambda tx: pulling.pull(tx, self._set_queues, pull))

    async def settle(self, settlement: Settlement) -> list[tuple[Move, Job | None]]:
        rounds = settling.in_rounds(settlement.moves)
        return await self._write(lambda tx: settling.settle(tx, self._catalog, self._families, rounds, settlement))

    async def get_objects(self, subjects: Iterable[str]) -> dict[str, GovernedObject]:
        return await self._read(lambda tx: objects.get_objects(tx, subjects))

    async def find_objects(self, query: ObjectQuery) -> Page[GovernedObject]:
        return await self._read(lambda tx: objects.find_objects(tx, query))

    async def queue_settings(self) -> list[QueueSettings]:
        return await self._read(limits.queue_settings)

    async def set_queue(self, settings: QueueSettings, entry: AuditEntry) -> None:
        await self._write(lambda tx: limits.set_queue(tx, settings, entry))

    async def add_audit(self, entries: Sequence[AuditEntry]) -> None:
        await self._write(lambda tx: audit.add_audit(tx, entries))

    async def find_audit(self, query: AuditQuery) -> Page[AuditEntry]:
        return await self._read(lambda tx: audit.find_audit(tx, query))

    async def queue_counts(self, now: datetime) -> list[QueueCounts]:
        return await self._read(lambda tx: queues.queue_counts(tx, now))

    async def dead_by_error(self, queue: str | None, limit: int) -> list[ErrorGroup]:
        return await self._read(lambda tx: queues.dead_by_error(tx, queue, limit))

    async def steer(
        self, parent_id: int, decide: Steer, hooks: Sequence[str] = (), above: Steer | None = None
    ) -> list[tuple[Move, Job | None]]:
        return await self._write(
            lambda tx: families.steer(tx, self._catalog, self._families, parent_id, decide, hooks, above)
        )

    async def children(self, parent_id: int) -> list[Run]:
        return await self._read(lambda tx: families.children(tx, parent_id))

    async def kept(self, run_ids: Iterable[int]) -> dict[int, Kept]:
        return await self._read(lambda tx: kept.kept(tx, run_ids))

    async def keep_checkpoint(self, run_id: int, epoch: int, checkpoint: bytes) -> bool:
        return await self._write(lambda tx: kept.keep_checkpoint(tx, run_id, epoch, checkpoint))

    async def hear(self, heard: Heard) -> list[tuple[Move, Job | None]] | None:
        return await self._write(lambda tx: callbacks.hear(tx, self._catalog, self._families, heard))

    async def callbacks(self, run_id: int) -> list[CallbackRecord]:
        return await self._read(lambda tx: callbacks.callbacks(tx, run_id))

    async def progress(self, run_ids: Iterable[int]) -> dict[int, Progress]:
        return await self._read(lambda tx: callbacks.progress(tx, run_ids))

    async def add_attempts(self, attempts: Sequence[Attempt]) -> None:
        await self._write(lambda tx: callbacks.add_attempts(tx, attempts))

    async def lease_alerts(self, hooks: Sequence[str], now: datetime, until: datetime, limit: int) -> list[Alert]:
        # Every node asks every second, and there is nearly always nothing to write.
        due = await self._read(lambda tx: outbox.due_alerts(tx, hooks, now, limit))
        return await self._write(lambda tx: outbox.lease_alerts(tx, due, until)) if due else []

    async def settle_alerts(self, alerts: Sequence[Alert]) -> None:
        await self._write(lambda tx: outbox.settle_alerts(tx, alerts))

    async def give_up_alerts(self, known: Sequence[str], before: datetime, now: datetime, error: str) -> dict[str, int]:
        hooks = await self._read(lambda tx: outbox.unserved_hooks(tx, known, before))
        return await self._write(lambda tx: outbox.give_up_alerts(tx, hooks, before, now, error)) if hooks else {}

    async def find_alerts(self, query: AlertQuery) -> Page[Alert]:
        return await self._read(lambda tx: outbox.find_alerts(tx, query))

    async def admit_waiting(self) -> int:
        return await self._write(slots.admit_waiting)

    async def get_runs(self, ids: Iterable[int]) -> list[Run]:
        return await self._read(lambda tx: reading.runs_by_id(tx, ids))

    async def run_by_token(self, token: str) -> Run | None:
        return await self._read(lambda tx: reading.run_by_token(tx, token))

    async def find_runs(self, query: RunQuery) -> Page[Run]:
        return await self._read(lambda tx: search.find_runs(tx, query))

    async def attempts(self, run_id: int) -> list[Attempt]:
        return await self._read(lambda tx: reading.attempts(tx, run_id))

    async def last_attempts(self, run_ids: Iterable[int], most_bytes: int | None = None) -> dict[int, LastAttempt]:
        return await self._read(lambda tx: reading.last_attempts(tx, run_ids, most_bytes))

    async def last_runs(self, job_ids: Iterable[int], states: Collection[State] = frozenset(State)) -> dict[int, Run]:
        return await self._read(lambda tx: reading.last_runs(tx, job_ids, states))

    async def fire_log(self, job_id: int, since: datetime, until: datetime, limit: int) -> list[FireRecord]:
        return await self._read(lambda tx: reading.fire_log(tx, job_id, since, until, limit))

    async def join(self, name: str, now: datetime, lease: timedelta) -> NodeInfo:
        return await self._write(lambda tx: nodes.join(tx, name, now, lease))

    async def beat(self, node_id: int, now: datetime, lease: timedelta) -> Heartbeat:
        return await self._write(lambda tx: nodes.beat(tx, node_id, now, lease))

    async def set_draining(self, node_id: int, is_draining: bool) -> bool:
        return await self._write(lambda tx: nodes.set_draining(tx, node_id, is_draining))

    async def leave(self, node_id: int) -> None:
        await self._write(lambda tx: nodes.leave(tx, node_id))

    async def nodes(self) -> list[NodeInfo]:
        return await self._read(nodes.all_nodes)

    async def lapsed(self, now: datetime, limit: int) -> list[Claimed]:
        return await self._read(lambda tx: nodes.lapsed(tx, self._catalog, now, limit))

    async def prune(self, retention: Retention) -> int:
        return await self._write(lambda tx: upkeep.prune(tx, retention))

    async def roll_up(self, until: datetime) -> int:
        return await self._write(lambda tx: upkeep.roll_up(tx, until))

    async def minutes(self, since: datetime, until: datetime) -> list[Minute]:
        return await self._read(lambda tx: upkeep.minutes(tx, since, until))

    async def counts(self, now: datetime) -> Counts:
        return await self._read(lambda tx: reading.counts(tx, now))

    async def find_idempotency(self, scope: str, key: str) -> IdempotencyRecord | None:
        rows = await self._read(lambda tx: tx.rows(IDEMPOTENT_ANSWER, scope=scope, key=key))
        return record_from_row(rows[0]) if rows else None

    async def add_key(self, key: StoredKey) -> None:
        await self._write(lambda tx: tx.insert(KEYS, [key_to_row(key)]))

    async def keys(self) -> list[StoredKey]:
        return [key_from_row(row) for row in await self._read(lambda tx: tx.rows(ALL_KEYS))]

    async def revoke_key(self, key_id: str, now: datetime) -> bool:
        return await self._write(lambda tx: tx.run(REVOKE_KEY, id=key_id, now=to_micros(now))) > 0

    async def extent(self, section: Section) -> Extent:
        return await self._read(lambda tx: archive.extent(tx, section))

    async def export(self, section: Section, after: str | None, limit: int) -> Exported:
        return await self._read(lambda tx: archive.export(tx, section, after, limit))

    async def restore(self, section: Section, items: Sequence[Any]) -> int:
        return await self._write(lambda tx: archive.restore(tx, section, items))
