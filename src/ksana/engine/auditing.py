"""Entries of the audit, made from what happened."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from ksana.domain.audit import AuditEntry
from ksana.domain.items import GATE_BLOCKED, shown_queue
from ksana.domain.limits import QueueSettings
from ksana.domain.moves import Move
from ksana.domain.objects import GovernedObject
from ksana.engine.draws import IdPool

SCHEDULER: Final = "scheduler"
OBJECT: Final = "object"
QUEUE: Final = "queue"

_encode = msgspec.json.Encoder().encode


class Actor(msgspec.Struct, frozen=True):
    """Who asked for a change, why, and by which request."""

    name: str
    reason: str = ""
    request_id: str | None = None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker's word changed about an object."""

    before: GovernedObject | None
    after: GovernedObject
    actor: str
    reason: str
    evidence: str | None = None
    request_id: str | None = None


class Auditor:
    """Makes entries; whoever stores the change stores them with it."""

    def __init__(self, ids: IdPool) -> None:
        self._ids = ids

    async def entry(
        self,
        actor: Actor,
        action: str,
        subject: str,
        subject_id: str,
        now: datetime,
        *,
        before: Any = None,
        after: Any = None,
        evidence: str | None = None,
    ) -> AuditEntry:
        """One entry; `before` and `after` are anything that can be told in JSON."""
        return AuditEntry(
            id=await self._ids.next(),
            at=now,
            actor=actor.name,
            action=action,
            subject=subject,
            subject_id=subject_id,
            reason=actor.reason,
            before=None if before is None else _encode(before),
            after=None if after is None else _encode(after),
            evidence=evidence,
            request_id=actor.request_id,
        )

    async def decisions(self, moves: Sequence[Move], now: datetime) -> list[AuditEntry]:
        """Why items were not handed out."""
        return [
            await self.entry(
                Actor(SCHEDULER, move.run.error),
                "decision_gate" if move.run.error == GATE_BLOCKED else "decision_budget",
                OBJECT,
                move.run.subject or "",
                now,
                after={"item": move.run.id, "queue": shown_queue(move.run.queue), "type": move.run.step},
            )
            for move in moves
        ]

    async def written(self, changes: Sequence[Change], now: datetime) -> list[AuditEntry]:
        """What was written back to objects."""
        return [
            await self.entry(
                Actor(change.actor, change.reason, change.request_id),
                "object.write_back",
                OBJECT,
                change.after.subject,
                now,
                before=change.before,
                after=change.after,
                evidence=change.evidence,
            )
            for change in changes
        ]

    async def put(
        self, actor: Actor, before: GovernedObject | None, after: GovernedObject, now: datetime
    ) -> AuditEntry:
        """Somebody said what an object is like."""
        return await self.entry(actor, "object.put", OBJECT, after.subject, now, before=before, after=after)

    async def set_queue(
        self, actor: Actor, action: str, before: QueueSettings | None, after: QueueSettings, now: datetime
    ) -> AuditEntry:
        """Somebody opened, closed or limited a queue."""
        name = shown_queue(after.queue)
        return await self.entry(actor, action, QUEUE, name, now, before=before, after=after)
