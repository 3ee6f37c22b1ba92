"""The Store in Redis: each verb is a script, or a look, a decision and a script that counts only if nothing has changed
in between."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

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
from ksana.stores.redis import (
    archive,
    audit,
    firing,
    job_search,
    jobs,
    kept,
    keys,
    nodes,
    objects,
    outbox,
    pulling,
    queue_settings,
    queues,
    reading,
    search,
    shelves,
    upkeep,
)
from ksana.stores.redis.catalog import Catalog
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import ADMIT_WAITING, RUN_BY_TOKEN
from ksana.stores.redis.turns import Turns
from ksana.stores.redis.values import runs_from_reply

_IDENTITY_BITS = 63
_LAYOUT = 1
"""How values and sets are laid out; it rises when an older version could not read them any more."""


class RedisStore:
    """Jobs and runs under one prefix of a Redis server."""

    parallelism = 2

    def __init__(self, url: str, pool_size: int = 10, pool_lifetime: float = 0) -> None:
        self._link = Link(url, max(pool_size, self.parallelism + 2), pool_lifetime)
        self._catalog = Catalog(self._link)
        self._turns = Turns(self._link, self._catalog)
        self._pulls = pulling.Pulls(self._link)

    async def open(self) -> None:
        self._catalog.forget()
        self._turns.families.forget()
        await self._link.open()
        standing = self._link.key("standing")
        await self._link.ask("HSETNX", standing, "identity", secrets.randbits(_IDENTITY_BITS))
        await self._link.ask("HSETNX", standing, "layout", _LAYOUT)
        layout = int(await self._link.ask("HGET", standing, "layout"))
        if layout > _LAYOUT:
            await self._link.close()
            raise StoreUnavailable(
                f"what is in Redis was written by a newer version (layout {layout}); update this one"
            )

    async def close(self) -> None:
        await self._link.close()

    async def ping(self) -> None:
        await self._link.ask("PING")

    async def identity(self) -> int:
        return int(await self._link.ask("HGET", self._link.key("standing"), "identity"))

    async def reserve_ids(self, what: str, count: int) -> range:
        last: int = await self._link.ask("HINCRBY", self._link.key("ids"), what, count)
        return range(last - count + 1, last + 1)

    async def add_jobs(self, new: Sequence[Job], record: IdempotencyRecord | None = None) -> None:
        await jobs.add_jobs(self._link, new, record)

    async def change_jobs(self, changes: Sequence[JobChange]) -> list[Run]:
        return await jobs.change_jobs(self._link, self._catalog, self._turns.families, changes)

    async def get_jobs(self, ids: Iterable[int]) -> list[Job]:
        return list((await self._catalog.read(ids)).values())

    async def find_jobs(self, query: JobQuery) -> Page[Job]:
        return await job_search.find_jobs(self._link, query)

    async def fire_due(self, now: datetime, limit: int, decide: Callable[[list[DueJob]], list[Fire]]) -> Fired:
        return await firing.fire_due(self._link, self._catalog, now, limit, decide)

    async def bursts(self, after: datetime, until: datetime, least: int) -> list[tuple[datetime, int]]:
        return await firing.bursts(self._link, after, until, least)

    async def look_ahead(
        self, at: datetime, after_id: int, limit: int, foresee: Callable[[DueJob], Prospect | None]
    ) -> Sight:
        return await firing.look_ahead(self._link, self._catalog, at, after_id, limit, foresee)

    async def fire_foreseen(self, foreseen: Foreseen, births: Births) -> Fired:
        return await firing.fire_foreseen(self._link, self._catalog, foreseen, births)

    async def next_fire_at(self) -> datetime | None:
        return await reading.next_fire_at(self._link)

    async def pauses(self, limit: int) -> list[tuple[int, datetime]]:
        return await reading.pauses(self._link, limit)

    async def next_due_at(self, queues: Sequence[str]) -> datetime | None:
        return await reading.next_due_at(self._link, queues)

    async def add_run(
        self, job_id: int, make: Callable[[Job, int], Run], record: Callable[[Run], IdempotencyRecord] | None = None
    ) -> Run:
        return await jobs.add_run(self._link, job_id, make, record)

    async def turn(
        self,
        moves: Sequence[Move],
        claim: Claim | None = None,
        alerts: Sequence[Alert] = (),
        hooks: Sequence[str] = (),
    ) -> Turn:
        return await self._turns.turn(moves, claim, alerts, hooks)

    async def enqueue(self, new: Sequence[Enqueued]) -> list[int]:
        return await pulling.enqueue(self._link, new)

    async def pull(self, pull: Pull) -> Pulled:
        return await self._pulls.pull(pull)

    async def settle(self, settlement: Settlement) -> list[tuple[Move, Job | None]]:
        return await self._turns.settle(settlement)

    async def get_objects(self, subjects: Iterable[str]) -> dict[str, GovernedObject]:
        return await objects.get_objects(self._link, subjects)

    async def find_objects(self, query: ObjectQuery) -> Page[GovernedObject]:
        return await objects.find_objects(self._link, query)

    async def queue_settings(self) -> list[QueueSettings]:
        return await queue_settings.queue_settings(self._link)

    async def set_queue(self, settings: QueueSettings, entry: AuditEntry) -> None:
        await queue_settings.set_queue(self._link, settings, entry)

    async def add_audit(self, entries: Sequence[AuditEntry]) -> None:
        await audit.add_audit(self._link, entries)

    async def find_audit(self, query: AuditQuery) -> Page[AuditEntry]:
        return await audit.find_audit(self._link, query)

    async def queue_counts(self, now: datetime) -> list[QueueCounts]:
        return await queues.queue_counts(self._link, now)

    async def dead_by_error(self, queue: str | None, limit: int) -> list[ErrorGroup]:
        return await queues.dead_by_error(self._link, queue, limit)

    async def steer(
        self, parent_id: int, decide: Steer, hooks: Sequence[str] = (), above: Steer | None = None
    ) -> list[tuple[Move, Job | None]]:
        return await self._turns.steer(parent_id, decide, hooks, above)

    async def children(self, parent_id: int) -> list[Run]:
        return await reading.children(self._link, parent_id)

    async def kept(self, run_ids: Iterable[int]) -> dict[int, Kept]:
        return await kept.kept(self._link, run_ids)

    async def keep_checkpoint(self, run_id: int, epoch: int, checkpoint: bytes) -> bool:
        return await kept.keep_checkpoint(self._link, run_id, epoch, checkpoint)

    async def hear(self, heard: Heard) -> list[tuple[Move, Job | None]] | None:
        return await self._turns.hear(heard)

    async def callbacks(self, run_id: int) -> list[CallbackRecord]:
        return await reading.callbacks(self._link, run_id)

    async def progress(self, run_ids: Iterable[int]) -> dict[int, Progress]:
        return await reading.progress(self._link, run_ids)

    async def add_attempts(self, attempts: Sequence[Attempt]) -> None:
        await self._turns.add_attempts(attempts)

    async def lease_alerts(self, hooks: Sequence[str], now: datetime, until: datetime, limit: int) -> list[Alert]:
        return await outbox.lease_alerts(self._link, hooks, now, until, limit)

    async def settle_alerts(self, alerts: Sequence[Alert]) -> None:
        await outbox.settle_alerts(self._link, alerts)

    async def give_up_alerts(self, known: Sequence[str], before: datetime, now: datetime, error: str) -> dict[str, int]:
        return await outbox.give_up_alerts(self._link, known, before, now, error)

    async def find_alerts(self, query: AlertQuery) -> Page[Alert]:
        return await outbox.find_alerts(self._link, query)

    async def admit_waiting(self) -> int:
        admitted: int = await self._link.run(ADMIT_WAITING)
        return admitted

    async def get_runs(self, ids: Iterable[int]) -> list[Run]:
        return await reading.runs_by_id(self._link, ids)

    async def run_by_token(self, token: str) -> Run | None:
        found = runs_from_reply(await self._link.run(RUN_BY_TOKEN, token))
        return found[0] if found else None

    async def find_runs(self, query: RunQuery) -> Page[Run]:
        return await search.find_runs(self._link, query)

    async def attempts(self, run_id: int) -> list[Attempt]:
        return await reading.attempts(self._link, run_id)

    async def last_attempts(self, run_ids: Iterable[int], most_bytes: int | None = None) -> dict[int, LastAttempt]:
        return await reading.last_attempts(self._link, run_ids, most_bytes)

    async def last_runs(self, job_ids: Iterable[int], states: Collection[State] = frozenset(State)) -> dict[int, Run]:
        return await reading.last_runs(self._link, job_ids, states)

    async def fire_log(self, job_id: int, since: datetime, until: datetime, limit: int) -> list[FireRecord]:
        return await reading.fire_log(self._link, job_id, since, until, limit)

    async def join(self, name: str, now: datetime, lease: timedelta) -> NodeInfo:
        [id] = await self.reserve_ids("node", 1)
        return await nodes.join(self._link, id, name, now, lease)

    async def beat(self, node_id: int, now: datetime, lease: timedelta) -> Heartbeat:
        return await nodes.beat(self._link, node_id, now, lease)

    async def set_draining(self, node_id: int, is_draining: bool) -> bool:
        return await nodes.set_draining(self._link, node_id, is_draining)

    async def leave(self, node_id: int) -> None:
        await nodes.leave(self._link, node_id)

    async def nodes(self) -> list[NodeInfo]:
        return await nodes.all_nodes(self._link)

    async def lapsed(self, now: datetime, limit: int) -> list[Claimed]:
        return await self._catalog.with_jobs(await nodes.lapsed(self._link, now, limit))

    async def prune(self, retention: Retention) -> int:
        return await upkeep.prune(self._link, retention)

    async def roll_up(self, until: datetime) -> int:
        return await upkeep.roll_up(self._link, until)

    async def minutes(self, since: datetime, until: datetime) -> list[Minute]:
        return await upkeep.minutes(self._link, since, until)

    async def counts(self, now: datetime) -> Counts:
        return await reading.counts(self._link, now)

    async def find_idempotency(self, scope: str, key: str) -> IdempotencyRecord | None:
        value = await self._link.ask("HGET", self._link.key("answers"), shelves.answer_key(scope, key))
        return None if value is None else shelves.decode_answer(value)

    async def add_key(self, key: StoredKey) -> None:
        await keys.add(self._link, key)

    async def keys(self) -> list[StoredKey]:
        return await keys.all_keys(self._link)

    async def revoke_key(self, key_id: str, now: datetime) -> bool:
        return await keys.revoke(self._link, key_id, now)

    async def extent(self, section: Section) -> Extent:
        return await archive.extent(self._link, section)

    async def export(self, section: Section, after: str | None, limit: int) -> Exported:
        return await archive.export(self._link, section, after, limit)

    async def restore(self, section: Section, items: Sequence[Any]) -> int:
        return await archive.restore(self._link, section, items)
